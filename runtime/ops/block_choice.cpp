#include "runtime/ops/block_choice.hpp"

#include <algorithm>

#include "runtime/ops/attention_checks.hpp"

namespace pascaline::ops {
namespace {

std::int64_t blocks_in(std::int64_t rows, std::int64_t block) { return (rows + block - 1) / block; }

void check_length(const Checks& check, const TensorView& length) {
  check.dense({"length", &length}, {ElementType::int32}, {{"1", 1}});
}

// What every choice has: at least one query, and its row among the keys.
void check_rows(const Checks& check, std::int64_t queries, std::int64_t keys, std::int64_t block) {
  check.at_least_one({"block", block});
  check.at_least_one({"QUERIES", queries});
  check.require(keys >= queries && keys <= kMaxExtent,
                "there are fewer KEYS than QUERIES; the queries are the last of the keys");
}

}  // namespace

bool PoolBlocks::check() const {
  const Checks check(kName);
  const Extent keys{"KEYS", k.shape[0]};
  const Extent heads{"KV_HEADS", k.shape[1]};
  const Extent head_dim{"HEAD_DIM", k.shape[2]};
  check.dense({"k", &k}, {ElementType::float32, ElementType::float16, ElementType::int8}, {keys, heads, head_dim});
  check_scales(check, {"k_scales", &k_scales}, k, keys, heads);
  check_length(check, length);
  check.at_least_one({"block", block});
  check.dense({"means", &means}, {ElementType::float32},
              {{"blocks of KEYS", blocks_in(keys.value, block)}, heads, head_dim});
  if (is_empty(means)) {
    return false;
  }
  check_heads(check, {heads, heads, head_dim});
  check.require(added >= 1 && added <= keys.value, "the rows that were added must be 1 to KEYS");
  return true;
}

KernelProblem PoolBlocks::problem() const {
  return {"pool_blocks",
          {{"KV_HEADS", k.shape[1]}, {"HEAD_DIM", k.shape[2]}, {"KEYS", k.shape[0]}, {"NEW", added}, {"BLOCK", block}},
          {{"CACHE", k.type}}};
}

bool ScoreBlocks::check() const {
  const Checks check(kName);
  const Extent queries{"QUERIES", q.shape[0]};
  const Heads of{{"HEADS", q.shape[1]}, {"KV_HEADS", means.shape[1]}, {"HEAD_DIM", q.shape[2]}};
  check.dense({"q", &q}, {ElementType::float32, ElementType::float16}, {queries, of.heads, of.head_dim});
  check_rows(check, queries.value, keys, block);
  const Extent key_blocks{"blocks of KEYS", blocks_in(keys, block)};
  check.dense({"means", &means}, {ElementType::float32}, {key_blocks, of.kv_heads, of.head_dim});
  check_length(check, length);
  check.dense({"scores", &scores}, {ElementType::float32},
              {of.kv_heads, {"blocks of QUERIES", blocks_in(queries.value, block)}, key_blocks});
  if (is_empty(scores)) {
    return false;
  }
  check_heads(check, of);
  return true;
}

KernelProblem ScoreBlocks::problem() const {
  return {"score_blocks",
          {{"HEADS", q.shape[1]},
           {"KV_HEADS", means.shape[1]},
           {"HEAD_DIM", q.shape[2]},
           {"QUERIES", q.shape[0]},
           {"KEYS", keys},
           {"BLOCK", block}},
          {{"STORAGE", q.type}}};
}

std::int64_t ChooseBlocks::width_for(std::int64_t keys, std::int64_t block, std::int64_t part) noexcept {
  const std::int64_t there = blocks_in(keys, block);
  return std::min(there, std::max<std::int64_t>(3, blocks_in(there * part, kAll)));
}

bool ChooseBlocks::check() const {
  const Checks check(kName);
  check_rows(check, queries, keys, block);
  const Extent lists{"LISTS", scores.shape[0]};
  const Extent rows{"blocks of QUERIES", blocks_in(queries, block)};
  const Extent key_blocks{"blocks of KEYS", blocks_in(keys, block)};
  check.dense({"scores", &scores}, {ElementType::float32}, {lists, rows, key_blocks});
  check_length(check, length);
  const Extent width{"WIDTH", blocks.shape[2]};
  check.dense({"blocks", &blocks}, {ElementType::int32}, {lists, rows, width});
  if (lists.value == 0) {
    return false;
  }
  check.require(width.value >= std::min<std::int64_t>(3, key_blocks.value),
                "WIDTH must be 3 or more, or as many as there are blocks of KEYS: the first block and those of the "
                "queries are always listed");
  check.require(key_blocks.value <= kMaxBlocks, "there are more than 8192 blocks of KEYS; take larger blocks");
  check.require(part >= 1 && part <= kAll, "the part of the blocks must be 1 to 1000000 millionths");
  return true;
}

KernelProblem ChooseBlocks::problem() const {
  return {"choose_blocks",
          {{"LISTS", scores.shape[0]},
           {"QUERIES", queries},
           {"KEYS", keys},
           {"BLOCK", block},
           {"PART", part},
           {"WIDTH", blocks.shape[2]}}};
}

}  // namespace pascaline::ops
