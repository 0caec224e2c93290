#include "model/convert/tokenizer_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/convert/split_forms.hpp"
#include "model/session/gguf_text.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Types of tokens, with the numbers of the format.
constexpr std::int64_t kOrdinaryType = 1;
constexpr std::int64_t kUserType = 4;
constexpr std::int64_t kUnusedType = 5;

// The texts are UTF-8, as they come out of a GGUF file.
std::string quoted_json(std::string_view text) { return json(text).dump(); }

// Added tokens, special or of the user.
json added_tokens(const GgufTokenizerData& data) {
  json added = json::array();
  for (std::size_t id = 0; id < data.tokens->size(); ++id) {
    const std::int64_t type = data.types->at(id);
    if (type != kOrdinaryType && type != kUnusedType) {
      added.push_back({{"id", id},
                       {"content", (*data.tokens)[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", type != kUserType}});
    }
  }
  return added;
}

// The package tokenizers counts added tokens that are not in the vocabulary on from its size, whatever id they have:
// the first id from which on that gives the right ones.
std::size_t first_counted(const GgufTokenizerData& data) {
  const auto& types = *data.types;
  const auto last_ordinary = std::find(types.rbegin(), types.rend(), kOrdinaryType);
  const auto first_unused = std::find(types.begin(), types.end(), kUnusedType);
  return last_ordinary.base() <= first_unused ? static_cast<std::size_t>(last_ordinary.base() - types.begin())
                                              : types.size();
}

std::string vocabulary_text(const GgufTokenizerData& data) {
  const std::size_t counted = first_counted(data);
  const auto unused =
      static_cast<std::size_t>(std::find(data.types->begin(), data.types->end(), kUnusedType) - data.types->begin());
  std::string text;
  for (std::size_t id = 0; id < data.tokens->size(); ++id) {
    const bool is_counted = id >= counted && id < unused;
    if (data.types->at(id) != kUnusedType && !is_counted) {
      text += fmt::format("{}\n      {}: {}", text.empty() ? "" : ",", quoted_json((*data.tokens)[id]), id);
    }
  }
  return text;
}

std::string merges_text(const GgufTokenizerData& data) {
  std::string text;
  for (const std::string_view merge : *data.merges) {
    text += fmt::format("{}\n      {}", text.empty() ? "" : ",", quoted_json(merge));
  }
  return text;
}

json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
}

// Texts begin with that token.
json beginning_with(std::string_view token, std::int64_t id) {
  const auto special = [&](int sequence) {
    return json::object({{"SpecialToken", {{"id", token}, {"type_id", sequence}}}});
  };
  const auto part = [](const char* name, int sequence) {
    return json::object({{"Sequence", {{"id", name}, {"type_id", sequence}}}});
  };
  json named;
  named[std::string(token)] = {{"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
  const json ends = {{"type", "TemplateProcessing"},
                     {"single", json::array({special(0), part("A", 0)})},
                     {"pair", json::array({special(0), part("A", 0), special(1), part("B", 1)})},
                     {"special_tokens", named}};
  return {{"type", "Sequence"}, {"processors", json::array({byte_level(), ends})}};
}

std::string tokenizer_text(const GgufTokenizerData& data, const GgufTokenizer& built, const PreTokenizer& family) {
  const json processor =
      built.adds_bos ? beginning_with(data.tokens->at(static_cast<std::size_t>(*built.bos)), *built.bos) : byte_level();
  return fmt::format(R"({{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": {},
  "normalizer": {},
  "pre_tokenizer": {},
  "post_processor": {},
  "decoder": {},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": {},
    "vocab": {{{}
    }},
    "merges": [{}
    ]
  }}
}}
)",
                     added_tokens(data).dump(1), normalizer_of(family).dump(), pre_tokenizer_of(family).dump(1),
                     processor.dump(), byte_level().dump(), family.whole_pieces, vocabulary_text(data),
                     merges_text(data));
}

// The token of that key, if there is one and it is in the vocabulary.
std::optional<std::int64_t> known_token(const GgufMetadata& metadata, std::string_view key,
                                        const GgufTokenizerData& data) {
  const auto id = metadata.find_integer(key);
  if (id && (*id < 0 || static_cast<std::size_t>(*id) >= data.tokens->size())) {
    metadata.fail(key, fmt::format("token {} is not in the vocabulary of {} tokens", *id, data.tokens->size()));
  }
  return id;
}

std::string tokenizer_config_text(const GgufTokenizerData& data, const GgufTokenizer& built,
                                  std::optional<std::int64_t> unknown) {
  const auto text_of = [&](std::optional<std::int64_t> id) {
    return id ? ordered_json(data.tokens->at(static_cast<std::size_t>(*id))) : ordered_json(nullptr);
  };
  const ordered_json root{{"tokenizer_class", "PreTrainedTokenizerFast"},
                          {"add_bos_token", built.adds_bos},
                          {"bos_token", text_of(data.bos)},
                          {"eos_token", text_of(data.eos)},
                          {"pad_token", text_of(data.pad)},
                          {"unk_token", text_of(unknown)},
                          {"clean_up_tokenization_spaces", false}};
  return root.dump(2) + "\n";
}

}  // namespace

std::optional<TokenizerFiles> tokenizer_files(const GgufMetadata& metadata, std::int64_t embedding_rows) {
  if (!has_gguf_tokenizer(metadata)) {
    return std::nullopt;
  }
  const GgufTokenizerData data = gguf_tokenizer_data(metadata);
  const GgufTokenizer built = build_gguf_tokenizer(data, metadata.file(), static_cast<std::size_t>(embedding_rows));
  TokenizerFiles files;
  files.tokenizer = tokenizer_text(data, built, *find_pre_tokenizer(*data.pre));
  files.config = tokenizer_config_text(data, built, known_token(metadata, "tokenizer.ggml.unknown_token_id", data));
  files.ends.assign(built.ends.begin(), built.ends.end());
  if (const auto text = metadata.find_text("tokenizer.chat_template")) {
    files.chat_template = std::string(*text);
  }
  return files;
}

}  // namespace pascaline
