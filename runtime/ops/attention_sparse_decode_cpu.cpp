#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/rounding.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/attention_sparse.hpp"

namespace pascaline::ops {
namespace {

// Keys that one thread takes at a time, whatever the number of threads.
constexpr std::int64_t kPartKeys = 128;

/// Neighbouring rows of the cache.
struct CachedRows {
  std::int64_t row;
  std::int64_t count;
};

/// One key head's keys, and what its parts give: largest score, sum of exp(score − most) and weighted sums of each
/// query head.
struct HeadWork {
  std::vector<std::int64_t> rows;
  std::vector<float> most;     // [parts, group]
  std::vector<double> weight;  // [parts, group]
  std::vector<float> values;   // [parts, group, head_dim]
};

struct SparseDecode {
  const AttentionSparseDecode& given;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t group;
  const float* queries;  ///< [heads, head_dim]
};

std::int64_t parts_of(const HeadWork& work) {
  return (static_cast<std::int64_t>(work.rows.size()) + kPartKeys - 1) / kPartKeys;
}

// Calls `use(rows, first)` for each run of neighbouring rows among keys `first` … `end`-1 of the head.
template <typename Use>
void for_runs(const HeadWork& work, std::int64_t begin, std::int64_t end, const Use& use) {
  for (std::int64_t first = begin; first < end;) {
    const std::int64_t row = work.rows[static_cast<std::size_t>(first)];
    std::int64_t count = 1;
    while (first + count < end && work.rows[static_cast<std::size_t>(first + count)] == row + count) {
      ++count;
    }
    use(CachedRows{row, count}, first - begin);
    first += count;
  }
}

void attend_sparse_part(const SparseDecode& of, HeadWork& work, std::int64_t kv_head, std::int64_t part) {
  const AttentionSparseDecode& given = of.given;
  const cpu::VectorKernels& best = cpu::vector_kernels();
  const std::int64_t begin = part * kPartKeys;
  const std::int64_t end = std::min(begin + kPartKeys, static_cast<std::int64_t>(work.rows.size()));
  const std::int64_t stride = of.kv_heads * of.head_dim;
  const std::int64_t head = kv_head * of.group;
  const float scale = 1.0F / std::sqrt(static_cast<float>(of.head_dim));
  float* scores = cpu::scratch(cpu::Scratch::first, of.group * kPartKeys);
  for_runs(work, begin, end, [&](const CachedRows& run, std::int64_t at) {
    const cpu::Rows<float> queries{of.queries + head * of.head_dim, of.head_dim, of.group, of.head_dim};
    cpu::with_elements(given.k, run.row * stride + kv_head * of.head_dim, [&](const auto* rows, const auto& kernels) {
      kernels.dot({rows, stride, run.count, of.head_dim}, queries, {scores + at, kPartKeys});
    });
  });
  const auto scale_scores = [&](const TensorView& scales, float factor) {
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const std::int64_t row = work.rows[static_cast<std::size_t>(begin + i)];
      const float by =
          factor * (is_given(scales) ? static_cast<const float*>(scales.data)[row * of.kv_heads + kv_head] : 1.0F);
      for (std::int64_t h = 0; h < of.group; ++h) {
        scores[h * kPartKeys + i] *= by;
      }
    }
  };
  scale_scores(given.k_scales, scale);
  for (std::int64_t h = 0; h < of.group; ++h) {
    const auto index = static_cast<std::size_t>(part * of.group + h);
    work.most[index] = best.maximum(scores + h * kPartKeys, end - begin);
    work.weight[index] = best.exp_sum(scores + h * kPartKeys, end - begin, work.most[index]);
  }
  if (is_given(given.v_scales)) {
    scale_scores(given.v_scales, 1);
  }
  float* sums = work.values.data() + part * of.group * of.head_dim;
  for_runs(work, begin, end, [&](const CachedRows& run, std::int64_t at) {
    const cpu::Rows<float> weights{scores + at, kPartKeys, of.group, run.count};
    cpu::with_elements(given.v, run.row * stride + kv_head * of.head_dim, [&](const auto* rows, const auto& kernels) {
      kernels.add_weighted({rows, stride, run.count, of.head_dim}, weights, {sums, of.head_dim});
    });
  });
}

void store_sparse_head(const AttentionSparseDecode& given, std::int64_t head, const float* values) {
  const std::int64_t width = given.q.shape[1];
  if (given.out.type != ElementType::int8) {
    cpu::store_floats(values, given.out, head * width, width);
    return;
  }
  const std::int64_t blocks = width / kActivationBlock;
  const TensorView out(cpu::element_at(given.out, head * width), ElementType::int8, {1, width});
  const TensorView scales(cpu::element_at(given.scales, head * blocks), ElementType::float32, {blocks, 1});
  cpu::store_rounded(values, width, out, scales, 0, false);
}

// Of query head `h` of the key head.
void merge_sparse_parts(const SparseDecode& of, const HeadWork& work, std::int64_t kv_head, std::int64_t h) {
  float overall = -std::numeric_limits<float>::infinity();
  for (std::int64_t part = 0; part < parts_of(work); ++part) {
    overall = std::max(overall, work.most[static_cast<std::size_t>(part * of.group + h)]);
  }
  std::vector<float> sums(static_cast<std::size_t>(of.head_dim));
  double weight = 0;
  for (std::int64_t part = 0; part < parts_of(work); ++part) {
    const auto index = static_cast<std::size_t>(part * of.group + h);
    const float factor = std::exp(work.most[index] - overall);
    weight += static_cast<double>(factor) * work.weight[index];
    for (std::size_t d = 0; d < sums.size(); ++d) {
      sums[d] += factor * work.values[index * sums.size() + d];
    }
  }
  for (float& sum : sums) {
    sum = weight > 0 ? static_cast<float>(sum / weight) : 0.0F;
  }
  store_sparse_head(of.given, kv_head * of.group + h, sums.data());
}

}  // namespace

