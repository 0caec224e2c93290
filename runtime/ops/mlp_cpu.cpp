#include <algorithm>
#include <vector>

#include "runtime/cpu/floats.hpp"
#include "runtime/cpu/vector_kernels.hpp"
#include "runtime/ops/matmul.hpp"
#include "runtime/ops/mlp.hpp"
#include "runtime/ops/norm.hpp"

namespace pascaline::ops {

// Rows are multiplied before they are divided by the roots of their mean squares, as on a device.
void Mlp::compute() const {
  const std::int64_t m = x.shape[0];
  const std::int64_t width = x.shape[1];
  const std::int64_t intermediate = down.shape[1];
  const auto* const weights = static_cast<const float*>(norm.data);
  std::vector<float> weighted(static_cast<std::size_t>(m * width));
  std::vector<float> products(static_cast<std::size_t>(2 * m * intermediate));
  std::vector<float> gates(static_cast<std::size_t>(intermediate));
  std::vector<float> factors(gates.size());
  std::vector<float> gated(static_cast<std::size_t>(m * intermediate));
  std::vector<float> sums(weighted.size());
  std::vector<float> scales;
  for (std::int64_t row = 0; row < m; ++row) {
    const float* const given = cpu::floats_at(x, row * width, width, cpu::scratch(cpu::Scratch::first, width));
    scales.push_back(rmsnorm_factor(given, width, epsilon));
    for (std::int64_t i = 0; i < width; ++i) {
      weighted[static_cast<std::size_t>(row * width + i)] = given[i] * weights[i];
    }
  }
  Matmul{.a = {weighted.data(), ElementType::float32, {m, width}},
         .b = gate_up,
         .c = {products.data(), ElementType::float32, {m, 2 * intermediate}}}
      .compute();
  for (std::int64_t row = 0; row < m; ++row) {
    const float scale = scales[static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < gates.size(); ++i) {
      const float* const pair = &products[2 * (static_cast<std::size_t>(row) * gates.size() + i)];
      gates[i] = pair[0] * scale;
      factors[i] = pair[1] * scale;
    }
    cpu::vector_kernels().silu_multiply(gates.data(), factors.data(),
                                        &gated[static_cast<std::size_t>(row) * gates.size()], intermediate);
  }
  Matmul{.a = {gated.data(), ElementType::float32, {m, intermediate}},
         .b = down,
         .c = {sums.data(), ElementType::float32, {m, width}}}
      .compute();
  for (std::int64_t row = 0; row < m; ++row) {
    float* const begin = &sums[static_cast<std::size_t>(row * width)];
    const float* const given = cpu::floats_at(x, row * width, width, cpu::scratch(cpu::Scratch::first, width));
    std::transform(begin, begin + width, given, begin, [](float sum, float residual) { return sum + residual; });
  }
  cpu::store_floats(sums.data(), c, 0, m * width);
}

}  // namespace pascaline::ops
