#include "model/text/gguf_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "model/text/byte_level.hpp"
#include "model/text/end_tokens.hpp"
#include "model/text/pre_tokenizer.hpp"
#include "model/text/tokenizer_parts.hpp"
#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

using TokenKind = Vocabulary::Kind;

// Types of tokens, with the numbers of the format.
enum class GgufTokenType : std::int64_t { normal = 1, unknown, control, user_defined, unused, byte };

class GgufTokenizerBuilder {
 public:
  GgufTokenizerBuilder(const GgufTokenizerData& data, const std::string& file)
      : data_(&data), file_(&file), pre_(&checked_pre_tokenizer()) {}

  [[nodiscard]] const PreTokenizer& pre() const noexcept { return *pre_; }

  TokenizerParts parts() const {
    const std::vector<std::string_view>& tokens = list(data_->tokens, "tokens");
    Vocabulary vocabulary = make_vocabulary(tokens);
    const ByteTokens bytes = bytes_of(vocabulary);
    MergeTable merges = make_merges(vocabulary);
    TokenizerParts out{std::move(vocabulary), std::move(merges), bytes, {}, {}, {}, {}, {}, tokens.size()};
    for (const std::string_view pattern : pre_->patterns) {
      out.patterns.emplace_back(std::string(pattern));
    }
    out.place = fmt::format("{}: key 'tokenizer.ggml.tokens'", *file_);
    out.normalises = pre_->normalises;
    out.whole_pieces = pre_->whole_pieces;
    for (TokenId id = 0; static_cast<std::size_t>(id) < tokens.size(); ++id) {
      const TokenKind kind = out.vocabulary.kind(id);
      if (kind == TokenKind::special || kind == TokenKind::added) {
        out.verbatim.add(std::string(out.vocabulary.bytes(id)), id);
      }
      if (kind == TokenKind::special) {
        out.special_ids.push_back(id);
      }
    }
    return out;
  }

  std::optional<TokenId> checked_id(std::optional<std::int64_t> id, std::string_view key) const {
    if (!id) {
      return std::nullopt;
    }
    const std::size_t count = data_->tokens->size();
    if (*id < 0 || static_cast<std::size_t>(*id) >= count) {
      fail(key, fmt::format("there is no token {}: ids go from 0 to {}", *id, count - 1));
    }
    return static_cast<TokenId>(*id);
  }

  [[noreturn]] void fail(std::string_view key, const std::string& problem) const {
    throw Error(fmt::format("{}: key 'tokenizer.ggml.{}': {}", *file_, key, problem));
  }

 private:
  template <class T>
  const T& list(const std::optional<T>& given, std::string_view key) const {
    if (!given) {
      fail(key, "is missing, and text needs it; convert the model again with its tokenizer");
    }
    if (given->empty()) {
      fail(key, "is an empty list");
    }
    return *given;
  }

  const PreTokenizer& checked_pre_tokenizer() const {
    if (!data_->model) {
      fail("model", "is missing, and text needs it; convert the model again with its tokenizer");
    }
    if (*data_->model != "gpt2") {
      fail("model", fmt::format("tokenizers of the kind '{}' are not supported, only 'gpt2' (byte-level BPE)",
                                valid_utf8(*data_->model)));
    }
    if (!data_->pre) {
      fail("pre",
           "is missing, so it is not known how text is to be split; convert the model again with a converter that "
           "writes it");
    }
    const PreTokenizer* const found = find_pre_tokenizer(*data_->pre);
    if (found == nullptr) {
      std::vector<std::string_view> names;
      for (const PreTokenizer& each : pre_tokenizers()) {
        names.push_back(each.name);
      }
      fail("pre",
           fmt::format(
               "'{}' is not a known way to split text (known: {}); if the model splits it as one of these "
               "does, gguf-new-metadata --pre-tokenizer NAME, of the Python package gguf, writes that into a copy",
               valid_utf8(*data_->pre), fmt::join(names, ", ")));
    }
    for (const auto& [value, key] :
         {std::pair(data_->add_space_prefix, "add_space_prefix"), std::pair(data_->add_eos, "add_eos_token")}) {
      if (value.value_or(false)) {
        fail(key, "true is not supported for a byte-level tokenizer");
      }
    }
    return *found;
  }

  Vocabulary make_vocabulary(const std::vector<std::string_view>& tokens) const {
    const std::vector<std::int64_t>& types = list(data_->types, "token_type");
    if (types.size() != tokens.size()) {
      fail("token_type", fmt::format("has {} entries for {} tokens", types.size(), tokens.size()));
    }
    if (tokens.size() > static_cast<std::size_t>(kMaxTokenIds)) {
      fail("tokens", fmt::format("has {} tokens, more than the {} that are supported", tokens.size(), kMaxTokenIds));
    }
    Vocabulary out;
    out.reserve(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::optional<TokenKind> kind = kind_of(types[i], i);
      if (kind) {
        add_token(out, static_cast<TokenId>(i), tokens[i], *kind);
      }
    }
    return out;
  }

