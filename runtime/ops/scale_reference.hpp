#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/problem.hpp"

namespace pascaline {

/// Of a normalisation into int8: divides the elements of a row of y [ROWS, WIDTH] by the scales of its blocks of 32
/// columns, or by its own with BY_ROW, and stores these. Nothing is rounded; see docs/search_spaces.md. Without `scales`
/// there is nothing to do.
inline void scale_row(const Problem& problem, std::size_t row, std::vector<double>& y, std::vector<double>& scales) {
  if (scales.empty()) {
    return;
  }
  const auto rows = static_cast<std::size_t>(problem.dimension("ROWS"));
  const auto width = static_cast<std::size_t>(problem.dimension("WIDTH"));
  const std::size_t block = problem.dimension("BY_ROW") != 0 ? width : 32;
  for (std::size_t first = 0; first < width; first += block) {
    double* const values = y.data() + row * width + first;
    double largest = 0;
    for (std::size_t i = 0; i < block; ++i) {
      largest = std::max(largest, std::abs(values[i]));
    }
    const double scale = largest / 127;
    for (std::size_t i = 0; i < block; ++i) {
      values[i] = largest > 0 ? values[i] / scale : 0;
    }
    scales[first / block * rows + row] = scale;
  }
}

}  // namespace pascaline
