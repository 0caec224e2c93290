#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "model/text/byte_level.hpp"
#include "model/text/normalize.hpp"
#include "model/text/tokenizer_file.hpp"
#include "model/text/tokenizer_parts.hpp"
#include "model/text/tokenizer_settings.hpp"

namespace pascaline {
namespace {

using Kind = Vocabulary::Kind;

// Missing and null are false.
bool is_set(const JsonNode& node, std::string_view key) { return node.has_value(key) && node.at(key).boolean(); }

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

// A byte without a token (SmolLM2 has none for some control characters and some first bytes of UTF-8) is left out of
// what is encoded, as the Python package tokenizers does.
ByteTokens find_byte_tokens(const Vocabulary& vocabulary, const std::string& file) {
  ByteTokens tokens{};
  for (std::size_t byte = 0; byte < tokens.size(); ++byte) {
    const std::string text(1, static_cast<char>(static_cast<unsigned char>(byte)));
    tokens[byte] = vocabulary.find(text).value_or(kNoToken);
  }
  if (std::all_of(tokens.begin(), tokens.end(), [](TokenId id) { return id == kNoToken; })) {
    throw SpaceError(file, "/model/vocab", "no token is a single byte, so no text can be encoded");
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
  const TokenSides sides{is_set(node, "single_word"), is_set(node, "lstrip"), is_set(node, "rstrip")};
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
    parts.normalised.add(parts.normalises ? nfc(content) : content, id, sides);
  } else {
    parts.verbatim.add(content, id, sides);
  }
  if (sides.strips_left || sides.strips_right) {
    parts.sides.emplace(id, sides);
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

SplitPattern compile_pattern(const TextSplitting::Pattern& pattern, const std::string& file) {
  try {
    return SplitPattern(pattern.text);
  } catch (const Error& error) {
    throw SpaceError(file, pattern.place, error.what());
  }
}

std::optional<TokenId> checked_beginning(const JsonNode& root, const TokenizerParts& parts, const std::string& file) {
  const std::optional<std::int64_t> id = read_beginning(root);
  if (!id) {
    return std::nullopt;
  }
  const TokenId token = checked_id(*id, file, "/post_processor");
  if (parts.vocabulary.bytes(token).empty()) {
    throw SpaceError(file, "/post_processor", fmt::format("texts are to begin with token {}, which there is not", *id));
  }
  return token;
}

}  // namespace

TokenizerParts build_tokenizer(const TokenizerFile& contents, const std::string& file) {
  const JsonNode root(contents.settings, file);
  check_bpe_settings(root);
  const TextSplitting splitting = read_text_splitting(root);
  Vocabulary vocabulary = build_vocabulary(contents, file);
  const ByteTokens byte_tokens = find_byte_tokens(vocabulary, file);
  if (std::find(byte_tokens.begin(), byte_tokens.end(), kNoToken) != byte_tokens.end()) {
    check_no_unknown_token(root);
  }
  MergeTable merges = build_merges(contents, vocabulary, file);
  TokenizerParts parts{std::move(vocabulary), std::move(merges), byte_tokens, {}, {}, {}, {}, {}, 0};
  for (const TextSplitting::Pattern& pattern : splitting.patterns) {
    parts.patterns.push_back(compile_pattern(pattern, file));
  }
  parts.normalises = splitting.normalises;
  parts.whole_pieces = splitting.whole_pieces;
  if (root.has_value("added_tokens")) {
    const JsonNode added = root.at("added_tokens");
    for (std::size_t i = 0; i < added.array_size(); ++i) {
      add_token(added.at(i), file, parts);
    }
  }
  std::sort(parts.special_ids.begin(), parts.special_ids.end());
  check_special_tokens(contents, parts, file);
  parts.id_count = parts.vocabulary.id_count();
  parts.beginning = checked_beginning(root, parts, file);
  parts.place = file;
  return parts;
}

}  // namespace pascaline
