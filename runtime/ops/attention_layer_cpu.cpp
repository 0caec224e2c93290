#include <vector>

#include "runtime/cpu/floats.hpp"
#include "runtime/ops/attention_layer.hpp"
#include "runtime/ops/attention_projected.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline::ops {

// The row is multiplied before it is divided by the root of its mean square, as on a device.
void AttentionLayer::compute() const {
  const std::int64_t hidden = x.shape[1];
  const std::int64_t rows = qkv_weight.shape[0];
  const std::int64_t head_dim = k_cache.shape[2];
  const auto* const weights = static_cast<const float*>(norm.data);
  std::vector<float> residual(static_cast<std::size_t>(hidden));
  std::vector<float> weighted(residual.size());
  std::vector<float> sums(residual.size());
  std::vector<float> token(static_cast<std::size_t>(rows));
  cpu::widen_to(x, 0, hidden, residual.data());
  const float factor = rmsnorm_factor(residual.data(), hidden, epsilon);
  for (std::size_t i = 0; i < weighted.size(); ++i) {
    weighted[i] = residual[i] * weights[i];
  }
  Matmul{.a = {weighted.data(), ElementType::float32, {1, hidden}},
         .b = qkv_weight,
         .c = {token.data(), ElementType::float32, {1, rows}}}
      .compute();
  for (float& value : token) {
    value *= factor;
  }
  AttentionProjected{token_heads(),
                     length,
                     {token.data(), ElementType::float32, {rows / head_dim, head_dim}},
                     {residual.data(), ElementType::float32, {1, hidden}},
                     weight,
                     {sums.data(), ElementType::float32, {1, hidden}}}
      .compute();
  cpu::store_floats(sums.data(), c, 0, hidden);
}

}  // namespace pascaline::ops
