#include "runtime/text/chat_template.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

constexpr std::array kMarkers{"<|im_start|>",   "<|im_end|>", "<|vision_start|>",     "<|image_pad|>",
                              "<|vision_end|>", "assistant",  "add_generation_prompt"};

// Templates of relatives that render the same messages differently.
struct Relative {
  std::string_view mark;
  std::string_view what;
};
constexpr std::array kRelatives{
    Relative{"You are a helpful assistant", "adds a system message of its own (as Qwen2-VL's does)"},
    Relative{R"(<|im_start|>assistant\n<think>)", "opens a block of thinking (as a Thinking model's does)"},
    Relative{"<|im_start|>assistant\n<think>", "opens a block of thinking (as a Thinking model's does)"}};

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

void check_chat_template_text(std::string_view text, const std::string& file) {
  for (const char* marker : kMarkers) {
    if (text.find(marker) == std::string_view::npos) {
      throw Error(
          fmt::format("{}: the chat template has no '{}', so it is not Qwen3-VL's; take an Instruct model of "
                      "that family, or give ids instead of messages",
                      file, marker));
    }
  }
  for (const Relative& relative : kRelatives) {
    if (text.find(relative.mark) != std::string_view::npos) {
      throw Error(fmt::format("{}: the chat template {}, which is not supported; take a Qwen3-VL Instruct model", file,
                              relative.what));
    }
  }
}

void check_chat_template(const std::filesystem::path& model_folder) {
  const std::filesystem::path jinja = model_folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    check_chat_template_text(read_file(jinja), jinja.string());
    return;
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const std::filesystem::path file = model_folder / name;
    if (!std::filesystem::exists(file)) {
      continue;
    }
    const std::string file_name = file.string();
    const nlohmann::json document = parse_json(read_space_file(file), file_name);
    if (const std::optional<std::string> text = template_of(JsonNode(document, file_name))) {
      check_chat_template_text(*text, file_name);
      return;
    }
  }
  throw Error(
      fmt::format("{}: there is no chat template (chat_template.jinja, chat_template.json, or chat_template in "
                  "tokenizer_config.json); copy it from the model's folder",
                  model_folder.string()));
}

}  // namespace pascaline
