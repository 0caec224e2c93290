#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/blas.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/ops/attention.hpp"

namespace pascaline::ops {
namespace {

// Rows of scores (queries times the heads that share a key head) and keys of one block: scores, keys and values of a
// block lie in a core's own cache.
constexpr std::int64_t kBlockRows = 128;
constexpr std::int64_t kBlockKeys = 256;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

// The operation's sizes, and what a thread needs for one block of queries.
struct Prefill {
  const AttentionPrefill& given;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t group;  ///< heads of queries a head of keys
  std::int64_t block;  ///< queries of a block
};

Prefill prefill_of(const AttentionPrefill& given) {
  const std::int64_t group = given.q.shape[1] / given.k.shape[1];
  return {given,
          given.q.shape[1],
          given.k.shape[1],
          given.q.shape[2],
          group,
          std::max<std::int64_t>(1, kBlockRows / group)};
}

// Keys that a query sees. Whatever stands in segment_starts, they are keys that are there.
Range visible_to(const Prefill& of, std::int64_t query) {
  const std::int64_t keys = of.given.k.shape[0];
  if (is_given(of.given.segment_starts)) {
    const auto* starts = static_cast<const std::int32_t*>(of.given.segment_starts.data);
    const auto* last = starts + of.given.segments();
    const auto* after = std::upper_bound(starts, last + 1, query);
    if (after == starts || after > last) {
      return {0, 0};
    }
    const std::int64_t begin = std::clamp<std::int64_t>(*(after - 1), 0, keys);
    return {begin, std::clamp<std::int64_t>(*after, begin, keys)};
  }
  if (of.given.causal) {
    return {0, std::clamp<std::int64_t>(keys - of.given.q.shape[0] + query + 1, 0, keys)};
  }
  return {0, keys};
}

/// State of the online softmax (Milakov and Gimelshein, 2018) of one block of queries: a row for each query and head.
struct Sums {
  std::int64_t rows;
  float* queries;  ///< [rows, head_dim]
  float* values;   ///< [rows, head_dim]: weighted sums, for `most` as the maximum
  float* scores;   ///< [rows, kBlockKeys]
  float* most;     ///< [rows]
  double* weight;  ///< [rows]: sums of exp(score − most)
};

Sums begin_sums(const Prefill& of, std::int64_t kv_head, std::int64_t first_query, std::int64_t queries) {
  const std::int64_t rows = queries * of.group;
  const std::int64_t size = rows * of.head_dim;
  Sums sums{};
  sums.rows = rows;
  sums.queries = cpu::scratch(cpu::Scratch::first, 2 * size + 4 * rows);
  sums.values = sums.queries + size;
  sums.weight = reinterpret_cast<double*>(sums.values + size);
  sums.most = sums.values + size + 2 * rows;
  sums.scores = cpu::scratch(cpu::Scratch::second, rows * kBlockKeys);
  const std::int64_t part = of.group * of.head_dim;
  for (std::int64_t i = 0; i < queries; ++i) {
    cpu::widen_to(of.given.q, (first_query + i) * row_stride(of.given.q) + kv_head * part, part,
                  sums.queries + i * part);
  }
  std::fill_n(sums.values, size, 0.0F);
  std::fill_n(sums.most, rows, kNothing);
  std::fill_n(sums.weight, rows, 0.0);
  return sums;
}

// One head's part of rows of the cache, as float32.
struct Block {
  const float* data;
  std::int64_t stride;
};

Block block_of(const Prefill& of, const TensorView& cache, const TensorView& scales, std::int64_t kv_head,
               const Range& keys, cpu::Scratch region) {
  const std::int64_t stride = row_stride(cache);
  const std::int64_t first = keys.begin * stride + kv_head * of.head_dim;
  if (cache.type == ElementType::float32) {
    return {static_cast<const float*>(cache.data) + first, stride};
  }
  float* room = cpu::scratch(region, kBlockKeys * of.head_dim);
  for (std::int64_t i = 0; i < keys.end - keys.begin; ++i) {
    float* row = room + i * of.head_dim;
    cpu::widen_to(cache, first + i * stride, of.head_dim, row);
    if (is_given(scales)) {
      const float scale = static_cast<const float*>(scales.data)[(keys.begin + i) * of.kv_heads + kv_head];
      for (std::int64_t d = 0; d < of.head_dim; ++d) {
        row[d] *= scale;
      }
    }
  }
  return {room, of.head_dim};
}

// Turns a row's scores into weights for the maximum so far, zeros where nothing is seen, and rescales its sums.
void weigh_row(const Prefill& of, const Sums& sums, std::int64_t row, float* scores, std::int64_t count,
               const Range& seen) {
  const std::int64_t visible = seen.end - seen.begin;
  std::fill_n(scores, visible > 0 ? seen.begin : count, 0.0F);
  if (visible <= 0) {
    return;
  }
  std::fill(scores + seen.end, scores + count, 0.0F);
  const cpu::VectorKernels& kernels = cpu::vector_kernels();
  const float before = sums.most[row];
  const float most = std::max(before, kernels.maximum(scores + seen.begin, visible));
  if (most > before) {
    const float factor = std::exp(before - most);
    float* values = sums.values + row * of.head_dim;
    for (std::int64_t d = 0; d < of.head_dim; ++d) {
      values[d] *= factor;
    }
    sums.weight[row] *= static_cast<double>(factor);
    sums.most[row] = most;
  }
  sums.weight[row] += kernels.exp_sum(scores + seen.begin, visible, most);
}

void add_keys(const Prefill& of, const cpu::Blas& blas, const Sums& sums, std::int64_t kv_head,
              std::int64_t first_query, const Range& keys) {
  const std::int64_t count = keys.end - keys.begin;
  const Block k = block_of(of, of.given.k, of.given.k_scales, kv_head, keys, cpu::Scratch::third);
  const float scale = 1.0F / std::sqrt(static_cast<float>(of.head_dim));
  blas.multiply_transposed(
      {sums.rows, count, of.head_dim, sums.queries, of.head_dim, k.data, k.stride, sums.scores, kBlockKeys, scale, 0});
  for (std::int64_t row = 0; row < sums.rows; ++row) {
    const Range seen = visible_to(of, first_query + row / of.group);
    const Range here{std::clamp<std::int64_t>(seen.begin - keys.begin, 0, count),
                     std::clamp<std::int64_t>(seen.end - keys.begin, 0, count)};
    weigh_row(of, sums, row, sums.scores + row * kBlockKeys, count, here);
  }
  const Block v = block_of(of, of.given.v, of.given.v_scales, kv_head, keys, cpu::Scratch::fourth);
  blas.multiply(
      {sums.rows, of.head_dim, count, sums.scores, kBlockKeys, v.data, v.stride, sums.values, of.head_dim, 1, 1});
}

void store_sums(const Prefill& of, const Sums& sums, std::int64_t kv_head, std::int64_t first_query,
                std::int64_t queries) {
  for (std::int64_t row = 0; row < sums.rows; ++row) {
    const double weight = sums.weight[row];
    const auto factor = static_cast<float>(weight == 0 ? 0.0 : 1.0 / weight);
    for (std::int64_t d = 0; d < of.head_dim; ++d) {
      sums.values[row * of.head_dim + d] *= factor;
    }
  }
  const std::int64_t part = of.group * of.head_dim;
  for (std::int64_t i = 0; i < queries; ++i) {
    cpu::store_floats(sums.values + i * part, of.given.out, (first_query + i) * of.heads * of.head_dim + kv_head * part,
                      part);
  }
}

void attend(const Prefill& of, const cpu::Blas& blas, std::int64_t kv_head, std::int64_t first_query) {
  const std::int64_t queries = std::min(of.block, of.given.q.shape[0] - first_query);
  Range all{of.given.k.shape[0], 0};
  for (std::int64_t i = 0; i < queries; ++i) {
    const Range seen = visible_to(of, first_query + i);
    if (seen.begin < seen.end) {
      all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
    }
  }
  const Sums sums = begin_sums(of, kv_head, first_query, queries);
  for (std::int64_t key = all.begin; key < all.end; key += kBlockKeys) {
    add_keys(of, blas, sums, kv_head, first_query, {key, std::min(key + kBlockKeys, all.end)});
  }
  store_sums(of, sums, kv_head, first_query, queries);
}

}  // namespace

void AttentionPrefill::compute() const {
  const cpu::Blas& blas = cpu::Blas::get();
  const Prefill of = prefill_of(*this);
  const std::int64_t blocks = (q.shape[0] + of.block - 1) / of.block;
  cpu::worker_pool().run(blocks * of.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      // The last queries first: with a causal mask they see the most.
      attend(of, blas, i % of.kv_heads, (blocks - 1 - i / of.kv_heads) * of.block);
    }
  });
}

}  // namespace pascaline::ops
