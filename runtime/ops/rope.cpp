#include "runtime/ops/rope.hpp"

#include "runtime/ops/checked.hpp"
#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

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

Sizes sizes_of(const QkNormRopeArguments& given) {
  return {{"TOKENS", given.qkv.shape[0]},       {"HEADS", given.q.shape[1]},
          {"KV_HEADS", given.k_cache.shape[1]}, {"HEAD_DIM", given.qkv.shape[2]},
          {"POSITIONS", given.cosine.shape[0]}, {"CACHE_ROWS", given.k_cache.shape[0]}};
}

void check_shapes(const Checks& check, const QkNormRopeArguments& given, const Sizes& of) {
  const auto real = {ElementType::float32, ElementType::float16};
  const Extent half{"HEAD_DIM/2", of.head_dim.value / 2};
  check.dense({"q", &given.q}, {given.qkv.type}, {of.tokens, of.heads, of.head_dim});
  check.dense({"k_cache", &given.k_cache}, real, {of.cache_rows, of.kv_heads, of.head_dim});
  check.dense({"v_cache", &given.v_cache}, {given.k_cache.type}, {of.cache_rows, of.kv_heads, of.head_dim});
  check.strided({"qkv", &given.qkv}, real,
                {of.tokens, {"HEADS+2*KV_HEADS", of.heads.value + 2 * of.kv_heads.value}, of.head_dim});
  check.dense({"q_weight", &given.q_weight}, {ElementType::float32}, {of.head_dim});
  check.dense({"k_weight", &given.k_weight}, {ElementType::float32}, {of.head_dim});
  check.dense({"cosine", &given.cosine}, {ElementType::float32}, {of.positions, half});
  check.dense({"sine", &given.sine}, {ElementType::float32}, {of.positions, half});
  check.dense({"positions", &given.positions}, {ElementType::int32}, {{"3", 3}, of.tokens});
  check.dense({"slots", &given.slots}, {ElementType::int32}, {of.tokens});
}

void check_sizes(const Checks& check, const QkNormRopeArguments& given, const Sizes& of) {
  check.at_least_one(of.heads);
  check.at_least_one(of.kv_heads);
  check.at_least_one(of.head_dim);
  check.at_least_one(of.positions);
  check.at_least_one(of.cache_rows);
  const std::int64_t half = of.head_dim.value / 2;
  check.require(of.head_dim.value % 2 == 0, "HEAD_DIM is odd; elements are rotated in pairs");
  check.require(of.head_dim.value <= kMaxRotaryHeadDim, "HEAD_DIM is above 512, for which there is no kernel");
  check.require(of.tokens.value <= kMaxHeads / (of.heads.value + 2 * of.kv_heads.value),
                "TOKENS * (HEADS + 2*KV_HEADS) is above 2^30; take fewer tokens at a time");
  check.require(given.section_h >= 0 && given.section_h <= half && given.section_w >= 0 && given.section_w <= half,
                "section_h and section_w must be from 0 to HEAD_DIM/2, a head's slots");
}

void check_memory(const Checks& check, const QkNormRopeArguments& given) {
  const Operand qkv{"qkv", &given.qkv};
  const Operand q_weight{"q_weight", &given.q_weight};
  const Operand k_weight{"k_weight", &given.k_weight};
  const Operand cosine{"cosine", &given.cosine};
  const Operand sine{"sine", &given.sine};
  const Operand positions{"positions", &given.positions};
  const Operand slots{"slots", &given.slots};
  const Operand k_cache{"k_cache", &given.k_cache};
  const Operand v_cache{"v_cache", &given.v_cache};
  const Operand q{"q", &given.q};
  check.addresses({qkv, q_weight, k_weight, cosine, sine, positions, slots, k_cache, v_cache, q});
  check.apart(q, {qkv, q_weight, k_weight, cosine, sine, positions, slots, k_cache, v_cache});
  check.apart(k_cache, {qkv, q_weight, k_weight, cosine, sine, positions, slots, v_cache});
  check.apart(v_cache, {qkv, q_weight, k_weight, cosine, sine, positions, slots});
}

}  // namespace

