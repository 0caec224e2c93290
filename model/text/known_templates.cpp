#include "model/text/known_templates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/util/foreign_text.hpp"
#include "core/util/hash.hpp"
#include "model/text/chat_template.hpp"
#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

struct KnownTemplate {
  std::string_view hash;  // hash_hex of the text, without a line break at its end
  ChatTemplate chat_template;
};

// Line breaks within the texts that a template writes come as such and, in some files, as \n. What each of them renders
// is what tests/model/text/make_chat_fixture.py has from Jinja2.
constexpr std::array kKnownTemplates{
    KnownTemplate{"98f63cc3d421d28f99ab995e9629dacd", ChatTemplate::smollm2},  // SmolLM2 Instruct
    KnownTemplate{"f0323af61a5d6e2383059ddcb62b07a0", ChatTemplate::smollm2},
    KnownTemplate{"4457e3d12b367a860283f874ff58d644", ChatTemplate::qwen3},     // Qwen3
    KnownTemplate{"3b1577d5f7d1cb48d6f914dc85bd5633", ChatTemplate::qwen3},     // Qwen3, from Unsloth
    KnownTemplate{"ddff5cae9738234efa64bd8e686c0f33", ChatTemplate::qwen3},     // Qwen3 Instruct 2507, from Unsloth
    KnownTemplate{"02106194b02d7f3ba6c9c2c4e7ca9522", ChatTemplate::qwen3_vl},  // Qwen3-VL Instruct
    KnownTemplate{"8881070ff6fa0be410fb41379576a923", ChatTemplate::qwen3_vl},  // the same without tools and videos
    KnownTemplate{"f0a6a8278439fdb056191e205a440263", ChatTemplate::chatml},    // ChatML
    KnownTemplate{"577a7fce73f72e1ee2be9fd6966bb5eb", ChatTemplate::chatml},
    KnownTemplate{"8f20b9eda669ce10b97891b7adc1beb8", ChatTemplate::llama3},  // Llama 3 Instruct
    KnownTemplate{"0debe51b618cd79280e4830e93c6d9f7", ChatTemplate::llama3},
    KnownTemplate{"09facc0e4aa943189799ad6e2dea0594", ChatTemplate::llama3},  // Llama 3 Instruct, later
    KnownTemplate{"11cc8d79e9815d5c866fc8fa50da12fe", ChatTemplate::llama3},
    KnownTemplate{"8de2c600ab4ed653b242b4e4424831aa", ChatTemplate::llama3},    // Llama 3, from Unsloth
    KnownTemplate{"9ddcd6cd71f96dd76ca7779b7730196a", ChatTemplate::llama3_1},  // Llama 3.1 and 3.3 Instruct
    KnownTemplate{"573e1bcc8c56f178c3d57e38f5ff0756", ChatTemplate::llama3_1}   // Llama 3.2 Instruct
};

struct TemplateName {
  std::string_view name;
  ChatTemplate chat_template;
};
constexpr std::array kTemplateNames{
    TemplateName{"chatml", ChatTemplate::chatml}, TemplateName{"smollm2", ChatTemplate::smollm2},
    TemplateName{"qwen3", ChatTemplate::qwen3},   TemplateName{"qwen3-vl", ChatTemplate::qwen3_vl},
    TemplateName{"llama3", ChatTemplate::llama3}, TemplateName{"llama3.1", ChatTemplate::llama3_1}};

// Without a byte order mark, and with LF for CRLF and CR.
std::string with_plain_line_ends(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  text.remove_prefix(text.starts_with(kMark) ? kMark.size() : 0);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_return = text[i] == '\r';
    out += is_return ? '\n' : text[i];
    i += is_return && i + 1 < text.size() && text[i + 1] == '\n' ? 1 : 0;
  }
  return out;
}

