#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// Which keys j ≤ p a query at position p of a sequence sees: those with p − j < window, those with j < sinks, and,
/// with a stride, those in blocks of `block` keys whose number is a multiple of it. Blocks count from the first key.
/// With `window` 0 it is no pattern: what is seen is listed.
struct SparseMask {
  std::int64_t block = 64;  ///< a power of two from kMinBlock to kMaxBlock
  std::int64_t window = 0;
  std::int64_t sinks = 0;
  std::int64_t stride = 0;

  static constexpr std::int64_t kMinBlock = 16;
  static constexpr std::int64_t kMaxBlock = 128;

  [[nodiscard]] bool is_pattern() const noexcept { return window > 0; }
  [[nodiscard]] bool operator==(const SparseMask&) const noexcept = default;
};

/// Throws Error that names what does not fit: a block that is none of 16, 32, 64 and 128, numbers below 0, sinks that
/// are not whole blocks where there is a stride, sinks or a stride without a window.
void check_mask(const SparseMask& mask);

/// Blocks of keys that blocks of queries see, in host memory: for all heads, or for each key head.
struct BlockLists {
  std::int64_t width = 0;  ///< most entries of a list
  std::int64_t lists = 0;  ///< 1, or one for each key head
  std::int64_t rows = 0;   ///< blocks of queries
  /// [lists, rows, width]: ascending; after a list's end -1.
  std::vector<std::int32_t> entries;
};

/// For one key head, or all: the blocks that each block of queries sees.
using HeadBlocks = std::vector<std::vector<std::int32_t>>;

/// Packs them for `queries` queries that are the last of `keys` keys. Throws Error, naming head, query block and entry,
/// for lists that are not there for each block of queries, entries that are out of order, doubled or no block of the
/// keys, blocks that lie behind the queries, and queries that would see no key.
[[nodiscard]] BlockLists pack_block_lists(std::span<const HeadBlocks> heads, std::int64_t queries, std::int64_t keys,
                                          std::int64_t block);

/// The keys that some neighbouring queries see, in ascending order.
class SeenKeys {
 public:
  /// By a pattern, or with `list` by blocks, of queries at positions `first` … `last`; `keys` rows are there. Whatever
  /// the list says, they are rows that are there. A list ends before its first entry that is negative or lies behind
  /// the queries.
  SeenKeys(const SparseMask& mask, std::span<const std::int32_t> list, std::int64_t first, std::int64_t last,
           std::int64_t keys);

  struct Run {
    std::int64_t begin;
    std::int64_t end;
  };

  /// Rows of the cache. A single query sees all of them.
  [[nodiscard]] const std::vector<std::int64_t>& rows() const noexcept { return rows_; }
  /// Which of `rows()` from `begin` to `end` a query at that position sees, as ranges of them.
  void seen_by(std::int64_t position, std::int64_t begin, std::int64_t end, std::vector<Run>& runs) const;

 private:
  [[nodiscard]] bool sees(std::int64_t position, std::int64_t row) const noexcept;
  void add(std::int64_t begin, std::int64_t end);

  SparseMask mask_;
  std::int64_t keys_;
  std::vector<std::int64_t> rows_;
  std::int64_t always_begin_ = 0;  // of rows_, those that all of the queries see
  std::int64_t always_end_ = 0;
};

}  // namespace pascaline::ops
