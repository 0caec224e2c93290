#pragma once

#include <cstdint>
#include <span>

#include "runtime/cpu/blas.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// Attention of many queries on the processor, a block of them at a time: what the operations with a dense and with a
/// block-sparse mask share.
struct PrefillBlocks {
  TensorView q;
  TensorView k;
  TensorView v;
  TensorView out;
  TensorView k_scales;
  TensorView v_scales;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t group;  ///< heads of queries a head of keys
  std::int64_t block;  ///< queries of a block

  /// Keys of a block: scores, keys and values of a block lie in a core's own cache.
  static constexpr std::int64_t kKeys = 256;

  template <typename Attention>
  explicit PrefillBlocks(const Attention& given)
      : PrefillBlocks(given.q, given.k, given.v, given.out, given.k_scales, given.v_scales) {}
  PrefillBlocks(const TensorView& queries, const TensorView& keys, const TensorView& values, const TensorView& result,
                const TensorView& key_scales, const TensorView& value_scales);
};

/// State of the online softmax (Milakov and Gimelshein, 2018) of one block of queries: a row for each query and head.
struct PrefillSums {
  std::int64_t rows;
  float* queries;  ///< [rows, head_dim]
  float* values;   ///< [rows, head_dim]: weighted sums, for `most` as the maximum
  float* scores;   ///< [rows, kKeys]
  float* most;     ///< [rows]
  double* weight;  ///< [rows]: sums of exp(score − most)
};

/// In this thread's scratch memory: regions first and second.
[[nodiscard]] PrefillSums begin_sums(const PrefillBlocks& of, std::int64_t kv_head, std::int64_t first_query,
                                     std::int64_t queries);

/// Some of a row's scores.
struct ScoreRange {
  std::int64_t begin;
  std::int64_t end;
};

/// Turns those of a row's `count` scores that are seen into weights for the maximum so far, the others into zeros, and
/// rescales the row's sums. Ranges ascend and are not empty.
void weigh_row(const PrefillBlocks& of, const PrefillSums& sums, std::int64_t row, std::int64_t count,
               std::span<const ScoreRange> seen);

/// One head's part of rows of the cache, as float32.
struct FloatBlock {
  const float* data;
  std::int64_t stride;
};

/// Scores of all rows for `count` keys, then, with the weights that became of them, their values.
void score_keys(const PrefillBlocks& of, const cpu::Blas& blas, const PrefillSums& sums, const FloatBlock& keys,
                std::int64_t count);
void add_weighted_values(const PrefillBlocks& of, const cpu::Blas& blas, const PrefillSums& sums,
                         const FloatBlock& values, std::int64_t count);

/// Writes the block's result.
void store_sums(const PrefillBlocks& of, const PrefillSums& sums, std::int64_t kv_head, std::int64_t first_query,
                std::int64_t queries);

/// Row `row` of one head's keys or values as float32, times its scale if there are scales.
void widen_cached_row(const PrefillBlocks& of, const TensorView& cache, const TensorView& scales, std::int64_t kv_head,
                      std::int64_t row, float* to);

}  // namespace pascaline::ops
