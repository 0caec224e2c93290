#include "model/text/end_tokens.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/util/foreign_text.hpp"
#include "core/util/json_reader.hpp"

namespace pascaline {
namespace {

// ChatML's, and those of Llama 3.
constexpr std::array<std::string_view, 5> kFamiliesEnds{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",
                                                        "<|end_of_text|>"};

// Of tokenizer_config.json: a text, or an object that describes the token.
std::optional<std::string> named_token(const std::filesystem::path& folder, std::string_view key) {
  const std::filesystem::path file = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(file)) {
    return std::nullopt;
  }
  const std::string name = file.string();
  const nlohmann::json document = parse_json(read_foreign_text(file), name);
  const JsonNode root(document, name);
  if (!root.has_value(key)) {
    return std::nullopt;
  }
  const JsonNode token = root.at(key);
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
  if (const std::optional<std::string> named = named_token(folder, "eos_token")) {
    add(*named);
  }
  std::for_each(kFamiliesEnds.begin(), kFamiliesEnds.end(), add);
  return ends;
}

std::optional<TokenId> named_beginning(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  const std::optional<std::string> named = named_token(folder, "bos_token");
  return named ? tokenizer.find(*named) : std::nullopt;
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
