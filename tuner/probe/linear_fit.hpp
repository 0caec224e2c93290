#pragma once

#include <optional>
#include <span>

namespace pascaline {

/// A straight line through points, by least squares.
struct LinearFit {
  double slope = 0;
  double low = 0;        ///< of the slope's 95 % confidence interval
  double high = 0;       ///< …
  double at_zero = 0;    ///< the line's value there
  double explained = 0;  ///< share of the variance of `y` that the line explains, 0 to 1
};

/// The line through (x[i], y[i]), whose slope's interval is that of Student's t with two degrees of freedom less than
/// there are points (errors that are independent and alike). Nothing for fewer than three points, points at one x only,
/// sides of different length, or numbers that are not finite.
[[nodiscard]] std::optional<LinearFit> fit_line(std::span<const double> x, std::span<const double> y);

/// The value that Student's t with so many degrees of freedom (1 or more) exceeds in 2.5 % of cases.
[[nodiscard]] double student_t_975(int degrees);

}  // namespace pascaline
