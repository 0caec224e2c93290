#include <algorithm>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/attention_sparse.hpp"
#include "runtime/ops/prefill_sums.hpp"

namespace pascaline::ops {
namespace {

struct SparsePrefill : PrefillBlocks {
  explicit SparsePrefill(const AttentionSparsePrefill& of) : PrefillBlocks(of), given(of) {
    if (!of.mask.is_pattern()) {
      // Its queries share a list.
      while (of.mask.block % block != 0) {
        --block;
      }
    }
  }

  [[nodiscard]] std::span<const std::int32_t> list_of(std::int64_t kv_head, std::int64_t query) const {
    if (given.mask.is_pattern()) {
      return {};
    }
    const auto& shape = given.blocks.shape;
    const std::int64_t row = (shape[0] > 1 ? kv_head : 0) * shape[1] + query / given.mask.block;
    return {static_cast<const std::int32_t*>(given.blocks.data) + row * shape[2], static_cast<std::size_t>(shape[2])};
  }

  const AttentionSparsePrefill& given;
};

// Keys or values of the cache's rows that are seen, `count` from `first` on: neighbouring ones where they lie.
FloatBlock gathered(const SparsePrefill& of, const TensorView& cache, const TensorView& scales, std::int64_t kv_head,
                    const SeenKeys& seen, std::int64_t first, std::int64_t count, cpu::Scratch region) {
  const std::int64_t row = seen.rows()[static_cast<std::size_t>(first)];
  if (cache.type == ElementType::float32 &&
      seen.rows()[static_cast<std::size_t>(first + count - 1)] == row + count - 1) {
    const std::int64_t stride = of.kv_heads * of.head_dim;
    return {static_cast<const float*>(cache.data) + row * stride + kv_head * of.head_dim, stride};
  }
  float* room = cpu::scratch(region, PrefillBlocks::kKeys * of.head_dim);
  for (std::int64_t i = 0; i < count; ++i) {
    widen_cached_row(of, cache, scales, kv_head, seen.rows()[static_cast<std::size_t>(first + i)],
                     room + i * of.head_dim);
  }
  return {room, of.head_dim};
}

void attend_seen(const SparsePrefill& of, const cpu::Blas& blas, std::int64_t kv_head, std::int64_t first_query) {
  const std::int64_t queries = std::min(of.block, of.q.shape[0] - first_query);
  const std::int64_t position = of.k.shape[0] - of.q.shape[0] + first_query;
  const SeenKeys seen(of.given.mask, of.list_of(kv_head, first_query), position, position + queries - 1, of.k.shape[0]);
  const PrefillSums sums = begin_sums(of, kv_head, first_query, queries);
  const auto keys = static_cast<std::int64_t>(seen.rows().size());
  std::vector<SeenKeys::Run> runs;
  std::vector<ScoreRange> ranges;
  for (std::int64_t first = 0; first < keys; first += PrefillBlocks::kKeys) {
    const std::int64_t count = std::min(PrefillBlocks::kKeys, keys - first);
    score_keys(of, blas, sums, gathered(of, of.k, of.k_scales, kv_head, seen, first, count, cpu::Scratch::third),
               count);
    for (std::int64_t row = 0; row < sums.rows; ++row) {
      if (row % of.group == 0) {
        seen.seen_by(position + row / of.group, first, first + count, runs);
        ranges.clear();
        for (const SeenKeys::Run& run : runs) {
          ranges.push_back({run.begin - first, run.end - first});
        }
      }
      weigh_row(of, sums, row, count, ranges);
    }
    add_weighted_values(of, blas, sums,
                        gathered(of, of.v, of.v_scales, kv_head, seen, first, count, cpu::Scratch::fourth), count);
  }
  store_sums(of, sums, kv_head, first_query, queries);
}

}  // namespace

void AttentionSparsePrefill::compute() const {
  const cpu::Blas& blas = cpu::Blas::get();
  const SparsePrefill of(*this);
  const std::int64_t blocks_of_queries = (q.shape[0] + of.block - 1) / of.block;
  worker_pool().run(blocks_of_queries * of.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      attend_seen(of, blas, i % of.kv_heads, (blocks_of_queries - 1 - i / of.kv_heads) * of.block);
    }
  });
}

}  // namespace pascaline::ops
