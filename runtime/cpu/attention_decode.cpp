#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/ops.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/ops/checked.hpp"

namespace pascaline::cpu {
namespace {

// Keys of a part of the cache that one thread takes for one head: their scores stay in the first cache.
constexpr std::int64_t kPartKeys = 256;

/// Sizes of the operation, and what its threads share.
struct Decode {
  const ops::AttentionDecodeArguments& given;
  std::int64_t length;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t group;  ///< heads of queries a head of keys
  std::int64_t parts;
  const float* queries;  ///< [heads, head_dim]
  float* values;         ///< [heads, parts, head_dim]: weighted sums
  float* most;           ///< [heads, parts]: largest score
  double* weight;        ///< [heads, parts]: sum of exp(score − most)
};

Decode decode_of(const ops::AttentionDecodeArguments& given, std::int64_t length) {
  const std::int64_t heads = given.q.shape[0];
  const std::int64_t head_dim = given.q.shape[1];
  const std::int64_t parts = (length + kPartKeys - 1) / kPartKeys;
  const std::int64_t sums = heads * parts;
  float* room = scratch(Scratch::shared, sums * (head_dim + 3));
  Decode of{given,
            length,
            given.k.shape[1],
            head_dim,
            heads / given.k.shape[1],
            parts,
            floats_at(given.q, 0, heads * head_dim, scratch(Scratch::shared_too, heads * head_dim)),
            room,
            room + sums * (head_dim + 2),
            nullptr};
  of.weight = reinterpret_cast<double*>(room + sums * head_dim);  // head_dim is even
  return of;
}

void attend_part(const Decode& of, std::int64_t kv_head, std::int64_t part) {
  const VectorKernels& best = vector_kernels();
  const std::int64_t first = part * kPartKeys;
  const std::int64_t count = std::min(kPartKeys, of.length - first);
  const std::int64_t stride = ops::row_stride(of.given.k);
  const std::int64_t head = kv_head * of.group;
  const std::int64_t at = first * stride + kv_head * of.head_dim;
  float* scores = scratch(Scratch::first, of.group * kPartKeys);
  const Rows<float> queries{of.queries + head * of.head_dim, of.head_dim, of.group, of.head_dim};
  with_elements(of.given.k, at, [&](const auto* rows, const auto& kernels) {
    kernels.dot({rows, stride, count, of.head_dim}, queries, {scores, kPartKeys});
  });
  const float scale = 1.0F / std::sqrt(static_cast<float>(of.head_dim));
  const FloatRows sums{of.values + (head * of.parts + part) * of.head_dim, of.parts * of.head_dim};
  for (std::int64_t i = 0; i < of.group; ++i) {
    float* row = scores + i * kPartKeys;
    for (std::int64_t key = 0; key < count; ++key) {
      row[key] *= scale;
    }
    const std::int64_t sum = (head + i) * of.parts + part;
    of.most[sum] = best.maximum(row, count);
    of.weight[sum] = best.exp_sum(row, count, of.most[sum]);
    std::fill_n(sums.data + i * sums.stride, of.head_dim, 0.0F);
  }
  with_elements(of.given.v, at, [&](const auto* rows, const auto& kernels) {
    kernels.add_weighted({rows, stride, count, of.head_dim}, {scores, kPartKeys, of.group, count}, sums);
  });
}

void merge_parts(const Decode& of, std::int64_t head) {
  const float* most = of.most + head * of.parts;
  const float overall = *std::max_element(most, most + of.parts);
  float* sums = scratch(Scratch::first, of.head_dim);
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
  store_floats(sums, of.given.out, head * of.head_dim, of.head_dim);
}

}  // namespace

void attention_decode(const ops::AttentionDecodeArguments& arguments) {
  if (!ops::checked_attention_decode(arguments)) {
    return;
  }
  const std::int64_t heads = arguments.q.shape[0];
  const std::int64_t length =
      std::clamp<std::int64_t>(*static_cast<const std::int32_t*>(arguments.length.data), 0, arguments.k.shape[0]);
  if (length == 0) {
    std::fill_n(static_cast<std::byte*>(arguments.out.data),
                heads * arguments.q.shape[1] * static_cast<std::int64_t>(size_of(arguments.out.type)), std::byte{0});
    return;
  }
  const Decode of = decode_of(arguments, length);
  // Heads of the same keys follow each other, as they lie in memory.
  worker_pool().run(of.parts * of.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      attend_part(of, i % of.kv_heads, i / of.kv_heads);
    }
  });
  worker_pool().run(heads, std::max<std::int64_t>(1, 64 / of.parts), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      merge_parts(of, head);
    }
  });
}

}  // namespace pascaline::cpu
