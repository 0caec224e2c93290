#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/util/worker_pool.hpp"
#include "runtime/cpu/floats.hpp"
#include "runtime/ops/block_choice.hpp"

namespace pascaline::ops {
namespace {

std::int64_t length_of(const TensorView& length, std::int64_t least, std::int64_t most) {
  return std::clamp<std::int64_t>(*static_cast<const std::int32_t*>(length.data), least, most);
}

// As the kernel: an integer that is larger where the score is; 0 where it is no number.
std::uint32_t order_of_score(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0F : score);  // of both zeros the same
  if (std::isnan(score)) {
    return 0;
  }
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

}  // namespace

void PoolBlocks::compute() const {
  const std::int64_t rows = length_of(length, 0, k.shape[0]);
  const std::int64_t heads = k.shape[1];
  const std::int64_t head_dim = k.shape[2];
  const std::int64_t width = heads * head_dim;
  const std::int64_t first = std::max<std::int64_t>(0, rows - added) / block;
  const std::int64_t end = rows / block;
  worker_pool().run(std::max<std::int64_t>(0, end - first), 1, [&](std::int64_t begin_block, std::int64_t end_block) {
    std::vector<double> sums(static_cast<std::size_t>(width));
    for (std::int64_t filled = first + begin_block; filled < first + end_block; ++filled) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t row = filled * block; row < (filled + 1) * block; ++row) {
        const float* values = cpu::floats_at(k, row * width, width, cpu::scratch(cpu::Scratch::first, width));
        for (std::int64_t i = 0; i < width; ++i) {
          const double scale =
              is_given(k_scales)
                  ? static_cast<double>(static_cast<const float*>(k_scales.data)[row * heads + i / head_dim])
                  : 1.0;
          sums[static_cast<std::size_t>(i)] += static_cast<double>(values[i]) * scale;
        }
      }
      float* out = static_cast<float*>(means.data) + filled * width;
      for (std::int64_t i = 0; i < width; ++i) {
        out[i] = static_cast<float>(sums[static_cast<std::size_t>(i)] / static_cast<double>(block));
      }
    }
  });
}

void ScoreBlocks::compute() const {
  const std::int64_t queries = q.shape[0];
  const std::int64_t heads = q.shape[1];
  const std::int64_t head_dim = q.shape[2];
  const std::int64_t kv_heads = means.shape[1];
  const std::int64_t group = heads / kv_heads;
  const std::int64_t rows = length_of(length, queries, keys);
  const std::int64_t query_blocks = scores.shape[1];
  const std::int64_t key_blocks = scores.shape[2];
  worker_pool().run(kv_heads * query_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums(static_cast<std::size_t>(head_dim));
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t kv_head = index / query_blocks;
      const std::int64_t first = index % query_blocks * block;
      const std::int64_t count = std::min(block, queries - first);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t row = first; row < first + count; ++row) {
        const float* values = cpu::floats_at(q, (row * heads + kv_head * group) * head_dim, group * head_dim,
                                             cpu::scratch(cpu::Scratch::first, group * head_dim));
        for (std::int64_t i = 0; i < group * head_dim; ++i) {
          sums[static_cast<std::size_t>(i % head_dim)] += static_cast<double>(values[i]);
        }
      }
      float* out = static_cast<float*>(scores.data) + index * key_blocks;
      const std::int64_t candidates = (rows - queries + first) / block;
      for (std::int64_t key = 0; key < key_blocks; ++key) {
        double dot = 0;
        const float* mean = static_cast<const float*>(means.data) + (key * kv_heads + kv_head) * head_dim;
        for (std::int64_t d = 0; d < head_dim && key < candidates; ++d) {
          dot += sums[static_cast<std::size_t>(d)] * static_cast<double>(mean[d]);
        }
        out[key] = static_cast<float>(dot / static_cast<double>(count * group));
      }
    }
  });
}

void ChooseBlocks::compute() const {
  const std::int64_t rows = length_of(length, queries, keys);
  const std::int64_t query_blocks = scores.shape[1];
  const std::int64_t key_blocks = scores.shape[2];
  const std::int64_t width = blocks.shape[2];
  worker_pool().run(scores.shape[0] * query_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const float* own = static_cast<const float*>(scores.data) + index * key_blocks;
      const std::int64_t first = rows - queries + index % query_blocks * block;
      const std::int64_t diagonal = first / block;
      const std::int64_t there = (std::min(first + block, rows) - 1) / block + 1;
      const std::int64_t always = there - diagonal + (diagonal > 0 ? 1 : 0);
      std::vector<std::int32_t> candidates(static_cast<std::size_t>(std::max<std::int64_t>(0, diagonal - 1)));
      std::iota(candidates.begin(), candidates.end(), 1);
      const std::int64_t asked = std::min(width, (there * part + kAll - 1) / kAll);
      const std::int64_t wanted =
          std::clamp<std::int64_t>(asked - always, 0, static_cast<std::int64_t>(candidates.size()));
      std::partial_sort(candidates.begin(), candidates.begin() + wanted, candidates.end(),
                        [&](std::int32_t a, std::int32_t b) {
                          const std::uint32_t of_a = order_of_score(own[a]);
                          const std::uint32_t of_b = order_of_score(own[b]);
                          return of_a > of_b || (of_a == of_b && a < b);
                        });
      candidates.resize(static_cast<std::size_t>(wanted));
      std::sort(candidates.begin(), candidates.end());
      if (diagonal > 0) {
        candidates.insert(candidates.begin(), 0);
      }
      for (std::int64_t key = diagonal; key < there; ++key) {
        candidates.push_back(static_cast<std::int32_t>(key));
      }
      candidates.resize(static_cast<std::size_t>(width), -1);
      std::copy(candidates.begin(), candidates.end(), static_cast<std::int32_t*>(blocks.data) + index * width);
    }
  });
}

}  // namespace pascaline::ops
