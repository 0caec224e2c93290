#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "model/text/chat.hpp"

namespace pascaline {

/// The template that renders as this text of a known model does; the text is recognised by its hash, not interpreted.
/// A line break at the end does not count, and line breaks are those of any system, as for Jinja.
[[nodiscard]] std::optional<ChatTemplate> known_chat_template(std::string_view text);

/// Whether a template's text writes the tokenizer's token of beginning, which is spelled `beginning`.
[[nodiscard]] bool writes_beginning(std::string_view text, std::string_view beginning);

/// The template of that name (`chatml`, `llama3`, …), as users give it. Throws Error with the names there are.
[[nodiscard]] ChatTemplate chat_template_named(std::string_view name);

/// The name that users give for it.
[[nodiscard]] std::string_view chat_template_name(ChatTemplate chat_template) noexcept;

/// The template that a user gives: by its name, or as a file with the text of a known one. Throws Error for what is
/// neither, and as reading the file does.
[[nodiscard]] ChatTemplate chat_template_given(const std::string& name_or_file);

/// The template for a model's folder, whose text (see find_chat_template) must be a known one. Throws Error naming the
/// file, with the nearest known one and what to do, if there is none or it is not known.
[[nodiscard]] ChatTemplate folder_chat_template(const std::filesystem::path& model_folder);

/// The template for a GGUF file: the one that `named` names if it is not empty, else the one of `text`, which is the
/// file's key `tokenizer.chat_template`. Throws Error (`file: key 'key': problem`, with the nearest known one and what
/// to do) if there is none or it is not known.
[[nodiscard]] ChatTemplate gguf_chat_template(std::optional<std::string_view> text, std::string_view named,
                                              const std::string& file);

}  // namespace pascaline
