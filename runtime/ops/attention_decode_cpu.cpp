#include <algorithm>
#include <cmath>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/rounding.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/attention.hpp"

namespace pascaline::ops {
namespace {

// Rows of the cache that are taken together for one head after another, so that memory is read in its order.
constexpr std::int64_t kRowsTogether = 8;

// Keys of the part of the cache that one thread takes: of the length alone, so that the number of threads does not
// change a result. Enough parts for threads to share, and few enough that merging them is little work.
std::int64_t keys_of_part(std::int64_t length) {
  constexpr std::int64_t kParts = 32;
  return std::clamp<std::int64_t>((length / kParts + kRowsTogether - 1) / kRowsTogether * kRowsTogether, 32, 512);
}

/// Sizes of the operation, and what its threads share.
struct Decode {
  const AttentionDecode& given;
  std::int64_t length;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t group;  ///< heads of queries a head of keys
  std::int64_t part_keys;
  std::int64_t parts;
  const float* queries;  ///< [heads, head_dim]
  float* values;         ///< [heads, parts, head_dim]: weighted sums
  float* most;           ///< [heads, parts]: largest score
  double* weight;        ///< [heads, parts]: sum of exp(score − most)
};

Decode decode_of(const AttentionDecode& given, std::int64_t length) {
  const std::int64_t heads = given.q.shape[0];
  const std::int64_t head_dim = given.q.shape[1];
  const std::int64_t part_keys = keys_of_part(length);
  const std::int64_t parts = (length + part_keys - 1) / part_keys;
  const std::int64_t sums = heads * parts;
  float* room = cpu::scratch(cpu::Scratch::shared, sums * (head_dim + 3));
  Decode of{given,
            length,
            given.k.shape[1],
            head_dim,
            heads / given.k.shape[1],
            part_keys,
            parts,
            cpu::floats_at(given.q, 0, heads * head_dim, cpu::scratch(cpu::Scratch::shared_too, heads * head_dim)),
            room,
            room + sums * (head_dim + 2),
            nullptr};
  of.weight = reinterpret_cast<double*>(room + sums * head_dim);  // head_dim is even
  return of;
}

/// Some neighbouring rows of the cache.
struct Keys {
  std::int64_t first;
  std::int64_t count;
};

// Calls `use(keys, kv_head)` for a few rows of the part at a time, and each head of these.
template <typename Use>
void for_rows_and_heads(const Decode& of, const Keys& part, const Use& use) {
  for (std::int64_t at = 0; at < part.count; at += kRowsTogether) {
    for (std::int64_t kv_head = 0; kv_head < of.kv_heads; ++kv_head) {
      use(Keys{part.first + at, std::min(kRowsTogether, part.count - at)}, kv_head);
    }
  }
}

// `scores[heads, part_keys]` = queries · keys.
void score_part(const Decode& of, const Keys& part, float* scores) {
  const std::int64_t stride = row_stride(of.given.k);
  for_rows_and_heads(of, part, [&](const Keys& keys, std::int64_t kv_head) {
    const std::int64_t head = kv_head * of.group;
    const cpu::Rows<float> queries{of.queries + head * of.head_dim, of.head_dim, of.group, of.head_dim};
    const cpu::FloatRows sums{scores + head * of.part_keys + keys.first - part.first, of.part_keys};
    cpu::with_elements(of.given.k, keys.first * stride + kv_head * of.head_dim,
                       [&](const auto* rows, const auto& kernels) {
                         kernels.dot({rows, stride, keys.count, of.head_dim}, queries, sums);
                       });
  });
}

// `sums` (a head's are `stride` apart) += scores · values.
void add_values_of_part(const Decode& of, const Keys& part, const float* scores, const cpu::FloatRows& sums) {
  const std::int64_t stride = row_stride(of.given.v);
  for_rows_and_heads(of, part, [&](const Keys& keys, std::int64_t kv_head) {
    const std::int64_t head = kv_head * of.group;
    const cpu::Rows<float> weights{scores + head * of.part_keys + keys.first - part.first, of.part_keys, of.group,
                                   keys.count};
    cpu::with_elements(of.given.v, keys.first * stride + kv_head * of.head_dim,
                       [&](const auto* rows, const auto& kernels) {
                         kernels.add_weighted({rows, stride, keys.count, of.head_dim}, weights,
                                              {sums.data + head * sums.stride, sums.stride});
                       });
  });
}

// Multiplies each score by `factor` and, where a cache has them, by its key's scale.
void scale_scores(const Decode& of, const TensorView& scales, const Keys& part, float factor, float* scores) {
  const auto* of_keys = static_cast<const float*>(scales.data) + (is_given(scales) ? part.first * of.kv_heads : 0);
  for (std::int64_t head = 0; head < of.kv_heads * of.group; ++head) {
    float* row = scores + head * of.part_keys;
    for (std::int64_t key = 0; key < part.count; ++key) {
      row[key] *= is_given(scales) ? factor * of_keys[key * of.kv_heads + head / of.group] : factor;
    }
  }
}

void attend_part(const Decode& of, std::int64_t index) {
  const cpu::VectorKernels& best = cpu::vector_kernels();
  const std::int64_t first = index * of.part_keys;
  const Keys part{first, std::min(of.part_keys, of.length - first)};
  const std::int64_t heads = of.kv_heads * of.group;
  const float scale = 1.0F / std::sqrt(static_cast<float>(of.head_dim));
  float* scores = cpu::scratch(cpu::Scratch::first, heads * of.part_keys);
  const cpu::FloatRows sums{of.values + index * of.head_dim, of.parts * of.head_dim};
  score_part(of, part, scores);
  scale_scores(of, of.given.k_scales, part, scale, scores);
  for (std::int64_t head = 0; head < heads; ++head) {
    float* row = scores + head * of.part_keys;
    const std::int64_t sum = head * of.parts + index;
    of.most[sum] = best.maximum(row, part.count);
    of.weight[sum] = best.exp_sum(row, part.count, of.most[sum]);
    std::fill_n(sums.data + head * sums.stride, of.head_dim, 0.0F);
  }
  if (is_given(of.given.v_scales)) {
    scale_scores(of, of.given.v_scales, part, 1, scores);
  }
  add_values_of_part(of, part, scores, sums);
}

void store_head(const AttentionDecode& given, std::int64_t head, const float* values) {
  const std::int64_t width = given.q.shape[1];
  if (given.out.type != ElementType::int8) {
    cpu::store_floats(values, given.out, head * width, width);
    return;
  }
  // A head's columns and scales follow those of the one before.
  const std::int64_t blocks = width / kActivationBlock;
  const TensorView out(cpu::element_at(given.out, head * width), ElementType::int8, {1, width});
  const TensorView scales(cpu::element_at(given.scales, head * blocks), ElementType::float32, {blocks, 1});
  cpu::store_rounded(values, width, out, scales, 0, false);
}

void merge_parts(const Decode& of, std::int64_t head) {
  const float* most = of.most + head * of.parts;
  const float overall = *std::max_element(most, most + of.parts);
  float* sums = cpu::scratch(cpu::Scratch::first, of.head_dim);
  std::fill_n(sums, of.head_dim, 0.0F);
  double weight = 0;
  for (std::int64_t part = 0; part < of.parts; ++part) {
    const std::int64_t index = head * of.parts + part;
    const float factor = std::exp(most[part] - overall);
    weight += static_cast<double>(factor) * of.weight[index];
    for (std::int64_t d = 0; d < of.head_dim; ++d) {
      sums[d] += factor * of.values[index * of.head_dim + d];
    }
  }
  for (std::int64_t d = 0; d < of.head_dim; ++d) {
    sums[d] = static_cast<float>(sums[d] / weight);
  }
  store_head(of.given, head, sums);
}

}  // namespace

void AttentionDecode::compute() const {
  const std::int64_t heads = q.shape[0];
  const std::int64_t rows = std::clamp<std::int64_t>(*static_cast<const std::int32_t*>(length.data), 0, k.shape[0]);
  if (rows == 0) {
    const std::vector<float> zeros(static_cast<std::size_t>(q.shape[1]));
    for (std::int64_t head = 0; head < heads; ++head) {
      store_head(*this, head, zeros.data());
    }
    return;
  }
  const Decode of = decode_of(*this, rows);
  worker_pool().run(of.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      attend_part(of, part);
    }
  });
  worker_pool().run(heads, std::max<std::int64_t>(1, 64 / of.parts), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      merge_parts(of, head);
    }
  });
}

}  // namespace pascaline::ops
