#include "runtime/ops/prefill_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/ops/checks.hpp"

namespace pascaline::ops {
namespace {

// Rows of scores (queries times the heads that share a key head) of one block.
constexpr std::int64_t kBlockRows = 128;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

}  // namespace

PrefillBlocks::PrefillBlocks(const TensorView& queries, const TensorView& keys, const TensorView& values,
                             const TensorView& result, const TensorView& key_scales, const TensorView& value_scales)
    : q(queries),
      k(keys),
      v(values),
      out(result),
      k_scales(key_scales),
      v_scales(value_scales),
      heads(q.shape[1]),
      kv_heads(k.shape[1]),
      head_dim(q.shape[2]),
      group(heads / kv_heads),
      block(std::max<std::int64_t>(1, kBlockRows / group)) {}

PrefillSums begin_sums(const PrefillBlocks& of, std::int64_t kv_head, std::int64_t first_query, std::int64_t queries) {
  const std::int64_t rows = queries * of.group;
  const std::int64_t size = rows * of.head_dim;
  PrefillSums sums{};
  sums.rows = rows;
  sums.queries = cpu::scratch(cpu::Scratch::first, 2 * size + 4 * rows);
  sums.values = sums.queries + size;
  sums.weight = reinterpret_cast<double*>(sums.values + size);
  sums.most = sums.values + size + 2 * rows;
  sums.scores = cpu::scratch(cpu::Scratch::second, rows * PrefillBlocks::kKeys);
  const std::int64_t part = of.group * of.head_dim;
  for (std::int64_t i = 0; i < queries; ++i) {
    cpu::widen_to(of.q, (first_query + i) * row_stride(of.q) + kv_head * part, part, sums.queries + i * part);
  }
  std::fill_n(sums.values, size, 0.0F);
  std::fill_n(sums.most, rows, kNothing);
  std::fill_n(sums.weight, rows, 0.0);
  return sums;
}

void weigh_row(const PrefillBlocks& of, const PrefillSums& sums, std::int64_t row, std::int64_t count,
               std::span<const ScoreRange> seen) {
  float* scores = sums.scores + row * PrefillBlocks::kKeys;
  std::int64_t after = 0;  // the last range that was seen
  for (const ScoreRange& range : seen) {
    std::fill(scores + after, scores + range.begin, 0.0F);
    after = range.end;
  }
  std::fill(scores + after, scores + count, 0.0F);
  if (seen.empty()) {
    return;
  }
  const cpu::VectorKernels& kernels = cpu::vector_kernels();
  const float before = sums.most[row];
  float most = before;
  for (const ScoreRange& range : seen) {
    most = std::max(most, kernels.maximum(scores + range.begin, range.end - range.begin));
  }
  if (most > before) {
    const float factor = std::exp(before - most);
    float* values = sums.values + row * of.head_dim;
    for (std::int64_t d = 0; d < of.head_dim; ++d) {
      values[d] *= factor;
    }
    sums.weight[row] *= static_cast<double>(factor);
    sums.most[row] = most;
  }
  for (const ScoreRange& range : seen) {
    sums.weight[row] += kernels.exp_sum(scores + range.begin, range.end - range.begin, most);
  }
}

void score_keys(const PrefillBlocks& of, const cpu::Blas& blas, const PrefillSums& sums, const FloatBlock& keys,
                std::int64_t count) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(of.head_dim));
  blas.multiply_transposed({sums.rows, count, of.head_dim, sums.queries, of.head_dim, keys.data, keys.stride,
                            sums.scores, PrefillBlocks::kKeys, scale, 0});
}

void add_weighted_values(const PrefillBlocks& of, const cpu::Blas& blas, const PrefillSums& sums,
                         const FloatBlock& values, std::int64_t count) {
  blas.multiply({sums.rows, of.head_dim, count, sums.scores, PrefillBlocks::kKeys, values.data, values.stride,
                 sums.values, of.head_dim, 1, 1});
}

void store_sums(const PrefillBlocks& of, const PrefillSums& sums, std::int64_t kv_head, std::int64_t first_query,
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
    cpu::store_floats(sums.values + i * part, of.out, (first_query + i) * of.heads * of.head_dim + kv_head * part,
                      part);
  }
}

void widen_cached_row(const PrefillBlocks& of, const TensorView& cache, const TensorView& scales, std::int64_t kv_head,
                      std::int64_t row, float* to) {
  cpu::widen_to(cache, row * row_stride(cache) + kv_head * of.head_dim, of.head_dim, to);
  if (is_given(scales)) {
    const float scale = static_cast<const float*>(scales.data)[row * of.kv_heads + kv_head];
    for (std::int64_t d = 0; d < of.head_dim; ++d) {
      to[d] *= scale;
    }
  }
}

}  // namespace pascaline::ops
