#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace pascaline {

/// Of results in int8: divides the elements of a row of y [rows, width] by the scales of its blocks of that many
/// columns, and stores these in `scales` [width / block, rows]. Nothing is rounded; see docs/search_spaces.md. Without
/// `scales` there is nothing to do.
inline void scale_row(std::vector<double>& y, std::vector<double>& scales, std::size_t row, std::size_t rows,
                      std::size_t width, std::size_t block) {
  if (scales.empty()) {
    return;
  }
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
