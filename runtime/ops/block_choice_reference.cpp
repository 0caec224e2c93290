#include <algorithm>
#include <cmath>

#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

/// Of a problem, as what depends on `length` is counted in.
struct ChoiceSizes {
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t block;
  std::int64_t rows;  ///< of the cache that are there
  std::int64_t query_blocks;
  std::int64_t key_blocks;

  ChoiceSizes(const Problem& problem, double length)
      : queries(problem.dimension("QUERIES")),
        keys(problem.dimension("KEYS")),
        block(problem.dimension("BLOCK")),
        rows(static_cast<std::int64_t>(std::clamp(length, static_cast<double>(queries), static_cast<double>(keys)))),
        query_blocks((queries + block - 1) / block),
        key_blocks((keys + block - 1) / block) {}
};

}  // namespace

// Means of the blocks of keys that the last NEW of `length` rows have filled; inputs k, k_scales, length, means.
void reference_pool_blocks(const Problem& problem, std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs) {
  const std::int64_t block = problem.dimension("BLOCK");
  const std::int64_t heads = problem.dimension("KV_HEADS");
  const std::int64_t head_dim = problem.dimension("HEAD_DIM");
  const auto rows =
      static_cast<std::int64_t>(std::clamp<double>(inputs[2][0], 0, static_cast<double>(problem.dimension("KEYS"))));
  outputs[0] = inputs[3];
  for (std::int64_t filled = 0; (filled + 1) * block <= rows; ++filled) {
    if ((filled + 1) * block <= rows - problem.dimension("NEW")) {
      continue;
    }
    for (std::int64_t column = 0; column < heads * head_dim; ++column) {
      double sum = 0;
      for (std::int64_t row = filled * block; row < (filled + 1) * block; ++row) {
        const auto scale = static_cast<std::size_t>(row * heads + column / head_dim);
        sum += inputs[0][static_cast<std::size_t>(row * heads * head_dim + column)] *
               (inputs[1].empty() ? 1 : inputs[1][scale]);
      }
      outputs[0][static_cast<std::size_t>(filled * heads * head_dim + column)] = sum / static_cast<double>(block);
    }
  }
}

// Products of the means of blocks of queries and of keys; inputs q, means, length.
void reference_score_blocks(const Problem& problem, std::span<const std::vector<double>> inputs,
                            std::span<std::vector<double>> outputs) {
  const ChoiceSizes of(problem, inputs[2][0]);
  const std::int64_t heads = problem.dimension("HEADS");
  const std::int64_t kv_heads = problem.dimension("KV_HEADS");
  const std::int64_t head_dim = problem.dimension("HEAD_DIM");
  const std::int64_t group = heads / kv_heads;
  std::fill(outputs[0].begin(), outputs[0].end(), 0.0);
  for (std::int64_t index = 0; index < kv_heads * of.query_blocks; ++index) {
    const std::int64_t kv_head = index / of.query_blocks;
    const std::int64_t first = index % of.query_blocks * of.block;
    const std::int64_t end = std::min(first + of.block, of.queries);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      double mean = 0;
      for (std::int64_t row = first; row < end; ++row) {
        for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          mean += inputs[0][static_cast<std::size_t>((row * heads + h) * head_dim + d)];
        }
      }
      mean /= static_cast<double>((end - first) * group);
      for (std::int64_t key = 0; key < (of.rows - of.queries + first) / of.block; ++key) {
        outputs[0][static_cast<std::size_t>(index * of.key_blocks + key)] +=
            mean * inputs[1][static_cast<std::size_t>((key * kv_heads + kv_head) * head_dim + d)];
      }
    }
  }
}

// Lists of the blocks with the largest scores; inputs scores, length.
void reference_choose_blocks(const Problem& problem, std::span<const std::vector<double>> inputs,
                             std::span<std::vector<double>> outputs) {
  const ChoiceSizes of(problem, inputs[1][0]);
  const std::int64_t width = problem.dimension("WIDTH");
  const std::int64_t part = problem.dimension("PART");
  for (std::int64_t index = 0; index < problem.dimension("LISTS") * of.query_blocks; ++index) {
    const double* scores = inputs[0].data() + index * of.key_blocks;
    const auto worth = [&](std::int64_t key) {
      return std::isnan(scores[key]) ? -std::numeric_limits<double>::infinity() : scores[key];
    };
    double* list = outputs[0].data() + index * width;
    std::fill_n(list, width, -1.0);
    const std::int64_t first = of.rows - of.queries + index % of.query_blocks * of.block;
    const std::int64_t diagonal = first / of.block;
    const std::int64_t there = (std::min(first + of.block, of.rows) - 1) / of.block + 1;
    const std::int64_t wanted = std::min(width, (there * part + 999'999) / 1'000'000) - (there - diagonal) - 1;
    std::int64_t listed = 0;
    for (std::int64_t key = 0; key < there && listed < width; ++key) {
      bool chosen = key == 0 || key >= diagonal;
      if (!chosen) {
        std::int64_t better = 0;
        for (std::int64_t other = 1; other < diagonal; ++other) {
          better += worth(other) > worth(key) || (worth(other) == worth(key) && other < key) ? 1 : 0;
        }
        chosen = better < wanted;
      }
      if (chosen) {
        list[listed++] = static_cast<double>(key);
      }
    }
  }
}

}  // namespace pascaline