  // Nothing for an id that has no text.
  std::optional<TokenKind> kind_of(std::int64_t type, std::size_t id) const {
    switch (static_cast<GgufTokenType>(type)) {
      case GgufTokenType::normal:
        return TokenKind::ordinary;
      case GgufTokenType::unknown:
      case GgufTokenType::control:
        return TokenKind::special;
      case GgufTokenType::user_defined:
        return TokenKind::added;
      case GgufTokenType::unused:
        return std::nullopt;
      case GgufTokenType::byte:
        break;
    }
    fail("token_type", fmt::format("token {} has the type {}, which a byte-level tokenizer does not have", id, type));
  }

  void add_token(Vocabulary& vocabulary, TokenId id, std::string_view spelling, TokenKind kind) const {
    const auto refuse = [&](std::string_view problem) {
      fail("tokens", fmt::format("token {} ('{}') {}", id, valid_utf8(spelling), problem));
    };
    const std::optional<std::string> bytes =
        kind == TokenKind::ordinary ? bytes_of_spelling(spelling) : std::string(spelling);
    if (!bytes) {
      refuse("is not spelled in the characters that represent bytes");
    } else if (bytes->empty()) {
      refuse("is empty");
    } else if (!vocabulary.add(id, *bytes, kind)) {
      refuse(fmt::format("is a duplicate of token {}", vocabulary.find(*bytes).value_or(0)));
    }
  }

  ByteTokens bytes_of(const Vocabulary& vocabulary) const {
    ByteTokens out{};
    bool has_any = false;
    for (std::size_t byte = 0; byte < out.size(); ++byte) {
      out[byte] =
          vocabulary.find(std::string(1, static_cast<char>(static_cast<unsigned char>(byte)))).value_or(kNoToken);
      check_not_special(vocabulary, out[byte], "tokens");
      has_any = has_any || out[byte] != kNoToken;
    }
    if (!has_any) {
      fail("tokens", "no token is a single byte, so no text can be encoded");
    }
    return out;
  }

  MergeTable make_merges(const Vocabulary& vocabulary) const {
    const std::vector<std::string_view>& merges = list(data_->merges, "merges");
    MergeTable table(merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const auto refuse = [&](std::string_view problem) {
        fail("merges", fmt::format("entry {} ('{}') {}", i, valid_utf8(merges[i]), problem));
      };
      const std::size_t space = merges[i].find(' ');
      if (space == std::string_view::npos || merges[i].find(' ', space + 1) != std::string_view::npos) {
        refuse("is not two tokens with a space between them");
      }
      const std::optional<std::string> left = bytes_of_spelling(merges[i].substr(0, space));
      const std::optional<std::string> right = bytes_of_spelling(merges[i].substr(space + 1));
      const auto find = [&](const std::optional<std::string>& bytes) {
        return bytes ? vocabulary.find(*bytes) : std::nullopt;
      };
      const std::optional<TokenId> left_id = find(left);
      const std::optional<TokenId> right_id = find(right);
      if (!left_id || !right_id) {
        refuse("names a token that the vocabulary does not have");
      }
      const std::optional<TokenId> result = vocabulary.find(*left + *right);
      if (!result) {
        refuse("gives a token that the vocabulary does not have");
      }
      check_not_special(vocabulary, *result, "merges");
      if (!table.add(*left_id, *right_id, *result)) {
        refuse("is a duplicate of an earlier one");
      }
    }
    return table;
  }

  // A user's text must not be able to give a special token.
  void check_not_special(const Vocabulary& vocabulary, TokenId id, std::string_view key) const {
    if (vocabulary.kind(id) == TokenKind::special) {
      fail(key,
           fmt::format("the special token {} ('{}') can come out of plain text", id, valid_utf8(vocabulary.bytes(id))));
    }
  }

  const GgufTokenizerData* data_;
  const std::string* file_;
  const PreTokenizer* pre_;
};

}  // namespace

GgufTokenizer build_gguf_tokenizer(const GgufTokenizerData& data, const std::string& file, std::size_t embedding_rows) {
  const GgufTokenizerBuilder builder(data, file);
  Tokenizer tokenizer = Tokenizer::of_parts(builder.parts(), file, embedding_rows);
  const std::optional<TokenId> bos = builder.checked_id(data.bos, "bos_token_id");
  const std::optional<TokenId> pad = builder.checked_id(data.pad, "padding_token_id");
  const bool adds_bos = data.add_bos.value_or(builder.pre().adds_bos);
  if (adds_bos && !bos) {
    builder.fail("bos_token_id", "is missing, and texts are to begin with it");
  }
  std::vector<TokenId> named;
  for (const auto& [id, key] : {std::pair(data.eos, "eos_token_id"), std::pair(data.eot, "eot_token_id"),
                                std::pair(data.eom, "eom_token_id")}) {
    if (const std::optional<TokenId> end = builder.checked_id(id, key)) {
      named.push_back(*end);
    }
  }
  std::vector<TokenId> ends = gguf_end_tokens(tokenizer, named);
  return {std::move(tokenizer), bos, pad, adds_bos, std::move(ends)};
}

}  // namespace pascaline
