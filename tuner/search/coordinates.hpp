#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tuner/search/search_domain.hpp"

namespace pascaline {

/// How a surrogate compares two configurations along one coordinate.
enum class CoordinateKind : std::uint8_t {
  ordered,   ///< by the difference of two numbers from 0 to 1
  category,  ///< equal or not
  linear,    ///< a prediction to be scaled: its product enters the covariance
};

/// How far apart two values of an ordered or category coordinate lie: two categories as far as half an ordered range.
[[nodiscard]] inline double coordinate_difference(CoordinateKind kind, float a, float b) noexcept {
  if (kind == CoordinateKind::category) {
    return a == b ? 0.0 : 0.5;
  }
  return static_cast<double>(a) - static_cast<double>(b);
}

/// Where configurations lie for a surrogate. A parameter of ordered values gives up to three coordinates: its place
/// (the mean of its rank and of its logarithm's), whether it is the same value, and how often two divides it, which
/// decides vector widths, bank conflicts and whole warps whatever the parameter means. Text gives a category.
class Coordinates {
 public:
  explicit Coordinates(const std::vector<Axis>& axes);

  [[nodiscard]] const std::vector<CoordinateKind>& kinds() const noexcept { return kinds_; }
  [[nodiscard]] std::size_t size() const noexcept { return kinds_.size(); }
  /// Writes the coordinates of a point; `out` has `size` elements.
  void write(const Point& point, std::span<float> out) const;

 private:
  struct Column {
    std::size_t axis = 0;
    std::vector<float> of_value;
  };
  void add(std::size_t axis, CoordinateKind kind, std::vector<float> of_value);

  std::vector<Column> columns_;
  std::vector<CoordinateKind> kinds_;
};

}  // namespace pascaline
