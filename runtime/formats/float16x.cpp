#include "runtime/formats/float16x.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pascaline {
namespace {

constexpr int kMinExponentBits = 4;
constexpr int kMaxExponentBits = 8;
constexpr std::uint16_t kSign = 0x8000;
constexpr std::uint16_t kLargest = 0x7FFF;

int fraction_bits(Float16x format) noexcept { return 15 - format.exponent_bits; }

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
  double sum = 0;
  for (const float value : values) {
    const double difference =
        static_cast<double>(value) - static_cast<double>(float_from_16x(format, to_float16x(format, value)));
    sum += difference * difference;
  }
  return sum;
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
