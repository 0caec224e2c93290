#include "runtime/ops/attention.hpp"

#include <bit>

#include "runtime/ops/checked.hpp"
#include "runtime/ops/checks.hpp"
#include "runtime/ops/launch.hpp"

namespace pascaline::ops {
namespace {

constexpr std::int64_t kMinHeadDim = 16;
constexpr std::int64_t kMaxHeadDim = 256;

struct Heads {
  Extent heads;
  Extent kv_heads;
  Extent head_dim;
};

Heads heads_of(const AttentionPrefillArguments& given) {
  return {{"HEADS", given.q.shape[1]}, {"KV_HEADS", given.k.shape[1]}, {"HEAD_DIM", given.q.shape[2]}};
}

Heads heads_of(const AttentionDecodeArguments& given) {
  return {{"HEADS", given.q.shape[0]}, {"KV_HEADS", given.k.shape[1]}, {"HEAD_DIM", given.q.shape[1]}};
}

void check_heads(const Checks& check, const Heads& of) {
  check.at_least_one(of.heads);
  check.at_least_one(of.kv_heads);
  check.require(of.heads.value % of.kv_heads.value == 0,
                "HEADS is no multiple of KV_HEADS; every head of keys serves as many heads of queries");
  const std::int64_t head_dim = of.head_dim.value;
  check.require(head_dim >= kMinHeadDim && head_dim <= kMaxHeadDim && std::has_single_bit(std::uint64_t(head_dim)),
                "HEAD_DIM must be 16, 32, 64, 128 or 256");
}

void check_cache(const Checks& check, const TensorView& k, const TensorView& v, const Heads& of) {
  const Extent keys{"KEYS", k.shape[0]};
  check.strided({"k", &k}, {ElementType::float32, ElementType::float16}, {keys, of.kv_heads, of.head_dim});
  check.strided({"v", &v}, {k.type}, {keys, of.kv_heads, of.head_dim});
  check.require(is_empty(k) || row_stride(k) == row_stride(v), "rows of k and v must be equally far apart");
}

void check_segments(const Checks& check, const AttentionPrefillArguments& given) {
  const TensorView& starts = given.segment_starts;
  if (!is_given(starts)) {
    return;
  }
  check.dense({"segment_starts", &starts}, {ElementType::int32}, {{"SEGMENTS+1", starts.shape[0]}});
  check.require(starts.shape[0] >= 2, "segment_starts must have at least 2 elements: 0 and QUERIES");
  check.require(!given.causal, "segment_starts are given with causal; segments see themselves, whole");
  check.require(given.k.shape[0] == given.q.shape[0], "segments need as many keys as queries");
}

}  // namespace

std::int64_t segment_count(const AttentionPrefillArguments& arguments) noexcept {
  return is_given(arguments.segment_starts) ? arguments.segment_starts.shape[0] - 1 : 1;
}

bool checked_attention_prefill(const AttentionPrefillArguments& given) {
  const Checks check("attention_prefill");
  const Extent queries{"QUERIES", given.q.shape[0]};
  const Heads of = heads_of(given);
  check.strided({"q", &given.q}, {ElementType::float32, ElementType::float16}, {queries, of.heads, of.head_dim});
  check_cache(check, given.k, given.v, of);
  check.dense({"out", &given.out}, {given.q.type}, {queries, of.heads, of.head_dim});
  check_segments(check, given);
  if (is_empty(given.out)) {
    return false;
  }
  check_heads(check, of);
  check.require(given.k.shape[0] > 0, "k and v have no rows, there is nothing to attend to; fill out instead");
  const Operand q{"q", &given.q};
  const Operand k{"k", &given.k};
  const Operand v{"v", &given.v};
  const Operand out{"out", &given.out};
  const Operand starts{"segment_starts", &given.segment_starts};
  check.addresses({q, k, v, out, starts});
  check.apart(out, {q, k, v, starts});
  return true;
}

void attention_prefill(Dispatcher& dispatcher, const AttentionPrefillArguments& given) {
  if (!checked_attention_prefill(given)) {
    return;
  }
  const Heads of = heads_of(given);
  const NamedDimension dimensions[] = {
      {"HEADS", of.heads.value},          {"KV_HEADS", of.kv_heads.value},   {"HEAD_DIM", of.head_dim.value},
      {"QUERIES", given.q.shape[0]},      {"KEYS", given.k.shape[0]},        {"CAUSAL", given.causal ? 1 : 0},
      {"SEGMENTS", segment_count(given)}, {"Q_STRIDE", row_stride(given.q)}, {"KV_STRIDE", row_stride(given.k)}};
  const NamedType types[] = {{"STORAGE", given.q.type}, {"CACHE", given.k.type}};
  void* const buffers[] = {given.q.data, given.k.data, given.v.data, given.segment_starts.data, given.out.data};
  launch(dispatcher, "attention_prefill", dimensions, types, buffers);
}

bool checked_attention_decode(const AttentionDecodeArguments& given) {
  const Checks check("attention_decode");
  const Heads of = heads_of(given);
  check.dense({"q", &given.q}, {ElementType::float32, ElementType::float16}, {of.heads, of.head_dim});
  check_cache(check, given.k, given.v, of);
  check.dense({"length", &given.length}, {ElementType::int32}, {{"1", 1}});
  check.dense({"out", &given.out}, {given.q.type}, {of.heads, of.head_dim});
  if (is_empty(given.out)) {
    return false;
  }
  check_heads(check, of);
  check.at_least_one({"KEYS", given.k.shape[0]});
  const Operand q{"q", &given.q};
  const Operand k{"k", &given.k};
  const Operand v{"v", &given.v};
  const Operand length{"length", &given.length};
  const Operand out{"out", &given.out};
  check.addresses({q, k, v, length, out});
  check.apart(out, {q, k, v, length});
  return true;
}

void attention_decode(Dispatcher& dispatcher, const AttentionDecodeArguments& given) {
  if (!checked_attention_decode(given)) {
    return;
  }
  const Heads of = heads_of(given);
  const NamedDimension dimensions[] = {{"HEADS", of.heads.value},
                                       {"KV_HEADS", of.kv_heads.value},
                                       {"HEAD_DIM", of.head_dim.value},
                                       {"KEYS", given.k.shape[0]},
                                       {"KV_STRIDE", row_stride(given.k)}};
  const NamedType types[] = {{"STORAGE", given.q.type}, {"CACHE", given.k.type}};
  void* const buffers[] = {given.q.data, given.k.data, given.v.data, given.length.data, given.out.data};
  launch(dispatcher, "attention_decode", dimensions, types, buffers);
}

}  // namespace pascaline::ops
