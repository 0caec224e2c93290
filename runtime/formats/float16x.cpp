#include "runtime/formats/float16x.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/problem.hpp"
#include "kernel_templates/inputs/float16x_code.cuh"

namespace pascaline {
namespace {

int fraction_bits(Float16x format) noexcept { return 15 - format.exponent_bits; }

/// Rounds magnitudes to those that a format has, without making codes of them: a few operations that are done for
/// several values at a time.
class Rounding {
 public:
  explicit Rounding(Float16x format) noexcept
      : smallest_power_(std::ldexp(1.0, 1 - format.bias)),
        no_fraction_(std::ldexp(1.5, 52 - fraction_bits(format))),
        largest_(static_cast<double>(float_from_16x(format, format.largest_code()))) {}

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

float float_from_16x(Float16x format, std::uint16_t code) noexcept { return Float16xDecoder(format)(code); }

void floats_from_16x(Float16x format, std::span<const std::byte> codes, std::span<float> values) noexcept {
  const Float16xDecoder decode(format);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, codes.data() + i * sizeof code, sizeof code);
    values[i] = decode(code);
  }
}

Float16xCode float16x_code(Float16x format) noexcept {
  const int bias = std::min(format.bias, 127);
  return {.shift = static_cast<unsigned>(8 + format.exponent_bits),
          .prescale = std::ldexp(1.0F, std::max(0, format.bias - 127)),
          .rebase = static_cast<std::uint32_t>(127 - bias) << 23U,
          .smallest_normal = std::ldexp(1.0F, 1 - bias),
          .ulp_carrier = std::ldexp(1.0F, 24 - bias - fraction_bits(format)),
          .largest = format.largest_code()};
}

std::uint16_t to_float16x(Float16x format, float value) noexcept { return float16x_code(format)(value); }

void to_float16x(Float16x format, std::span<const float> values, std::span<std::byte> codes) noexcept {
  const Float16xCode encode = float16x_code(format);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t code = encode(values[i]);
    std::memcpy(codes.data() + i * sizeof code, &code, sizeof code);
  }
}

bool holds_exactly(Float16x format, std::span<const float> values) noexcept {
  const Float16xCode encode = float16x_code(format);
  const Float16xDecoder decode(format);
  bool all = true;
  for (const float value : values) {
    all = all & (decode(encode(value)) == value);  // without branches, for several at a time
  }
  return all;
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

void put_float16x_header(Float16x format, std::span<std::byte> matrix) noexcept {
  const std::array<std::int32_t, 2> header{format.exponent_bits, format.bias};
  std::fill_n(matrix.begin(), layout_of(ElementType::float16x).head_bytes, std::byte{0});
  std::memcpy(matrix.data(), header.data(), sizeof header);
}

Float16x float16x_header(const void* matrix) noexcept {
  std::array<std::int32_t, 2> header{};
  std::memcpy(header.data(), matrix, sizeof header);
  return {header[0], header[1]};
}

}  // namespace pascaline
