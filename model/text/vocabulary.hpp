#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pascaline {

/// Number of a token, from 0: a row of the model's embedding.
using TokenId = std::int32_t;

/// No vocabulary is larger: ids are below.
inline constexpr std::int64_t kMaxTokenIds = 1 << 24;

/// The tokens of a model: ids and bytes, both ways. Ids may have gaps.
class Vocabulary {
 public:
  enum class Kind : std::uint8_t { none, ordinary, added, special };

  /// Adds a token; false, and nothing is changed, if the id or the bytes are taken. `id` is within 0…kMaxTokenIds-1,
  /// `bytes` not empty.
  [[nodiscard]] bool add(TokenId id, std::string_view bytes, Kind kind);
  /// Says of a token that is there what it is.
  void set_kind(TokenId id, Kind kind) { tokens_[static_cast<std::size_t>(id)].kind = kind; }

  [[nodiscard]] std::optional<TokenId> find(std::string_view bytes) const;
  /// `none` for an id without a token, also beyond the last.
  [[nodiscard]] Kind kind(TokenId id) const noexcept;
  /// Bytes of the token, valid while the vocabulary is; empty for an id without one.
  [[nodiscard]] std::string_view bytes(TokenId id) const noexcept;
  /// One more than the largest id that has a token.
  [[nodiscard]] std::size_t id_count() const noexcept { return tokens_.size(); }
  /// Number of tokens.
  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
  /// Makes room for that many tokens.
  void reserve(std::size_t tokens);

 private:
  struct Token {
    std::string_view bytes;  // of the key in ids_, which does not move
    Kind kind = Kind::none;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<Token> tokens_;
};

}  // namespace pascaline
