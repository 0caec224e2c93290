#include <algorithm>
#include <cmath>

#include "core/util/parallel.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

// Rows of `values`, KV_STRIDE apart, each head times its scale; without scales, which int8 alone has, as they are.
std::vector<double> scaled(const Problem& problem, const std::vector<double>& values,
                           const std::vector<double>& scales) {
  std::vector<double> result = values;
  const auto kv_heads = static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const auto stride = static_cast<std::size_t>(problem.dimension("KV_STRIDE"));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    double* head = result.data() + i / kv_heads * stride + i % kv_heads * head_dim;
    std::transform(head, head + head_dim, head, [&](double value) { return value * scales[i]; });
  }
  return result;
}

/// Rows of one head of keys and values that a query sees.
struct Keys {
  const double* k;
  const double* v;
  std::size_t stride;
  std::size_t count;
};

/// `out[head_dim] = softmax(q · kᵀ / sqrt(head_dim)) · v`; zeros if there is no key.
void attend(const double* q, const Keys& keys, std::size_t head_dim, double* out) {
  std::fill_n(out, head_dim, 0.0);
  std::vector<double> weights(keys.count);
  for (std::size_t i = 0; i < keys.count; ++i) {
    double dot = 0;
    for (std::size_t d = 0; d < head_dim; ++d) {
      dot += q[d] * keys.k[i * keys.stride + d];
    }
    weights[i] = dot / std::sqrt(static_cast<double>(head_dim));
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
    for (std::size_t d = 0; d < head_dim; ++d) {
      out[d] += weights[i] / sum * keys.v[i * keys.stride + d];
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
  const auto kv_stride = static_cast<std::size_t>(problem.dimension("KV_STRIDE"));
  const std::vector<double> k = scaled(problem, inputs[1], inputs[3]);
  const std::vector<double> v = scaled(problem, inputs[2], inputs[4]);
  parallel_for(queries * heads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t row = i / heads;
      const std::size_t head = i % heads;
      const Range range = visible_keys(problem, inputs[5], row);
      const std::size_t first = range.begin * kv_stride + head / group * head_dim;
      const Keys keys{k.data() + first, v.data() + first, kv_stride, range.end - range.begin};
      attend(inputs[0].data() + row * q_stride + head * head_dim, keys, head_dim, outputs[0].data() + i * head_dim);
    }
  });
}

// Attention of one query a head to the first `length` of KEYS rows; inputs q, k, v, k_scales, v_scales,
// length.
void reference_attention_decode(const Problem& problem, std::span<const std::vector<double>> inputs,
                                std::span<std::vector<double>> outputs) {
  const auto heads = static_cast<std::size_t>(problem.dimension("HEADS"));
  const auto group = heads / static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const auto kv_stride = static_cast<std::size_t>(problem.dimension("KV_STRIDE"));
  const auto length =
      static_cast<std::size_t>(std::clamp<double>(inputs[5][0], 0, static_cast<double>(problem.dimension("KEYS"))));
  const std::vector<double> k = scaled(problem, inputs[1], inputs[3]);
  const std::vector<double> v = scaled(problem, inputs[2], inputs[4]);
  for (std::size_t head = 0; head < heads; ++head) {
    const std::size_t first = head / group * head_dim;
    const Keys keys{k.data() + first, v.data() + first, kv_stride, length};
    attend(inputs[0].data() + head * head_dim, keys, head_dim, outputs[0].data() + head * head_dim);
  }
}

}  // namespace pascaline
