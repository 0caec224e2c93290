#include "model/image/resize_weights.hpp"

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

constexpr int kMaxPrecision = 22;
constexpr double kA = -0.5;

double cubic(double x) {
  const double t = std::abs(x);
  if (t < 1) {
    return ((kA + 2) * t - (kA + 3)) * t * t + 1;
  }
  return t < 2 ? ((kA * t - 5 * kA) * t + 8 * kA) * t - 4 * kA : 0;
}

// The most bits after the point with which the largest weight still fits 16 bits.
int precision_of(const std::vector<double>& weights) {
  const double largest = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
  int precision = 0;
  while (precision < kMaxPrecision && std::floor(0.5 + largest * (1 << (precision + 1))) < (1 << 15)) {
    ++precision;
  }
  return precision;
}

// Fills the weights of one output, normalised, and gives their number.
std::size_t fill_weights(double center, double scale, std::int64_t low, std::int64_t high, double* weights) {
  const double inverse = scale >= 1 ? 1 / scale : 1;
  const auto count = static_cast<std::size_t>(high - low);
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    weights[k] = cubic((static_cast<double>(low) + static_cast<double>(k) - center + 0.5) * inverse);
    sum += weights[k];
  }
  for (std::size_t k = 0; k < count && sum != 0; ++k) {
    weights[k] /= sum;
  }
  return count;
}

}  // namespace

ResizeWeights resize_weights(std::int64_t in, std::int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double support = 2 * std::max(scale, 1.0);
  const auto outputs = static_cast<std::size_t>(out);
  ResizeWeights result;
  result.taps = (static_cast<std::size_t>(std::ceil(support)) * 2 + 1 + 7) / 8 * 8;
  result.first.resize(outputs);
  result.count.resize(outputs);
  std::vector<double> exact(outputs * result.taps);
  for (std::size_t i = 0; i < outputs; ++i) {
    const double center = scale * (static_cast<double>(i) + 0.5);
    const std::int64_t low = static_cast<std::int64_t>(std::max(std::floor(center - support + 0.5), 0.0));
    const std::int64_t high = std::min(static_cast<std::int64_t>(std::floor(center + support + 0.5)), in);
    result.first[i] = static_cast<std::size_t>(low);
    result.count[i] = fill_weights(center, scale, low, high, exact.data() + i * result.taps);
  }
  result.precision = precision_of(exact);
  const double unit = 1 << result.precision;
  result.weights.resize(exact.size());
  std::transform(exact.begin(), exact.end(), result.weights.begin(), [unit](double w) {
    return static_cast<std::int16_t>(static_cast<int>(w * unit + (w < 0 ? -0.5 : 0.5)));
  });
  return result;
}

}  // namespace pascaline
