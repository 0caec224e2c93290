#include <algorithm>

#include "core/parallel.hpp"
#include "runtime/reference/reference.hpp"

namespace pascaline {
namespace {

// Four partial sums let the compiler vectorise without changing what is computed from run to run.
double dot(const double* a, const double* b, std::size_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      sums[lane] += a[k + lane] * b[k + lane];
    }
  }
  for (; k < count; ++k) {
    sums[0] += a[k] * b[k];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

void reference_matmul_nt(const Problem& problem, std::span<const std::vector<double>> inputs,
                         std::span<std::vector<double>> outputs) {
  const auto m = static_cast<std::size_t>(problem.dimension("M"));
  const auto n = static_cast<std::size_t>(problem.dimension("N"));
  const auto k = static_cast<std::size_t>(problem.dimension("K"));
  const double* a = inputs[0].data();
  const double* b = inputs[1].data();
  double* c = outputs[0].data();
  // A row of B is used for all rows of A while it is in cache.
  parallel_for(n, std::max<std::size_t>(1, 16'384 / std::max<std::size_t>(k, 1)),
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = 0; i < m; ++i) {
                   for (std::size_t j = begin; j < end; ++j) {
                     c[i * n + j] = dot(a + i * k, b + j * k, k);
                   }
                 }
               });
}

}  // namespace pascaline
