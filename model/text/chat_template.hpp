#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace pascaline {

struct ChatTemplateText {
  std::string text;
  std::string where;  ///< the file that it stands in and, if that has keys, the key, as messages name them
};

/// The chat template of a model's folder, or nothing if the folder has none. The first of chat_template.jinja,
/// chat_template.json (key `chat_template`) and tokenizer_config.json (same key: a text, or a list with one named
/// `default`) that has a template counts. Throws SpaceError if a file is no JSON or the key is of another type.
[[nodiscard]] std::optional<ChatTemplateText> find_chat_template(const std::filesystem::path& model_folder);

}  // namespace pascaline
