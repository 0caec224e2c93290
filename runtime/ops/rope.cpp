#include "runtime/ops/rope.hpp"

#include "runtime/ops/attention_checks.hpp"

namespace pascaline::ops {
namespace {

// Heads are numbered in 32 bits, with room for a block's more.
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 30;

// Kernels are unrolled along a head.
constexpr std::int64_t kMaxRotaryHeadDim = 512;

struct Sizes {
  Extent tokens;
  Extent heads;
  Extent kv_heads;
  Extent head_dim;
  Extent positions;
  Extent cache_rows;
};

Sizes sizes_of(const QkNormRope& given) {
  return {{"TOKENS", given.qkv.shape[0]},       {"HEADS", given.q.shape[1]},
          {"KV_HEADS", given.k_cache.shape[1]}, {"HEAD_DIM", given.qkv.shape[2]},
          {"POSITIONS", given.cosine.shape[0]}, {"CACHE_ROWS", given.k_cache.shape[0]}};
}

void check_shapes(const Checks& check, const QkNormRope& given, const Sizes& of) {
  const auto real = {ElementType::float32, ElementType::float16};
  check.dense({"q", &given.q}, {given.qkv.type}, {of.tokens, of.heads, of.head_dim});
  check_token_cache(check, given, of.cache_rows, of.kv_heads, of.head_dim);
  const Extent all_heads{"HEADS+2*KV_HEADS", of.heads.value + 2 * of.kv_heads.value};
  if (given.parts == QkvParts::joined) {
    check.strided({"qkv", &given.qkv}, real, {of.tokens, all_heads, of.head_dim});
  } else {
    check.dense({"qkv", &given.qkv}, real, {of.tokens, all_heads, of.head_dim});
    check.require(given.parts <= QkvParts::all_apart, "the parts are none of ops::QkvParts");
  }
  check_rotation(check, given, of.tokens, of.head_dim, of.positions);
  check.dense({"slots", &given.slots}, {ElementType::int32}, {of.tokens});
}

void check_sizes(const Checks& check, const QkNormRope& given, const Sizes& of) {
  check.at_least_one(of.heads);
  check.at_least_one(of.kv_heads);
  check.at_least_one(of.head_dim);
  check.at_least_one(of.positions);
  check.at_least_one(of.cache_rows);
  check.require(of.head_dim.value % 2 == 0, "HEAD_DIM is odd; elements are rotated in pairs");
  check.require(of.head_dim.value <= kMaxRotaryHeadDim, "HEAD_DIM is greater than 512, for which there is no kernel");
  check.require(of.tokens.value <= kMaxHeads / (of.heads.value + 2 * of.kv_heads.value),
                "TOKENS * (HEADS + 2*KV_HEADS) is above 2^30; take fewer tokens at a time");
  check_sections(check, given, of.head_dim);
}

}  // namespace

void check_token_cache(const Checks& check, const TokenHeads& given, Extent rows, Extent kv_heads, Extent head_dim) {
  const TensorView& k = given.k_cache;
  check.dense({"k_cache", &k}, {ElementType::float32, ElementType::float16, ElementType::int8},
              {rows, kv_heads, head_dim});
  check.dense({"v_cache", &given.v_cache}, {k.type}, {rows, kv_heads, head_dim});
  check_scales(check, {"k_scales", &given.k_scales}, k, rows, kv_heads);
  check_scales(check, {"v_scales", &given.v_scales}, k, rows, kv_heads);
}

void check_rotation(const Checks& check, const TokenHeads& given, Extent tokens, Extent head_dim, Extent positions) {
  const Extent half{"HEAD_DIM/2", head_dim.value / 2};
  if (is_given(given.q_weight)) {
    check.dense({"q_weight", &given.q_weight}, {ElementType::float32}, {head_dim});
    check.dense({"k_weight", &given.k_weight}, {ElementType::float32}, {head_dim});
    check_epsilon(check, given.epsilon);
  } else {
    check.absent({"k_weight", &given.k_weight}, "there is no q_weight, without which heads are not normalised");
  }
  check.dense({"cosine", &given.cosine}, {ElementType::float32}, {positions, half});
  check.dense({"sine", &given.sine}, {ElementType::float32}, {positions, half});
  check.dense({"positions", &given.positions}, {ElementType::int32}, {{"3", 3}, tokens});
}

void check_sections(const Checks& check, const TokenHeads& given, Extent head_dim) {
  const std::int64_t half = head_dim.value / 2;
  check.require(given.section_h >= 0 && given.section_h <= half && given.section_w >= 0 && given.section_w <= half,
                "section_h and section_w must be from 0 to HEAD_DIM/2, a head's slots");
}

bool QkNormRope::check() const {
  const Checks check(kName);
  const Sizes of = sizes_of(*this);
  check_shapes(check, *this, of);
  if (of.tokens.value == 0) {
    return false;
  }
  check_sizes(check, *this, of);
  return true;
}

KernelProblem QkNormRope::problem() const {
  const Sizes of = sizes_of(*this);
  return {"qk_norm_rope",
          {{"TOKENS", of.tokens.value},
           {"HEADS", of.heads.value},
           {"KV_HEADS", of.kv_heads.value},
           {"HEAD_DIM", of.head_dim.value},
           {"POSITIONS", of.positions.value},
           {"CACHE_ROWS", of.cache_rows.value},
           {"SECTION_H", section_h},
           {"SECTION_W", section_w},
           {"QKV_STRIDE", row_stride(qkv)},
           {"NORM", is_given(q_weight) ? 1 : 0},
           {"EPSILON", is_given(q_weight) ? epsilon.nano : NormEpsilon().nano},
           {"PARTS", static_cast<std::int64_t>(parts)}},
          {{"STORAGE", qkv.type}, {"CACHE", k_cache.type}}};
}

bool RopeVision::check() const {
  const Checks check(kName);
  const Extent patches{"PATCHES", qkv.shape[0]};
  const Extent heads{"HEADS", qkv.shape[2]};
  const Extent head_dim{"HEAD_DIM", qkv.shape[3]};
  const Extent rows{"POSITIONS", cosine.shape[0]};
  const Extent quarter{"HEAD_DIM/4", head_dim.value / 4};
  check.strided({"qkv", &qkv}, {ElementType::float32, ElementType::float16}, {patches, {"3", 3}, heads, head_dim});
  check.dense({"cosine", &cosine}, {ElementType::float32}, {rows, quarter});
  check.dense({"sine", &sine}, {ElementType::float32}, {rows, quarter});
  check.dense({"positions", &positions}, {ElementType::int32}, {{"2", 2}, patches});
  if (is_empty(qkv)) {
    return false;
  }
  check.at_least_one(rows);
  check.require(head_dim.value % 4 == 0, "HEAD_DIM is not a multiple of 4; half of the pairs turn by the row");
  check.require(head_dim.value <= kMaxRotaryHeadDim, "HEAD_DIM is greater than 512, for which there is no kernel");
  check.require(patches.value <= kMaxHeads / (2 * heads.value),
                "PATCHES * 2 * HEADS is above 2^30; take fewer patches at a time");
  return true;
}

KernelProblem RopeVision::problem() const {
  return {"rope_vision",
          {{"PATCHES", qkv.shape[0]},
           {"HEADS", qkv.shape[2]},
           {"HEAD_DIM", qkv.shape[3]},
           {"POSITIONS", cosine.shape[0]},
           {"QKV_STRIDE", row_stride(qkv)}},
          {{"STORAGE", qkv.type}}};
}

}  // namespace pascaline::ops
