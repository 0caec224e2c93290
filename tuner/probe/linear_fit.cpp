#include "tuner/probe/linear_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace pascaline {

// The first from tables; those after by the series in 1/degrees around the normal distribution's value (Abramowitz and
// Stegun, Handbook of Mathematical Functions, 26.7.5).
double student_t_975(int degrees) {
  constexpr std::array<double, 6> kFirst{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469};
  if (degrees <= static_cast<int>(kFirst.size())) {
    return kFirst[static_cast<std::size_t>(std::max(1, degrees) - 1)];
  }
  constexpr double kZ = 1.959963984540054;
  const double n = degrees;
  const double z3 = kZ * kZ * kZ;
  const double z5 = z3 * kZ * kZ;
  const double z7 = z5 * kZ * kZ;
  return kZ + (z3 + kZ) / (4 * n) + (5 * z5 + 16 * z3 + 3 * kZ) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * kZ) / (384 * n * n * n);
}

std::optional<LinearFit> fit_line(std::span<const double> x, std::span<const double> y) {
  const auto finite = [](double value) { return std::isfinite(value); };
  if (x.size() != y.size() || x.size() < 3 || !std::all_of(x.begin(), x.end(), finite) ||
      !std::all_of(y.begin(), y.end(), finite)) {
    return std::nullopt;
  }
  const auto n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  if (!(xx > 0)) {
    return std::nullopt;
  }
  LinearFit fit;
  fit.slope = xy / xx;
  fit.at_zero = mean_y - fit.slope * mean_x;
  const double residual = std::max(0.0, yy - fit.slope * xy);
  fit.explained = yy > 0 ? 1 - residual / yy : 0;
  const double error = std::sqrt(residual / (n - 2) / xx);
  const double half = student_t_975(static_cast<int>(x.size()) - 2) * error;
  fit.low = fit.slope - half;
  fit.high = fit.slope + half;
  return fit;
}

}  // namespace pascaline
