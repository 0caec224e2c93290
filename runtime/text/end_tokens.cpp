#include "runtime/text/end_tokens.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/util/json_reader.hpp"

namespace pascaline {
namespace {

// ChatML's, and those of Llama 3.
constexpr std::array<std::string_view, 5> kFamiliesEnds{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",
                                                        "<|end_of_text|>"};

// A text, or an object that describes the token.
std::optional<std::string> named_end(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    return std::nullopt;
  }
  const std::string name = file.string();
  const nlohmann::json document = parse_json(read_space_file(file), name);
  const JsonNode root(document, name);
  if (!root.has("eos_token") || root.at("eos_token").value().is_null()) {
    return std::nullopt;
  }
  const JsonNode token = root.at("eos_token");
  return token.value().is_object() ? token.at("content").text() : token.text();
}

}  // namespace

std::vector<TokenId> end_tokens(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  std::vector<TokenId> ends;
  const auto add = [&](std::string_view text) {
    const std::optional<TokenId> id = tokenizer.find(text);
    if (id && std::find(ends.begin(), ends.end(), *id) == ends.end()) {
      ends.push_back(*id);
    }
  };
  if (const std::optional<std::string> named = named_end(folder / "tokenizer_config.json")) {
    add(*named);
  }
  std::for_each(kFamiliesEnds.begin(), kFamiliesEnds.end(), add);
  return ends;
}

std::vector<TokenId> gguf_end_tokens(const Tokenizer& tokenizer, std::span<const TokenId> named) {
  std::vector<TokenId> ends;
  const auto add = [&](TokenId id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) {
      ends.push_back(id);
    }
  };
  std::for_each(named.begin(), named.end(), add);
  for (const std::string_view text : kFamiliesEnds) {
    const std::optional<TokenId> id = tokenizer.find(text);
    if (id && tokenizer.is_special(*id)) {
      add(*id);
    }
  }
  return ends;
}

}  // namespace pascaline
