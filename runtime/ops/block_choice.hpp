#pragma once

#include "runtime/ops/operation.hpp"

// How top-k attention chooses blocks of keys: means of the keys of each block, products of these with the mean of a
// block of queries, and the blocks with the largest of those.
namespace pascaline::ops {

/// Means of the keys of each block of a cache that its last `added` rows have filled; other means stay as they are.
struct PoolBlocks {
  static constexpr const char* kName = "pool_blocks";

  TensorView k;              ///< [KEYS, KV_HEADS, HEAD_DIM], float32, float16 or int8
  TensorView length;         ///< [1], int32, on the device: rows that are there; held to 0 … KEYS
  TensorView means;          ///< [ceil(KEYS / block), KV_HEADS, HEAD_DIM], float32; changed
  std::int64_t block = 64;   ///< rows of a block
  std::int64_t added = 1;    ///< 1 to KEYS
  TensorView k_scales = {};  ///< [KEYS, KV_HEADS], float32; with int8 only

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("k", self.k, Use::read);
    visit("k_scales", self.k_scales, Use::read);
    visit("length", self.length, Use::read);
    visit("means", self.means, Use::change);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// The mean of each block of queries, over the heads that read a key head, times the mean of each block of keys.
/// Queries are the last of `length` rows, which is held to QUERIES … KEYS; the score of a block of keys that ends at or
/// behind the first query of a block is 0.
struct ScoreBlocks {
  static constexpr const char* kName = "score_blocks";

  TensorView q;             ///< [QUERIES, HEADS, HEAD_DIM], float32 or float16
  TensorView means;         ///< [blocks of KEYS, KV_HEADS, HEAD_DIM], float32
  TensorView length;        ///< [1], int32, on the device
  TensorView scores;        ///< [KV_HEADS, blocks of QUERIES, blocks of KEYS], float32
  std::int64_t keys = 1;    ///< KEYS: at least QUERIES
  std::int64_t block = 64;  ///< queries and keys of a block

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("q", self.q, Use::read);
    visit("means", self.means, Use::read);
    visit("length", self.length, Use::read);
    visit("scores", self.scores, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

/// Lists for AttentionSparsePrefill or AttentionSparseDecode: of the n blocks of keys up to its last query a block of
/// queries gets n · part / 10⁶, rounded up, at most WIDTH: the first, those of the queries, and those with the largest
/// scores. Of equal scores that of the earlier block counts more; one that is no number counts least.
struct ChooseBlocks {
  static constexpr const char* kName = "choose_blocks";

  TensorView scores;  ///< [LISTS, blocks of QUERIES, blocks of KEYS], float32; at most kMaxBlocks of KEYS
  TensorView length;  ///< [1], int32, on the device; held to QUERIES … KEYS
  TensorView blocks;  ///< [LISTS, blocks of QUERIES, WIDTH], int32; WIDTH at least 3, or the blocks of KEYS
  std::int64_t queries = 1;
  std::int64_t keys = 1;     ///< at least QUERIES
  std::int64_t block = 64;   ///< queries and keys of a block
  std::int64_t part = kAll;  ///< of the blocks, in millionths: 1 to kAll

  static constexpr std::int64_t kAll = 1'000'000;
  static constexpr std::int64_t kMaxBlocks = 8192;

  /// The longest list for so many keys.
  [[nodiscard]] static std::int64_t width_for(std::int64_t keys, std::int64_t block, std::int64_t part) noexcept;

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("scores", self.scores, Use::read);
    visit("length", self.length, Use::read);
    visit("blocks", self.blocks, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
