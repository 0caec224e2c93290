#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/cpu/floats.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/attention_qkv.hpp"
#include "runtime/ops/rope.hpp"

namespace pascaline::ops {
namespace {

// The token through QkNormRope, its key and value to row `slot` of the caches of `heads`.
void store_token_row(const TokenHeads& heads, const TensorView& qkv, std::int32_t slot, const TensorView& q) {
  QkNormRope{heads, qkv, {&slot, ElementType::int32, {1}}, q}.compute();
}

// The first `rows` rows of a cache as float32, with room for one more.
std::vector<float> widened_rows(const TensorView& cache, const TensorView& scales, std::int64_t rows) {
  const std::int64_t heads = cache.shape[1];
  const std::int64_t head_dim = cache.shape[2];
  std::vector<float> wide(static_cast<std::size_t>((rows + 1) * heads * head_dim));
  cpu::widen_to(cache, 0, rows * heads * head_dim, wide.data());
  for (std::int64_t head = 0; is_given(scales) && head < rows * heads; ++head) {
    const float scale = static_cast<const float*>(scales.data)[head];
    std::for_each_n(wide.begin() + head * head_dim, head_dim, [&](float& value) { value *= scale; });
  }
  return wide;
}

}  // namespace

void AttentionDecodeQkv::compute() const {
  const std::int64_t heads = out.shape[0];
  const std::int64_t kv_heads = k_cache.shape[1];
  const std::int64_t head_dim = out.shape[1];
  std::int32_t rows = std::clamp<std::int32_t>(*static_cast<const std::int32_t*>(length.data), 0,
                                               static_cast<std::int32_t>(k_cache.shape[0]));
  const std::int32_t earlier = std::max(rows - 1, 0);
  std::vector<float> row(static_cast<std::size_t>(qkv.shape[0] * head_dim));
  std::vector<float> query(static_cast<std::size_t>(heads * head_dim));
  std::vector<float> keys = widened_rows(k_cache, k_scales, earlier);
  std::vector<float> values = widened_rows(v_cache, v_scales, earlier);
  cpu::widen_to(qkv, 0, qkv.shape[0] * head_dim, row.data());
  const TensorView token(row.data(), ElementType::float32, {1, qkv.shape[0], head_dim});
  const TensorView turned(query.data(), ElementType::float32, {1, heads, head_dim});
  TokenHeads wide = token_heads();
  wide.k_cache = {keys.data(), ElementType::float32, {earlier + 1, kv_heads, head_dim}};
  wide.v_cache = {values.data(), ElementType::float32, {earlier + 1, kv_heads, head_dim}};
  wide.k_scales = wide.v_scales = {};
  if (rows > 0) {
    store_token_row(*this, token, earlier, turned);
  }
  store_token_row(wide, token, earlier, turned);
  AttentionDecode{.q = {query.data(), ElementType::float32, {heads, head_dim}},
                  .k = wide.k_cache,
                  .v = wide.v_cache,
                  .length = {&rows, ElementType::int32, {1}},
                  .out = out,
                  .scales = scales}
      .compute();
}

}  // namespace pascaline::ops
