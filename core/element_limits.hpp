#pragma once

namespace pascaline {

/// How far elements may be from what they must be, in float64: at most relative · |expected| + absolute +
/// max(rounding · the power of two below the larger of both magnitudes, least_rounding), added in this order. An
/// element's error is told in parts of |expected| + unit.
struct ElementLimits {
  double relative = 0;
  double absolute = 0;
  double rounding = 0;
  double least_rounding = 0;
  double unit = 0;
};

}  // namespace pascaline
