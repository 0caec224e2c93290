#include <algorithm>
#include <cmath>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {

// Softmax of each row; dimensions ROWS, WIDTH.
void reference_softmax(const Problem& problem, std::span<const std::vector<double>> inputs,
                       std::span<std::vector<double>> outputs) {
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  worker_pool().run(rows, std::max<std::size_t>(1, 4'096 / width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const double* x = inputs[0].data() + row * width;
      double* y = outputs[0].data() + row * width;
      const double most = *std::max_element(x, x + width);
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) {
        y[i] = std::exp(x[i] - most);
        sum += y[i];
      }
      for (std::size_t i = 0; i < width; ++i) {
        y[i] /= sum;
      }
    }
  });
}

}  // namespace pascaline
