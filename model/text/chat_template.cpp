#include "model/text/chat_template.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/util/foreign_text.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

std::optional<std::string> template_of(const JsonNode& root) {
  if (!root.has("chat_template") || root.at("chat_template").value().is_null()) {
    return std::nullopt;
  }
  const JsonNode node = root.at("chat_template");
  if (!node.value().is_array()) {
    return node.text();
  }
  for (std::size_t i = 0; i < node.array_size(); ++i) {
    if (node.at(i).at("name").text() == "default") {
      return node.at(i).at("template").text();
    }
  }
  node.fail("none of these templates is named 'default'");
}

}  // namespace

std::optional<ChatTemplateText> find_chat_template(const std::filesystem::path& model_folder) {
  const std::filesystem::path jinja = model_folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    return ChatTemplateText{read_foreign_text(jinja), jinja.string()};
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const std::filesystem::path file = model_folder / name;
    if (!std::filesystem::exists(file)) {
      continue;
    }
    const std::string file_name = file.string();
    const nlohmann::json document = parse_json(read_foreign_text(file), file_name);
    if (std::optional<std::string> text = template_of(JsonNode(document, file_name))) {
      return ChatTemplateText{std::move(*text), file_name + ": key 'chat_template'"};
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
