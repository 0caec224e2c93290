#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"
#include "runtime/ops/scale_reference.hpp"

namespace pascaline {

// Rows of `x` (and of the residual, which receives the sum) normalised to mean 0 and variance 1, scaled and shifted;
// dimensions ROWS, WIDTH, RESIDUAL, BY_ROW.
void reference_layernorm(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs) {
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const std::size_t block = problem.dimension("BY_ROW") != 0 ? width : 32;
  const bool add_residual = problem.dimension("RESIDUAL") != 0;
  const std::vector<double>& weight = inputs[1];
  const std::vector<double>& bias = inputs[2];
  std::vector<double>& y = outputs[0];
  std::vector<double>& sums = outputs[2];
  worker_pool().run(rows, std::max<std::size_t>(1, 16'384 / width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      double sum = 0;
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        y[i] = inputs[0][i];
        if (add_residual) {
          y[i] += inputs[3][i];
          sums[i] = y[i];
        }
        sum += y[i];
      }
      const double mean = sum / static_cast<double>(width);
      double squares = 0;
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        squares += (y[i] - mean) * (y[i] - mean);
      }
      const double deviation = std::sqrt(squares / static_cast<double>(width) + 1e-6);
      for (std::size_t column = 0; column < width; ++column) {
        double& value = y[row * width + column];
        value = (value - mean) / deviation * weight[column] + bias[column];
      }
      scale_row(y, outputs[1], row, rows, width, block);
    }
  });
}

}  // namespace pascaline