void AttentionSparseDecode::compute() const {
  const std::int64_t heads = q.shape[0];
  const std::int64_t rows = std::clamp<std::int64_t>(*static_cast<const std::int32_t*>(length.data), 0, k.shape[0]);
  const std::int64_t size = heads * q.shape[1];
  const SparseDecode of{*this, k.shape[1], q.shape[1], heads / k.shape[1],
                        cpu::floats_at(q, 0, size, cpu::scratch(cpu::Scratch::shared, size))};
  std::vector<HeadWork> work(static_cast<std::size_t>(of.kv_heads));
  std::int64_t most_parts = 0;
  for (std::int64_t head = 0; head < of.kv_heads; ++head) {
    HeadWork& own = work[static_cast<std::size_t>(head)];
    if (rows > 0) {
      std::span<const std::int32_t> list;
      if (!mask.is_pattern()) {
        list = {static_cast<const std::int32_t*>(blocks.data) + (blocks.shape[0] > 1 ? head * blocks.shape[1] : 0),
                static_cast<std::size_t>(blocks.shape[1])};
      }
      own.rows = SeenKeys(mask, list, rows - 1, rows - 1, k.shape[0]).rows();
    }
    const auto states = static_cast<std::size_t>(parts_of(own) * of.group);
    own.most.resize(states);
    own.weight.resize(states);
    own.values.resize(states * static_cast<std::size_t>(of.head_dim));
    most_parts = std::max(most_parts, parts_of(own));
  }
  worker_pool().run(of.kv_heads * most_parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      HeadWork& own = work[static_cast<std::size_t>(i % of.kv_heads)];
      if (i / of.kv_heads < parts_of(own)) {
        attend_sparse_part(of, own, i % of.kv_heads, i / of.kv_heads);
      }
    }
  });
  for (std::int64_t head = 0; head < heads; ++head) {
    merge_sparse_parts(of, work[static_cast<std::size_t>(head / of.group)], head / of.group, head % of.group);
  }
}

}  // namespace pascaline::ops
