#include "runtime/ops/reference_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/util/worker_pool.hpp"
#include "runtime/formats/int8_activations.hpp"

namespace pascaline {
namespace {

// Calls `visit(first, values, scale)` for each part of the rows that has a scale of its own, if the weight takes such.
template <typename Visit>
void visit_scaled(const std::vector<double>& rows, std::size_t width, ElementType weight, const Visit& visit) {
  if (!is_packed_format(weight)) {
    return;
  }
  const std::size_t block = weight == ElementType::int8_row ? width : std::size_t{kActivationBlock};
  std::vector<float> values;
  for (std::size_t row = 0; row < rows.size(); row += width) {
    for (std::size_t first = 0; first < width; first += block) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row + first);
      values.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(block, width - first)));
      visit(row + first, std::span<const float>(values), int8_scale(values));
    }
  }
}

}  // namespace

void round_rows(std::vector<double>& rows, std::size_t width, ElementType weight) {
  std::vector<std::int8_t> rounded(width);
  visit_scaled(rows, width, weight, [&](std::size_t first, std::span<const float> values, const Int8Scale& scale) {
    round_to_int8(values, scale.inverse, rounded.data());
    std::transform(rounded.begin(), rounded.begin() + std::ssize(values),
                   rows.begin() + static_cast<std::ptrdiff_t>(first),
                   [&](std::int8_t q) { return static_cast<double>(scale.scale) * q; });
  });
}

std::vector<double> rounding_slack(const std::vector<double>& rows, const std::vector<double>& errors,
                                   std::size_t width, ElementType weight, const std::vector<double>& matrix) {
  const std::size_t n = matrix.size() / width;
  std::vector<double> slack(rows.size() / width * n);
  visit_scaled(rows, width, weight, [&](std::size_t first, std::span<const float> values, const Int8Scale& scale) {
    for (std::size_t i = first; i < first + values.size(); ++i) {
      const double at = rows[i] * scale.inverse;
      if (std::abs(at - std::floor(at) - 0.5) > errors[i] * scale.inverse) {
        continue;
      }
      for (std::size_t column = 0; column < n; ++column) {
        slack[i / width * n + column] += std::abs(scale.scale * matrix[column * width + i % width]);
      }
    }
  });
  return slack;
}

std::vector<double> product_of_rows(const std::vector<double>& a, const std::vector<double>& b, std::size_t k) {
  const std::size_t m = a.size() / k;
  const std::size_t n = b.size() / k;
  std::vector<double> c(m * n);
  worker_pool().run(n, std::max<std::size_t>(1, 16'384 / k), [&](std::size_t begin, std::size_t end) {
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

std::vector<double> normed_products(const std::vector<double>& x, const std::vector<double>& norm, double epsilon,
                                    const std::vector<double>& matrix, ElementType weight) {
  const std::size_t width = norm.size();
  std::vector<double> normed = x;
  std::vector<double> factors;
  for (std::size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) {
      squares += x[row + i] * x[row + i];
      // Rounded values are those of float32 products.
      normed[row + i] = is_packed_format(weight) ? static_cast<float>(x[row + i]) * static_cast<float>(norm[i])
                                                 : x[row + i] * norm[i];
    }
    factors.push_back(1 / std::sqrt(squares / static_cast<double>(width) + epsilon));
  }
  round_rows(normed, width, weight);
  std::vector<double> products = product_of_rows(normed, matrix, width);
  const std::size_t columns = products.size() / factors.size();
  for (std::size_t i = 0; i < products.size(); ++i) {
    products[i] *= factors[i / columns];
  }
  return products;
}

// Four times what a random walk of their roundings comes to (as in core/error_bound.cpp), with a few of what is done
// besides.
double error_of_packed_sums(std::size_t k) noexcept {
  constexpr double kDeviations = 4;
  constexpr double kOtherRoundings = 8;
  const double terms = static_cast<double>(k) / kActivationBlock + kOtherRoundings;
  return kDeviations * 0x1p-24 * std::sqrt(terms);
}

}  // namespace pascaline
