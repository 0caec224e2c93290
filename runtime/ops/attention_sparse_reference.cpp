#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"
#include "runtime/ops/scale_reference.hpp"

namespace pascaline {
namespace {

/// Of the problem, looked up once.
struct SparseSizes {
  std::int64_t block;
  std::int64_t window;
  std::int64_t sinks;
  std::int64_t stride;
  std::int64_t width;
  std::size_t kv_heads;
  std::size_t head_dim;

  explicit SparseSizes(const Problem& problem)
      : block(problem.dimension("BLOCK")),
        window(problem.dimension("WINDOW")),
        sinks(problem.dimension("SINKS")),
        stride(problem.dimension("STRIDE")),
        width(problem.dimension("WIDTH")),
        kv_heads(static_cast<std::size_t>(problem.dimension("KV_HEADS"))),
        head_dim(static_cast<std::size_t>(problem.dimension("HEAD_DIM"))) {}
};

/// What one query sees of one head's keys and values.
struct SparseQuery {
  const SparseSizes& sizes;
  std::span<const std::vector<double>> inputs;  ///< q, k, v, k_scales, v_scales, …
  const double* list;                           ///< of its block; nullptr: by pattern
  std::int64_t position;
  std::size_t kv_head;

  [[nodiscard]] bool sees(std::int64_t key) const {
    const std::int64_t block = key / sizes.block;
    if (key > position) {
      return false;
    }
    if (list == nullptr) {
      return position - key < sizes.window || key < sizes.sinks || (sizes.stride > 0 && block % sizes.stride == 0);
    }
    for (std::int64_t i = 0; i < sizes.width && list[i] >= 0 && list[i] <= static_cast<double>(block); ++i) {
      if (list[i] == static_cast<double>(block)) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] double at(std::size_t matrix, std::int64_t key, std::size_t column) const {
    const std::size_t row = static_cast<std::size_t>(key) * sizes.kv_heads + kv_head;
    const std::vector<double>& scales = inputs[matrix + 2];
    return inputs[matrix][row * sizes.head_dim + column] * (scales.empty() ? 1 : scales[row]);
  }
};

/// `out[head_dim] = softmax(q · kᵀ / sqrt(head_dim)) · v` over the keys that are seen; zeros if there is none.
void attend_sparsely(const SparseQuery& of, const double* q, std::size_t head_dim, double* out) {
  std::fill_n(out, head_dim, 0.0);
  std::vector<std::int64_t> keys;
  std::vector<double> weights;
  for (std::int64_t key = 0; key <= of.position; ++key) {
    if (of.sees(key)) {
      double dot = 0;
      for (std::size_t d = 0; d < head_dim; ++d) {
        dot += q[d] * of.at(1, key, d);
      }
      keys.push_back(key);
      weights.push_back(dot / std::sqrt(static_cast<double>(head_dim)));
    }
  }
  if (keys.empty()) {
    return;
  }
  const double maximum = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) {
    weight = std::exp(weight - maximum);
    sum += weight;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t d = 0; d < head_dim; ++d) {
      out[d] += weights[i] / sum * of.at(2, keys[i], d);
    }
  }
}

}  // namespace

// Attention of `q[QUERIES, HEADS, HEAD_DIM]` to those of KEYS rows of k and v that a block-sparse mask lets through;
// inputs q, k, v, k_scales, v_scales, blocks. Uses all processors.
void reference_attention_sparse_prefill(const Problem& problem, std::span<const std::vector<double>> inputs,
                                        std::span<std::vector<double>> outputs) {
  const auto heads = static_cast<std::size_t>(problem.dimension("HEADS"));
  const auto group = heads / static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const SparseSizes sizes(problem);
  const std::int64_t queries = problem.dimension("QUERIES");
  const std::int64_t block = problem.dimension("BLOCK");
  const std::int64_t lists = problem.dimension("LISTS");
  const std::int64_t list_rows = (queries + block - 1) / block;
  worker_pool().run(static_cast<std::size_t>(queries) * heads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto row = static_cast<std::int64_t>(i / heads);
      const std::size_t kv_head = i % heads / group;
      const std::int64_t list = (lists > 1 ? static_cast<std::int64_t>(kv_head) : 0) * list_rows + row / block;
      const SparseQuery query{sizes, inputs, lists > 0 ? inputs[5].data() + list * sizes.width : nullptr,
                              problem.dimension("KEYS") - queries + row, kv_head};
      attend_sparsely(query, inputs[0].data() + i * head_dim, head_dim, outputs[0].data() + i * head_dim);
    }
  });
}

// The same of one query a head at position `length` - 1; inputs q, k, v, k_scales, v_scales, length, blocks; outputs
// out and its scales.
void reference_attention_sparse_decode(const Problem& problem, std::span<const std::vector<double>> inputs,
                                       std::span<std::vector<double>> outputs) {
  const auto heads = static_cast<std::size_t>(problem.dimension("HEADS"));
  const auto group = heads / static_cast<std::size_t>(problem.dimension("KV_HEADS"));
  const auto head_dim = static_cast<std::size_t>(problem.dimension("HEAD_DIM"));
  const SparseSizes sizes(problem);
  const std::int64_t lists = problem.dimension("LISTS");
  const auto length =
      static_cast<std::int64_t>(std::clamp<double>(inputs[5][0], 0, static_cast<double>(problem.dimension("KEYS"))));
  for (std::size_t head = 0; head < heads; ++head) {
    const std::int64_t list = lists > 1 ? static_cast<std::int64_t>(head / group) : 0;
    const SparseQuery query{sizes, inputs, lists > 0 ? inputs[6].data() + list * sizes.width : nullptr, length - 1,
                            head / group};
    attend_sparsely(query, inputs[0].data() + head * head_dim, head_dim, outputs[0].data() + head * head_dim);
  }
  scale_row(outputs[0], outputs[1], 0, 1, heads * head_dim, 32);
}

}  // namespace pascaline
