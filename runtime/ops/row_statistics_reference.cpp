#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {

// What RMSNorm (NORM 1) or LayerNorm (2) multiply each row of `x` by, then the means of the latter; dimensions ROWS,
// WIDTH, NORM, EPSILON.
void reference_row_statistics(const Problem& problem, std::span<const std::vector<double>> inputs,
                              std::span<std::vector<double>> outputs) {
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const bool has_means = problem.dimension("NORM") == 2;
  const double epsilon = static_cast<double>(problem.dimension("EPSILON")) / 1e9;
  std::vector<double>& statistics = outputs[0];
  worker_pool().run(rows, std::max<std::size_t>(1, 16'384 / width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::span<const double> values(inputs[0].data() + row * width, width);
      double mean = 0;
      for (const double value : values) {
        mean += has_means ? value / static_cast<double>(width) : 0.0;
      }
      double squares = 0;
      for (const double value : values) {
        squares += (value - mean) * (value - mean);
      }
      statistics[row] = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
      if (has_means) {
        statistics[rows + row] = mean;
      }
    }
  });
}

}  // namespace pascaline
