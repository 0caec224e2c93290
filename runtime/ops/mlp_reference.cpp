#include <algorithm>
#include <cmath>

#include "core/util/parallel.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/ops/reference.hpp"

namespace pascaline {
namespace {

// Rows as a product with such a weight takes them: rounded to int8 where that is packed, each row or 32 columns with a
// scale.
void round_rows(std::vector<double>& rows, std::size_t width, ElementType weight) {
  if (!is_packed_format(weight)) {
    return;
  }
  const std::size_t block = weight == ElementType::int8_row ? width : std::size_t{kActivationBlock};
  std::vector<float> values;
  std::vector<std::int8_t> rounded(width);
  for (std::size_t row = 0; row < rows.size(); row += width) {
    for (std::size_t first = 0; first < width; first += block) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row + first);
      values.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(block, width - first)));
      const Int8Scale scale = int8_scale(values);
      round_to_int8(values, scale.inverse, rounded.data());
      std::transform(rounded.begin(), rounded.begin() + std::ssize(values), begin,
                     [&](std::int8_t q) { return static_cast<double>(scale.scale) * q; });
    }
  }
}

// a · bᵀ
std::vector<double> product_of_rows(const std::vector<double>& a, const std::vector<double>& b, std::size_t k) {
  const std::size_t m = a.size() / k;
  const std::size_t n = b.size() / k;
  std::vector<double> c(m * n);
  parallel_for(n, std::max<std::size_t>(1, 16'384 / k), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t column = begin; column < end; ++column) {
        double sum = 0;
        for (std::size_t i = 0; i < k; ++i) {
          sum += a[row * k + i] * b[column * k + i];
        }
        c[row * n + column] = sum;
      }
    }
  });
  return c;
}

}  // namespace

// Inputs x, norm, gate_up and down; dimensions M, HIDDEN, INTERMEDIATE, EPSILON; types WEIGHT, and DOWN where it may be
// another.
void reference_mlp(const Problem& problem, std::span<const std::vector<double>> inputs,
                   std::span<std::vector<double>> outputs) {
  const auto hidden = static_cast<std::size_t>(problem.dimension("HIDDEN"));
  const auto intermediate = static_cast<std::size_t>(problem.dimension("INTERMEDIATE"));
  const double epsilon = static_cast<double>(problem.dimension("EPSILON")) / 1e9;
  const ElementType weight = problem.type("WEIGHT");
  const std::vector<double>& x = inputs[0];
  std::vector<double> normed = x;
  std::vector<double> factors;
  for (std::size_t row = 0; row < x.size(); row += hidden) {
    double squares = 0;
    for (std::size_t i = 0; i < hidden; ++i) {
      squares += x[row + i] * x[row + i];
      // Rounded values are those of float32 products.
      normed[row + i] = is_packed_format(weight) ? static_cast<float>(x[row + i]) * static_cast<float>(inputs[1][i])
                                                 : x[row + i] * inputs[1][i];
    }
    factors.push_back(1 / std::sqrt(squares / static_cast<double>(hidden) + epsilon));
  }
  round_rows(normed, hidden, weight);
  const std::vector<double> products = product_of_rows(normed, inputs[2], hidden);
  std::vector<double> gated(products.size() / 2);
  for (std::size_t i = 0; i < gated.size(); ++i) {
    const double factor = factors[i / intermediate];
    const double gate = products[2 * i] * factor;
    gated[i] = gate / (1 + std::exp(-gate)) * products[2 * i + 1] * factor;
  }
  round_rows(gated, intermediate, is_packed_format(weight) ? problem.type("DOWN") : weight);
  outputs[0] = product_of_rows(gated, inputs[3], intermediate);
  std::transform(outputs[0].begin(), outputs[0].end(), x.begin(), outputs[0].begin(), std::plus<>());
}

}  // namespace pascaline
