#include "runtime/formats/float16x.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace pascaline {
namespace {

constexpr int kMinExponentBits = 4;
constexpr int kMaxExponentBits = 8;
constexpr std::uint16_t kSign = 0x8000;
constexpr std::uint16_t kLargest = 0x7FFF;

int fraction_bits(Float16x format) noexcept { return 15 - format.exponent_bits; }

/// Rounds magnitudes to those that a format has, without making codes of them: a few operations that are done for
/// several values at a time.
class Rounding {
 public:
  explicit Rounding(Float16x format) noexcept
      : smallest_power_(std::ldexp(1.0, 1 - format.bias)),
        no_fraction_(std::ldexp(1.5, 52 - fraction_bits(format))),
        largest_(static_cast<double>(float_from_16x(format, kLargest))) {}

  /// Of a finite magnitude. Added to 1.5 · 2^52 units of the last place, it loses what lies below that place.
  [[nodiscard]] double operator()(double magnitude) const noexcept {
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) & kExponent);
    const double shift = (power > smallest_power_ ? power : smallest_power_) * no_fraction_;
    const double rounded = (magnitude + shift) - shift;
    return rounded < largest_ ? rounded : largest_;
  }

 private:
  static constexpr std::uint64_t kExponent = 0x7FF0000000000000U;  // of a double; alone, the power of two below
  double smallest_power_;
  double no_fraction_;
  double largest_;
};

}  // namespace

float float_from_16x(Float16x format, std::uint16_t code) noexcept {
  const int fraction = fraction_bits(format);
  const int magnitude = code & kLargest;
  const int exponent = magnitude >> fraction;
  const int digits = magnitude & ((1 << fraction) - 1);
  // Subnormals have the exponent of the smallest normal numbers and no leading one.
  const int whole = exponent == 0 ? digits : digits + (1 << fraction);
  const double value = std::ldexp(static_cast<double>(whole), std::max(exponent, 1) - format.bias - fraction);
  return static_cast<float>((code & kSign) != 0 ? -value : value);
}

std::uint16_t to_float16x(Float16x format, float value) noexcept {
  const int fraction = fraction_bits(format);
  const std::uint16_t sign = std::signbit(value) ? kSign : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) {
    return sign;
  }
  if (std::isinf(magnitude)) {
    return sign | kLargest;
  }
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  // In units of the last place. A sum that carries into the next exponent is the next code, as it should be.
  const auto units = static_cast<std::int64_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  const std::int64_t code = (static_cast<std::int64_t>(exponent + format.bias - 1) << fraction) + units;
  return sign | static_cast<std::uint16_t>(std::min<std::int64_t>(code, kLargest));
}

double squared_error(Float16x format, std::span<const float> values) noexcept {
  const Rounding rounding(format);
  std::array<double, 4> sums{};  // in an order of its own, which the compiler may not choose
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double magnitude = std::fabs(static_cast<double>(values[i]));
    const double difference = magnitude - rounding(magnitude);
    sums[i % 4] += difference * difference;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Float16x best_float16x(std::span<const float> values) noexcept {
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  Float16x best{5, 15};
  if (largest == 0) {
    return best;
  }
  double least = squared_error(best, values);
  const auto consider = [&](Float16x format) {
    if (format.bias < format.least_bias() || format.bias > format.most_bias()) {
      return;
    }
    if (const double error = squared_error(format, values); error < least) {
      least = error;
      best = format;
    }
  };
  consider({8, 128});
  for (int bits = kMinExponentBits; bits <= kMaxExponentBits; ++bits) {
    for (int lower = 0; lower <= 2; ++lower) {
      consider({bits, (1 << bits) - 1 - (std::ilogb(largest) - lower)});
    }
  }
  return best;
}

}  // namespace pascaline
