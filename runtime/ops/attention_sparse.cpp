#include "runtime/ops/attention_sparse.hpp"

#include "runtime/ops/attention_checks.hpp"

namespace pascaline::ops {
namespace {

Heads sparse_heads(const AttentionSparsePrefill& given) {
  return {{"HEADS", given.q.shape[1]}, {"KV_HEADS", given.k.shape[1]}, {"HEAD_DIM", given.q.shape[2]}};
}

Heads sparse_heads(const AttentionSparseDecode& given) {
  return {{"HEADS", given.q.shape[0]}, {"KV_HEADS", given.k.shape[1]}, {"HEAD_DIM", given.q.shape[1]}};
}

// Of either operation.
template <typename Attention>
void check_sparse_cache(const Checks& check, const Attention& given, const Heads& of) {
  const TensorView& k = given.k;
  const Extent keys{"KEYS", k.shape[0]};
  check.dense({"k", &k}, {ElementType::float32, ElementType::float16, ElementType::int8},
              {keys, of.kv_heads, of.head_dim});
  check.dense({"v", &given.v}, {k.type}, {keys, of.kv_heads, of.head_dim});
  check_scales(check, {"k_scales", &given.k_scales}, k, keys, of.kv_heads);
  check_scales(check, {"v_scales", &given.v_scales}, k, keys, of.kv_heads);
}

// Lists are there if the mask is no pattern; `lists` and `width` are two of their extents.
template <typename Attention>
void check_sparse_lists(const Checks& check, const Attention& given, std::int64_t lists, std::int64_t width) {
  check_mask(given.mask);
  if (given.mask.is_pattern()) {
    check.absent({"blocks", &given.blocks}, "the mask is a pattern");
    return;
  }
  check.require(is_given(given.blocks), "the mask has a window of 0 keys, and no blocks are listed: give one of them");
  check.require(lists == 1 || lists == given.k.shape[1], "LISTS must be 1, for all heads, or KV_HEADS");
  check.at_least_one({"WIDTH", width});
  check.require(width <= (given.k.shape[0] + given.mask.block - 1) / given.mask.block,
                "WIDTH is more than the blocks of KEYS; a list names a block once");
}

}  // namespace

bool AttentionSparsePrefill::check() const {
  const Checks check(kName);
  const Extent queries{"QUERIES", q.shape[0]};
  const Heads of = sparse_heads(*this);
  check.dense({"q", &q}, {ElementType::float32, ElementType::float16}, {queries, of.heads, of.head_dim});
  check_sparse_cache(check, *this, of);
  check.dense({"out", &out}, {q.type}, {queries, of.heads, of.head_dim});
  check_sparse_lists(check, *this, blocks.shape[0], blocks.shape[2]);
  if (is_empty(out)) {
    return false;
  }
  if (!mask.is_pattern()) {
    check.dense({"blocks", &blocks}, {ElementType::int32},
                {{"LISTS", blocks.shape[0]},
                 {"blocks of QUERIES", (queries.value + mask.block - 1) / mask.block},
                 {"WIDTH", blocks.shape[2]}});
  }
  check_heads(check, of);
  check.require(k.shape[0] >= queries.value, "there are fewer KEYS than QUERIES; the queries are the last of the keys");
  return true;
}

KernelProblem AttentionSparsePrefill::problem() const {
  const bool listed = !mask.is_pattern();
  return {"attention_sparse_prefill",
          {{"HEADS", q.shape[1]},
           {"KV_HEADS", k.shape[1]},
           {"HEAD_DIM", q.shape[2]},
           {"QUERIES", q.shape[0]},
           {"KEYS", k.shape[0]},
           {"BLOCK", mask.block},
           {"LISTS", listed ? blocks.shape[0] : 0},
           {"WIDTH", listed ? blocks.shape[2] : 0},
           {"WINDOW", mask.window},
           {"SINKS", mask.sinks},
           {"STRIDE", mask.stride}},
          {{"STORAGE", q.type}, {"CACHE", k.type}}};
}

bool AttentionSparseDecode::check() const {
  const Checks check(kName);
  const Heads of = sparse_heads(*this);
  check.dense({"q", &q}, {ElementType::float32, ElementType::float16}, {of.heads, of.head_dim});
  check_sparse_cache(check, *this, of);
  check.dense({"length", &length}, {ElementType::int32}, {{"1", 1}});
  check_decoded(check, {"out", &out}, {"scales", &scales}, q.type, of);
  check_sparse_lists(check, *this, blocks.shape[0], blocks.shape[1]);
  if (is_empty(out)) {
    return false;
  }
  if (!mask.is_pattern()) {
    check.dense({"blocks", &blocks}, {ElementType::int32}, {{"LISTS", blocks.shape[0]}, {"WIDTH", blocks.shape[1]}});
  }
  check_heads(check, of);
  check.at_least_one({"KEYS", k.shape[0]});
  return true;
}

KernelProblem AttentionSparseDecode::problem() const {
  const bool listed = !mask.is_pattern();
  return {"attention_sparse_decode",
          {{"HEADS", q.shape[0]},
           {"KV_HEADS", k.shape[1]},
           {"HEAD_DIM", q.shape[1]},
           {"KEYS", k.shape[0]},
           {"BLOCK", mask.block},
           {"LISTS", listed ? blocks.shape[0] : 0},
           {"WIDTH", listed ? blocks.shape[1] : 0},
           {"WINDOW", mask.window},
           {"SINKS", mask.sinks},
           {"STRIDE", mask.stride}},
          {{"STORAGE", q.type}, {"CACHE", k.type}, {"OUTPUT", out.type}}};
}

}  // namespace pascaline::ops
