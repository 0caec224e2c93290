#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"
#include "runtime/ops/scale_reference.hpp"

namespace pascaline {

// Rows of `x` (and of the residual, which receives the sum) divided by their root mean square, and scaled; dimensions
// ROWS, WIDTH, RESIDUAL, BY_ROW, EPSILON.
void reference_rmsnorm(const Problem& problem, std::span<const std::vector<double>> inputs,
                       std::span<std::vector<double>> outputs) {
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const std::size_t block = problem.dimension("BY_ROW") != 0 ? width : 32;
  const double epsilon = static_cast<double>(problem.dimension("EPSILON")) / 1e9;
  const bool add_residual = problem.dimension("RESIDUAL") != 0;
  const std::vector<double>& weight = inputs[1];
  std::vector<double>& y = outputs[0];
  std::vector<double>& sums = outputs[2];
  worker_pool().run(rows, std::max<std::size_t>(1, 16'384 / width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      double squares = 0;
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        y[i] = inputs[0][i];
        if (add_residual) {
          y[i] += inputs[2][i];
          sums[i] = y[i];
        }
        squares += y[i] * y[i];
      }
      const double deviation = std::sqrt(squares / static_cast<double>(width) + epsilon);
      for (std::size_t column = 0; column < width; ++column) {
        y[row * width + column] *= weight[column] / deviation;
      }
      scale_row(y, outputs[1], row, rows, width, block);
    }
  });
}

}  // namespace pascaline
