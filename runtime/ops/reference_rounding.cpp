#include "runtime/ops/reference_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

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

}  // namespace pascaline
