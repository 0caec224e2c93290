#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/text/chat.hpp"

namespace pascaline {

/// Checks that a model folder's chat template is of the kind that encode_chat renders as that one; it is not
/// interpreted. The first of chat_template.jinja, chat_template.json (key `chat_template`) and tokenizer_config.json
/// (same key: a text, or a list with one named `default`) that has a template counts. Throws Error naming the file if
/// there is none, or if it is of another family, has a system message of its own or opens a block of thinking;
/// SpaceError if a file is no JSON or the key is of another type.
void check_chat_template(const std::filesystem::path& model_folder, ChatTemplate expected = ChatTemplate::qwen3_vl);

/// The chat template of a model folder and the file that has it, the first as above; nothing without one. Throws as
/// above what reading throws.
struct FolderTemplate {
  std::string text;
  std::string file;
};
[[nodiscard]] std::optional<FolderTemplate> find_chat_template(const std::filesystem::path& model_folder);

/// The same for the text of a template; `file` is its name in messages.
void check_chat_template_text(std::string_view text, const std::string& file,
                              ChatTemplate expected = ChatTemplate::qwen3_vl);

}  // namespace pascaline
