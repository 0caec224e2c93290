#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "runtime/text/byte_level.hpp"
#include "runtime/text/normalize.hpp"
#include "runtime/text/tokenizer_file.hpp"
#include "runtime/text/tokenizer_parts.hpp"

namespace pascaline {
namespace {

using Kind = Vocabulary::Kind;

constexpr std::string_view kExpectedKind = "expected a byte-level BPE tokenizer of the Qwen family";

void require_type(const JsonNode& node, std::string_view type) {
  const std::string found = node.at("type").text();
  if (found != type) {
    node.at("type").fail(fmt::format("'{}' is not supported: {}, with '{}' here", found, kExpectedKind, type));
  }
}

void require_false(const JsonNode& node, std::string_view key) {
  if (node.at(key).boolean()) {
    node.at(key).fail(fmt::format("true is not supported: {}, with false here", kExpectedKind));
  }
}

// The member is missing or one of the values that change nothing.
void require_unused(const JsonNode& node, std::string_view key, std::initializer_list<nlohmann::json> unused) {
  if (node.has_value(key) && std::find(unused.begin(), unused.end(), node.at(key).value()) == unused.end()) {
    node.at(key).fail(fmt::format("is set, which is not supported: {}, without it", kExpectedKind));
  }
}

void check_model(const JsonNode& model) {
  require_type(model, "BPE");
  require_unused(model, "dropout", {0, 0.0});
  require_unused(model, "unk_token", {});
  require_unused(model, "continuing_subword_prefix", {""});
  require_unused(model, "end_of_word_suffix", {""});
  for (const char* key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    require_unused(model, key, {false});
  }
  for (const char* key : {"vocab", "merges"}) {
    if (!model.at(key).value().is_null()) {
      model.at(key).fail(fmt::format("expected {}, found {}", key[0] == 'v' ? "an object" : "an array",
                                     model.at(key).value().type_name()));
    }
  }
}

// Checks how text is split and gives the pattern's place.
JsonNode check_splitting(const JsonNode& pre_tokenizer) {
  require_type(pre_tokenizer, "Sequence");
  const JsonNode steps = pre_tokenizer.at("pretokenizers");
  if (steps.array_size() != 2) {
    steps.fail(fmt::format("expected two steps (Split, ByteLevel), found {}", steps.array_size()));
  }
  const JsonNode split = steps.at(std::size_t{0});
  require_type(split, "Split");
  if (split.at("behavior").text() != "Isolated") {
    split.at("behavior").fail(fmt::format("'{}' is not supported, only 'Isolated'", split.at("behavior").text()));
  }
  require_false(split, "invert");
  const JsonNode bytes = steps.at(std::size_t{1});
  require_type(bytes, "ByteLevel");
  require_false(bytes, "add_prefix_space");
  require_false(bytes, "use_regex");
  return split.at("pattern").at("Regex");
}

void check_settings(const JsonNode& root) {
  require_unused(root, "version", {"1.0"});
  check_model(root.at("model"));
  require_type(root.at("normalizer"), "NFC");
  if (root.has_value("post_processor")) {
    require_type(root.at("post_processor"), "ByteLevel");
  }
  require_type(root.at("decoder"), "ByteLevel");
}

TokenId checked_id(std::int64_t id, const std::string& file, const std::string& pointer) {
  if (id < 0 || id >= kMaxTokenIds) {
    throw SpaceError(file, pointer, fmt::format("{} is not a valid token id: expected 0 to {}", id, kMaxTokenIds - 1));
  }
  return static_cast<TokenId>(id);
}

Vocabulary build_vocabulary(const TokenizerFile& contents, const std::string& file) {
  Vocabulary vocabulary;
  vocabulary.reserve(contents.vocabulary.size() + 64);
  for (const auto& [spelling, id] : contents.vocabulary) {
    const auto fail = [&file, &name = spelling](const std::string& problem) {
      throw SpaceError(file, "/model/vocab", fmt::format("the token '{}' {}", name, problem));
    };
    const std::optional<std::string> bytes = bytes_of_spelling(spelling);
    if (!bytes || bytes->empty()) {
      fail("is not spelled in the characters that represent bytes");
    }
    if (!vocabulary.add(checked_id(id, file, "/model/vocab"), *bytes, Kind::ordinary)) {
      fail(fmt::format("or its id {} is a duplicate", id));
    }
  }
  return vocabulary;
}

ByteTokens find_byte_tokens(const Vocabulary& vocabulary, const std::string& file) {
  ByteTokens tokens{};
  for (std::size_t byte = 0; byte < tokens.size(); ++byte) {
    const std::string text(1, static_cast<char>(static_cast<unsigned char>(byte)));
    const std::optional<TokenId> id = vocabulary.find(text);
    if (!id) {
      throw SpaceError(file, "/model/vocab",
                       fmt::format("the byte {:02X} has no token ('{}'), so not every text can be encoded", byte,
                                   spelling_of_bytes(text)));
    }
    tokens[byte] = *id;
  }
  return tokens;
}

MergeTable build_merges(const TokenizerFile& contents, const Vocabulary& vocabulary, const std::string& file) {
  MergeTable table(contents.merges.size());
  for (const auto& [left, right] : contents.merges) {
    const auto fail = [&](const std::string& problem) {
      throw SpaceError(file, fmt::format("/model/merges/{}", table.size()), problem);
    };
    const auto id_of = [&](const std::string& spelling) {
      const std::optional<std::string> bytes = bytes_of_spelling(spelling);
      const std::optional<TokenId> id = bytes ? vocabulary.find(*bytes) : std::nullopt;
      if (!id) {
        fail(fmt::format("'{}' is not in the vocabulary", spelling));
      }
      return id.value_or(0);
    };
    const TokenId left_id = id_of(left);
    const TokenId right_id = id_of(right);
    if (!table.add(left_id, right_id, id_of(left + right))) {
      fail(fmt::format("'{}' and '{}' are already merged by an earlier entry", left, right));
    }
  }
  return table;
}

// Adds one of added_tokens to the vocabulary and to the matcher that looks for it.
void add_token(const JsonNode& node, const std::string& file, TokenizerParts& parts) {
  const std::string content = node.at("content").name();
  const TokenId id = checked_id(node.at("id").integer(), file, node.at("id").pointer());
  for (const char* key : {"single_word", "lstrip", "rstrip"}) {
    require_unused(node, key, {false});
  }
  const Kind kind = node.at("special").boolean() ? Kind::special : Kind::added;
  if (!parts.vocabulary.add(id, content, kind)) {
    if (parts.vocabulary.find(content) != id || parts.vocabulary.kind(id) != Kind::ordinary) {
      node.fail(fmt::format("'{}' or its id {} already belongs to another token", content, id));
    }
    parts.vocabulary.set_kind(id, kind);
  }
  if (kind == Kind::special) {
    parts.special_ids.push_back(id);
  }
  if (node.has("normalized") ? node.at("normalized").boolean() : kind != Kind::special) {
    parts.normalised.add(nfc(content), id);
  } else {
    parts.verbatim.add(content, id);
  }
}

// A user's text must not be able to give a special token.
void check_special_tokens(const TokenizerFile& contents, const TokenizerParts& parts, const std::string& file) {
  const auto refuse = [&](TokenId id) {
    throw SpaceError(file, "/added_tokens",
                     fmt::format("the special token '{}' can come out of plain text, because the vocabulary has it too",
                                 parts.vocabulary.bytes(id)));
  };
  for (const TokenId id : parts.byte_tokens) {
    if (parts.vocabulary.kind(id) == Kind::special) {
      refuse(id);
    }
  }
  for (const auto& [left, right] : contents.merges) {
    const TokenId id = parts.vocabulary.find(bytes_of_spelling(left + right).value_or("")).value_or(-1);
    if (parts.vocabulary.kind(id) == Kind::special) {
      refuse(id);
    }
  }
}

SplitPattern compile_pattern(const JsonNode& place) {
  const std::string pattern = place.text();
  try {
    return SplitPattern(pattern);
  } catch (const Error& error) {
    place.fail(error.what());
  }
}

}  // namespace

TokenizerParts build_tokenizer(std::string_view text, const std::string& file) {
  const TokenizerFile contents = read_tokenizer_file(text, file);
  const JsonNode root(contents.settings, file);
  check_settings(root);
  SplitPattern pattern = compile_pattern(check_splitting(root.at("pre_tokenizer")));
  Vocabulary vocabulary = build_vocabulary(contents, file);
  const ByteTokens byte_tokens = find_byte_tokens(vocabulary, file);
  MergeTable merges = build_merges(contents, vocabulary, file);
  TokenizerParts parts{std::move(vocabulary), std::move(merges), byte_tokens, {}, {}, {}, {}, 0};
  parts.patterns.push_back(std::move(pattern));
  if (root.has_value("added_tokens")) {
    const JsonNode added = root.at("added_tokens");
    for (std::size_t i = 0; i < added.array_size(); ++i) {
      add_token(added.at(i), file, parts);
    }
  }
  std::sort(parts.special_ids.begin(), parts.special_ids.end());
  check_special_tokens(contents, parts, file);
  parts.id_count = parts.vocabulary.id_count();
  return parts;
}

}  // namespace pascaline
