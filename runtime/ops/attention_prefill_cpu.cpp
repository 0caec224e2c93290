#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/prefill_sums.hpp"

namespace pascaline::ops {
namespace {

constexpr std::int64_t kBlockKeys = PrefillBlocks::kKeys;

struct Prefill : PrefillBlocks {
  explicit Prefill(const AttentionPrefill& of) : PrefillBlocks(of), given(of) {}

  const AttentionPrefill& given;
};

// Keys that a query sees. Whatever stands in segment_starts, they are keys that are there.
ScoreRange visible_to(const Prefill& of, std::int64_t query) {
  const std::int64_t keys = of.k.shape[0];
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
    return {0, std::clamp<std::int64_t>(keys - of.q.shape[0] + query + 1, 0, keys)};
  }
  return {0, keys};
}

FloatBlock block_of(const Prefill& of, const TensorView& cache, const TensorView& scales, std::int64_t kv_head,
                    const ScoreRange& keys, cpu::Scratch region) {
  const std::int64_t stride = row_stride(cache);
  if (cache.type == ElementType::float32) {
    return {static_cast<const float*>(cache.data) + keys.begin * stride + kv_head * of.head_dim, stride};
  }
  float* room = cpu::scratch(region, kBlockKeys * of.head_dim);
  for (std::int64_t i = 0; i < keys.end - keys.begin; ++i) {
    widen_cached_row(of, cache, scales, kv_head, keys.begin + i, room + i * of.head_dim);
  }
  return {room, of.head_dim};
}

void add_keys(const Prefill& of, const cpu::Blas& blas, const PrefillSums& sums, std::int64_t kv_head,
              std::int64_t first_query, const ScoreRange& keys) {
  const std::int64_t count = keys.end - keys.begin;
  score_keys(of, blas, sums, block_of(of, of.k, of.k_scales, kv_head, keys, cpu::Scratch::third), count);
  for (std::int64_t row = 0; row < sums.rows; ++row) {
    const ScoreRange seen = visible_to(of, first_query + row / of.group);
    const ScoreRange here{std::clamp<std::int64_t>(seen.begin - keys.begin, 0, count),
                          std::clamp<std::int64_t>(seen.end - keys.begin, 0, count)};
    weigh_row(of, sums, row, count, {&here, here.begin < here.end ? std::size_t{1} : 0});
  }
  add_weighted_values(of, blas, sums, block_of(of, of.v, of.v_scales, kv_head, keys, cpu::Scratch::fourth), count);
}

void attend(const Prefill& of, const cpu::Blas& blas, std::int64_t kv_head, std::int64_t first_query) {
  const std::int64_t queries = std::min(of.block, of.q.shape[0] - first_query);
  ScoreRange all{of.k.shape[0], 0};
  for (std::int64_t i = 0; i < queries; ++i) {
    const ScoreRange seen = visible_to(of, first_query + i);
    if (seen.begin < seen.end) {
      all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
    }
  }
  const PrefillSums sums = begin_sums(of, kv_head, first_query, queries);
  for (std::int64_t key = all.begin; key < all.end; key += kBlockKeys) {
    add_keys(of, blas, sums, kv_head, first_query, {key, std::min(key + kBlockKeys, all.end)});
  }
  store_sums(of, sums, kv_head, first_query, queries);
}

}  // namespace

void AttentionPrefill::compute() const {
  const cpu::Blas& blas = cpu::Blas::get();
  const Prefill of(*this);
  const std::int64_t blocks = (q.shape[0] + of.block - 1) / of.block;
  worker_pool().run(blocks * of.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      // The last queries first: with a causal mask they see the most.
      attend(of, blas, i % of.kv_heads, (blocks - 1 - i / of.kv_heads) * of.block);
    }
  });
}

}  // namespace pascaline::ops