bool checked_qk_norm_rope(const QkNormRopeArguments& given) {
  const Checks check("qk_norm_rope");
  const Sizes of = sizes_of(given);
  check_shapes(check, given, of);
  if (of.tokens.value == 0) {
    return false;
  }
  check_sizes(check, given, of);
  check_memory(check, given);
  return true;
}

void qk_norm_rope(Dispatcher& dispatcher, const QkNormRopeArguments& given) {
  if (!checked_qk_norm_rope(given)) {
    return;
  }
  const Sizes of = sizes_of(given);
  const NamedDimension dimensions[] = {
      {"TOKENS", of.tokens.value},     {"HEADS", of.heads.value},         {"KV_HEADS", of.kv_heads.value},
      {"HEAD_DIM", of.head_dim.value}, {"POSITIONS", of.positions.value}, {"CACHE_ROWS", of.cache_rows.value},
      {"SECTION_H", given.section_h},  {"SECTION_W", given.section_w},    {"QKV_STRIDE", row_stride(given.qkv)}};
  const NamedType types[] = {{"STORAGE", given.qkv.type}, {"CACHE", given.k_cache.type}};
  void* const buffers[] = {given.qkv.data,     given.q_weight.data,  given.k_weight.data, given.cosine.data,
                           given.sine.data,    given.positions.data, given.slots.data,    given.k_cache.data,
                           given.v_cache.data, given.q.data};
  launch(dispatcher, "qk_norm_rope", dimensions, types, buffers);
}

bool checked_rope_vision(const RopeVisionArguments& given) {
  const Checks check("rope_vision");
  const Extent patches{"PATCHES", given.qkv.shape[0]};
  const Extent heads{"HEADS", given.qkv.shape[2]};
  const Extent head_dim{"HEAD_DIM", given.qkv.shape[3]};
  const Extent rows{"POSITIONS", given.cosine.shape[0]};
  const Extent quarter{"HEAD_DIM/4", head_dim.value / 4};
  check.strided({"qkv", &given.qkv}, {ElementType::float32, ElementType::float16},
                {patches, {"3", 3}, heads, head_dim});
  check.dense({"cosine", &given.cosine}, {ElementType::float32}, {rows, quarter});
  check.dense({"sine", &given.sine}, {ElementType::float32}, {rows, quarter});
  check.dense({"positions", &given.positions}, {ElementType::int32}, {{"2", 2}, patches});
  if (is_empty(given.qkv)) {
    return false;
  }
  check.at_least_one(rows);
  check.require(head_dim.value % 4 == 0, "HEAD_DIM is no multiple of 4; half of the pairs turn by the row");
  check.require(head_dim.value <= kMaxRotaryHeadDim, "HEAD_DIM is above 512, for which there is no kernel");
  check.require(patches.value <= kMaxHeads / (2 * heads.value),
                "PATCHES * 2 * HEADS is above 2^30; take fewer patches at a time");
  const Operand qkv{"qkv", &given.qkv};
  const Operand cosine{"cosine", &given.cosine};
  const Operand sine{"sine", &given.sine};
  const Operand positions{"positions", &given.positions};
  check.addresses({qkv, cosine, sine, positions});
  check.apart(qkv, {cosine, sine, positions});
  return true;
}

void rope_vision(Dispatcher& dispatcher, const RopeVisionArguments& given) {
  if (!checked_rope_vision(given)) {
    return;
  }
  const NamedDimension dimensions[] = {{"PATCHES", given.qkv.shape[0]},
                                       {"HEADS", given.qkv.shape[2]},
                                       {"HEAD_DIM", given.qkv.shape[3]},
                                       {"POSITIONS", given.cosine.shape[0]},
                                       {"QKV_STRIDE", row_stride(given.qkv)}};
  const NamedType types[] = {{"STORAGE", given.qkv.type}};
  void* const buffers[] = {given.qkv.data, given.cosine.data, given.sine.data, given.positions.data};
  launch(dispatcher, "rope_vision", dimensions, types, buffers);
}

}  // namespace pascaline::ops
