#include <algorithm>
#include <vector>

#include "runtime/cpu/floats.hpp"
#include "runtime/ops/attention_projected.hpp"
#include "runtime/ops/attention_qkv.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline::ops {

void AttentionProjected::compute() const {
  const std::int64_t head_dim = qkv.shape[1];
  const std::int64_t heads = qkv.shape[0] - 2 * k_cache.shape[1];
  const std::int64_t hidden = x.shape[1];
  std::vector<float> token(static_cast<std::size_t>(qkv.shape[0] * head_dim));
  std::vector<float> attended(static_cast<std::size_t>(heads * head_dim));
  std::vector<float> residual(static_cast<std::size_t>(hidden));
  std::vector<float> sums(residual.size());
  cpu::widen_to(qkv, 0, qkv.shape[0] * head_dim, token.data());
  cpu::widen_to(x, 0, hidden, residual.data());
  AttentionDecodeQkv{token_heads(),
                     length,
                     {token.data(), ElementType::float32, {qkv.shape[0], head_dim}},
                     {attended.data(), ElementType::float32, {heads, head_dim}}}
      .compute();
  Matmul{.a = {attended.data(), ElementType::float32, {1, heads * head_dim}},
         .b = weight,
         .c = {sums.data(), ElementType::float32, {1, hidden}},
         .residual = {residual.data(), ElementType::float32, {1, hidden}},
         .epilogue = Epilogue::residual}
      .compute();
  cpu::store_floats(sums.data(), c, 0, hidden);
}

}  // namespace pascaline::ops
