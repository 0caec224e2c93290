#include <algorithm>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {

// `y[COLUMNS,ROWS] = x[ROWS,COLUMNS]` transposed.
void reference_transpose(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs) {
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto columns = static_cast<std::size_t>(problem.dimension("COLUMNS"));
  worker_pool().run(columns, std::max<std::size_t>(1, 16'384 / rows), [&](std::size_t begin, std::size_t end) {
    for (std::size_t column = begin; column < end; ++column) {
      for (std::size_t row = 0; row < rows; ++row) {
        outputs[0][column * rows + row] = inputs[0][row * columns + column];
      }
    }
  });
}

}  // namespace pascaline
