#include "runtime/text/chat_template.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

constexpr std::array kMarkers{"<|im_start|>", "<|im_end|>", "assistant", "add_generation_prompt"};
constexpr std::array kImageMarkers{"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"};

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

void check_chat_template_text(std::string_view text, const std::string& file, ChatTemplate expected) {
  const bool reads_images = expected == ChatTemplate::qwen3_vl;
  const auto check_markers = [&](std::span<const char* const> markers) {
    for (const char* marker : markers) {
      if (text.find(marker) == std::string_view::npos) {
        throw Error(fmt::format(
            "{}: the chat template has no '{}', so it is not {}; take {} of that family, or give ids "
            "instead of messages",
            file, marker, reads_images ? "Qwen3-VL's" : "Qwen3's", reads_images ? "an Instruct model" : "a model"));
      }
    }
  };
  check_markers(kMarkers);
  if (reads_images) {
    check_markers(kImageMarkers);
  }
  for (const Relative& relative : kRelatives) {
    if (text.find(relative.mark) != std::string_view::npos) {
      throw Error(fmt::format("{}: the chat template {}, which is not supported; take {}", file, relative.what,
                              reads_images ? "a Qwen3-VL Instruct model" : "a Qwen3 model whose answers begin freely"));
    }
  }
}

std::optional<FolderTemplate> find_chat_template(const std::filesystem::path& model_folder) {
  const std::filesystem::path jinja = model_folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    return FolderTemplate{read_file(jinja), jinja.string()};
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const std::filesystem::path file = model_folder / name;
    if (!std::filesystem::exists(file)) {
      continue;
    }
    const std::string file_name = file.string();
    const nlohmann::json document = parse_json(read_space_file(file), file_name);
    if (std::optional<std::string> text = template_of(JsonNode(document, file_name))) {
      return FolderTemplate{*std::move(text), file_name};
    }
  }
  return std::nullopt;
}

void check_chat_template(const std::filesystem::path& model_folder, ChatTemplate expected) {
  const std::optional<FolderTemplate> found = find_chat_template(model_folder);
  if (!found) {
    throw Error(
        fmt::format("{}: there is no chat template (chat_template.jinja, chat_template.json, or chat_template in "
                    "tokenizer_config.json); copy it from the model's folder",
                    model_folder.string()));
  }
  check_chat_template_text(found->text, found->file, expected);
}

}  // namespace pascaline