std::string known_names() {
  std::vector<std::string_view> names;
  for (const TemplateName& each : kTemplateNames) {
    names.push_back(each.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Name of the template that is most like this text, or nothing.
std::string_view nearest(std::string_view text) {
  if (holds(text, "<|start_header_id|>")) {
    return holds(text, "Cutting Knowledge Date") ? "llama3.1" : "llama3";
  }
  if (!holds(text, "<|im_start|>")) {
    return {};
  }
  if (holds(text, "<|vision_start|>") && holds(text, "<|image_pad|>")) {
    return "qwen3-vl";
  }
  if (holds(text, "named SmolLM")) {
    return "smollm2";
  }
  return holds(text, "</think>") ? "qwen3" : "chatml";
}

// What this text does that the nearest one does not, as far as can be seen.
std::string_view difference(std::string_view text) {
  if (holds(text, "You are a helpful assistant")) {
    return " (this one adds a system message of its own)";
  }
  if (holds(text, R"(<|im_start|>assistant\n<think>)") || holds(text, "<|im_start|>assistant\n<think>")) {
    return " (this one opens a block of thinking)";
  }
  return {};
}

[[noreturn]] void refuse(const std::string& where, std::string_view problem) {
  throw Error(fmt::format(
      "{}: {}; name the one that the model was trained with (--template {}), or continue a text without one (generate "
      "--raw)",
      where, problem, known_names()));
}

[[noreturn]] void refuse_text(const std::string& where, std::string_view text) {
  std::string problem = "this template is not a known one, and templates are not interpreted";
  if (const std::string_view name = nearest(text); !name.empty()) {
    problem += fmt::format("; the nearest known one is {0}{1}: --template {0} renders messages by that", name,
                           difference(text));
  }
  refuse(where, problem);
}

}  // namespace

std::optional<ChatTemplate> known_chat_template(std::string_view given) {
  std::string text = with_plain_line_ends(given);
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  const std::string hash = hash_hex(text);
  const auto* const found = std::find_if(kKnownTemplates.begin(), kKnownTemplates.end(),
                                         [&](const KnownTemplate& each) { return each.hash == hash; });
  return found == kKnownTemplates.end() ? std::nullopt : std::optional(found->chat_template);
}

bool writes_beginning(std::string_view text, std::string_view beginning) {
  return holds(text, "bos_token") || (!beginning.empty() && holds(text, beginning));
}

ChatTemplate chat_template_named(std::string_view name) {
  const auto* const found = std::find_if(kTemplateNames.begin(), kTemplateNames.end(),
                                         [&](const TemplateName& each) { return each.name == name; });
  if (found == kTemplateNames.end()) {
    throw Error(fmt::format("'{}' is not a known chat template; known are {}", valid_utf8(name), known_names()));
  }
  return found->chat_template;
}

std::string_view chat_template_name(ChatTemplate chat_template) noexcept {
  const auto* const found = std::find_if(kTemplateNames.begin(), kTemplateNames.end(),
                                         [&](const TemplateName& each) { return each.chat_template == chat_template; });
  return found == kTemplateNames.end() ? std::string_view() : found->name;
}

ChatTemplate chat_template_given(const std::string& name_or_file) {
  const auto* const named = std::find_if(kTemplateNames.begin(), kTemplateNames.end(),
                                         [&](const TemplateName& each) { return each.name == name_or_file; });
  if (named != kTemplateNames.end()) {
    return named->chat_template;
  }
  if (std::error_code unseen; !std::filesystem::exists(name_or_file, unseen)) {
    throw Error(fmt::format("'{}' is neither a known chat template ({}) nor a file with the text of one",
                            valid_utf8(name_or_file), known_names()));
  }
  const std::string text = read_foreign_text(name_or_file);
  if (const auto found = known_chat_template(text)) {
    return *found;
  }
  refuse_text(name_or_file, text);
}

ChatTemplate folder_chat_template(const std::filesystem::path& model_folder) {
  const std::optional<ChatTemplateText> found = find_chat_template(model_folder);
  if (!found) {
    refuse(model_folder.string(),
           "there is no chat template (chat_template.jinja, chat_template.json, or "
           "chat_template in tokenizer_config.json)");
  }
  if (const auto known = known_chat_template(found->text)) {
    return *known;
  }
  refuse_text(found->where, found->text);
}

ChatTemplate gguf_chat_template(std::optional<std::string_view> text, std::string_view named, const std::string& file) {
  if (!named.empty()) {
    return chat_template_named(named);
  }
  const std::string key = file + ": key 'tokenizer.chat_template'";
  if (!text) {
    refuse(key, "is missing");
  }
  if (const auto known = known_chat_template(*text)) {
    return *known;
  }
  refuse_text(key, *text);
}

}  // namespace pascaline
