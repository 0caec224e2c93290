#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "model/text/vocabulary.hpp"

namespace pascaline {

/// The merges of a byte-pair encoding: which two neighbours become which token, and in which order of preference.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = kNoRank;
    TokenId result = 0;
  };
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  /// Room for that many merges.
  explicit MergeTable(std::size_t merges);

  /// Adds the next merge, whose rank is the number of those before it; false, and nothing is changed, if the pair has
  /// one already. At most as many as there is room for.
  [[nodiscard]] bool add(TokenId left, TokenId right, TokenId result);
  /// The merge of two neighbours; its rank is kNoRank if there is none.
  [[nodiscard]] Merge find(TokenId left, TokenId right) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    std::uint64_t pair = 0;
    Merge merge;  // no rank: the slot is free
  };
  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const noexcept;

  std::vector<Slot> slots_;  // a power of two of them, at most half of them taken
  std::size_t size_ = 0;
};

/// Stands for the token of a byte that has none.
inline constexpr TokenId kNoToken = -1;

/// Tokens of the 256 bytes, or kNoToken.
using ByteTokens = std::array<TokenId, 256>;

/// Encodes pieces of text: again and again the pair of neighbours with the lowest rank is merged, the leftmost if it
/// is there more than once. n log n time for a piece of n bytes. Holds the memory for it; one a thread.
class PieceEncoder {
 public:
  /// Both must outlive the encoder.
  PieceEncoder(const MergeTable& merges, const ByteTokens& bytes) : merges_(&merges), bytes_(&bytes) {}

  /// Appends the tokens of the piece, which is shorter than 4 GiB; bytes without a token are left out before merging.
  void append(std::string_view piece, std::vector<TokenId>& out);

 private:
  void merge_short();
  void merge_long();
  void merge_at(std::uint32_t left);
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t left) const noexcept;
  void queue(std::uint32_t left);

  struct Symbol {
    TokenId id;
    std::uint32_t rank;  // of the merge with the next symbol
    std::uint32_t previous;
    std::uint32_t next;
  };

  const MergeTable* merges_;
  const ByteTokens* bytes_;
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> queue_;  // a heap of rank and place; entries whose rank is no longer the place's are void
};

}  // namespace pascaline
