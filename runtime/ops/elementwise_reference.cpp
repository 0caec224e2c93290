#include <cmath>
#include <numbers>

#include "core/util/worker_pool.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

double gelu_tanh(double a) {
  return 0.5 * a * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (a + 0.044715 * a * a * a)));
}

double gelu_erf(double a) { return 0.5 * a * (1.0 + std::erf(a / std::numbers::sqrt2)); }

}  // namespace

// `y = f(a, b)` element by element; dimensions COUNT and OPERATION, which chooses f.
void reference_elementwise(const Problem& problem, std::span<const std::vector<double>> inputs,
                           std::span<std::vector<double>> outputs) {
  const std::int64_t operation = problem.dimension("OPERATION");
  const std::vector<double>& a = inputs[0];
  const std::vector<double>& b = inputs[1];
  std::vector<double>& y = outputs[0];
  worker_pool().run(a.size(), 16'384, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      switch (operation) {
        case 1:
          y[i] = a[i] + b[i];
          break;
        case 2:
          y[i] = a[i] / (1.0 + std::exp(-a[i])) * b[i];
          break;
        case 3:
          y[i] = gelu_tanh(a[i]);
          break;
        case 4:
          y[i] = gelu_erf(a[i]);
          break;
        case 5:
          y[i] = gelu_tanh(a[i]) * b[i];
          break;
        default:
          y[i] = a[i];
      }
    }
  });
}

}  // namespace pascaline
