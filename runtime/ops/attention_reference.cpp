#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"
#include "runtime/ops/scale_reference.hpp"

namespace pascaline {
namespace {

/// Rows of one head of keys or values that a query sees.
struct Rows {
  const double* data;
  std::size_t stride;
  const double* scales;  ///< what each row's elements are multiplied with; nullptr: nothing
  std::size_t scale_stride;

  [[nodiscard]] const double* row(std::size_t index) const { return data + index * stride; }
  [[nodiscard]] double scale(std::size_t index) const { return scales == nullptr ? 1 : scales[index * scale_stride]; }
};

/// Rows `first` and on of key head `kv_head`, in the buffers `values` and `scales` of a cache.
Rows rows_of(const Problem& problem, const std::vector<double>& values, const std::vector<double>& scales,
             std::size_t first, std::size_t kv_head) {
  const auto stride = static_cast<std::size_t>(problem.dimension("KV_STRIDE"));
  const auto kv_heads = static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  return {values.data() + first * stride + kv_head * head_dim, stride,
          scales.empty() ? nullptr : scales.data() + first * kv_heads + kv_head, kv_heads};
}

/// What a query sees.
struct Keys {
  Rows k;
  Rows v;
  std::size_t count;
};

/// `out[head_dim] = softmax(q · kᵀ / sqrt(head_dim)) · v`; zeros if there is no key.
void attend(const double* q, const Keys& keys, std::size_t head_dim, double* out) {
  std::fill_n(out, head_dim, 0.0);
  std::vector<double> weights(keys.count);
  for (std::size_t i = 0; i < keys.count; ++i) {
    double dot = 0;
    for (std::size_t d = 0; d < head_dim; ++d) {
      dot += q[d] * keys.k.row(i)[d];
    }
    weights[i] = dot * keys.k.scale(i) / std::sqrt(static_cast<double>(head_dim));
  }
  if (weights.empty()) {
    return;
  }
  const double maximum = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) {
    weight = std::exp(weight - maximum);
    sum += weight;
  }
  for (std::size_t i = 0; i < keys.count; ++i) {
    const double weight = weights[i] / sum * keys.v.scale(i);
    for (std::size_t d = 0; d < head_dim; ++d) {
      out[d] += weight * keys.v.row(i)[d];
    }
  }
}

struct Range {
  std::size_t begin;
  std::size_t end;
};

/// The keys that query `row` sees: its segment's, those up to its own position, or all.
Range visible_keys(const Problem& problem, const std::vector<double>& segment_starts, std::size_t row) {
  const std::int64_t keys = problem.dimension("KEYS");
  if (problem.dimension("SEGMENTS") > 1) {
    const auto after = std::upper_bound(segment_starts.begin(), segment_starts.end(), static_cast<double>(row));
    return {static_cast<std::size_t>(*(after - 1)), static_cast<std::size_t>(*after)};
  }
  if (problem.dimension("CAUSAL") != 0) {
    const std::int64_t end = keys - problem.dimension("QUERIES") + static_cast<std::int64_t>(row) + 1;
    return {0, static_cast<std::size_t>(std::max<std::int64_t>(end, 0))};
  }
  return {0, static_cast<std::size_t>(keys)};
}

}  // namespace

// Attention of `q[QUERIES, HEADS, HEAD_DIM]` to `k` and `v`, rows Q_STRIDE and KV_STRIDE apart; inputs q, k, v,
// k_scales, v_scales, segment_starts. Queries that see no key give zeros. Uses all processors.
void reference_attention_prefill(const Problem& problem, std::span<const std::vector<double>> inputs,
                                 std::span<std::vector<double>> outputs) {
  const auto heads = static_cast<std::size_t>(problem.dimension("HEADS"));
  const auto group = heads / static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const auto queries = static_cast<std::size_t>(problem.dimension("QUERIES"));
  const auto q_stride = static_cast<std::size_t>(problem.dimension("Q_STRIDE"));
  worker_pool().run(queries * heads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t row = i / heads;
      const std::size_t head = i % heads;
      const Range range = visible_keys(problem, inputs[5], row);
      const Keys keys{rows_of(problem, inputs[1], inputs[3], range.begin, head / group),
                      rows_of(problem, inputs[2], inputs[4], range.begin, head / group), range.end - range.begin};
      attend(inputs[0].data() + row * q_stride + head * head_dim, keys, head_dim, outputs[0].data() + i * head_dim);
    }
  });
}

// Attention of one query a head to the first `length` of KEYS rows; inputs q, k, v, k_scales, v_scales,
// length; outputs out and its scales.
void reference_attention_decode(const Problem& problem, std::span<const std::vector<double>> inputs,
                                std::span<std::vector<double>> outputs) {
  const auto heads = static_cast<std::size_t>(problem.dimension("HEADS"));
  const auto group = heads / static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const auto length =
      static_cast<std::size_t>(std::clamp<double>(inputs[5][0], 0, static_cast<double>(problem.dimension("KEYS"))));
  for (std::size_t head = 0; head < heads; ++head) {
    const Keys keys{rows_of(problem, inputs[1], inputs[3], 0, head / group),
                    rows_of(problem, inputs[2], inputs[4], 0, head / group), length};
    attend(inputs[0].data() + head * head_dim, keys, head_dim, outputs[0].data() + head * head_dim);
  }
  scale_row(outputs[0], outputs[1], 0, 1, heads * head_dim, 32);
}

}  // namespace pascaline
