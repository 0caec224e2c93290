#pragma once

#include <cstdint>
#include <cstring>

#include "pascaline/language.h"
#include "pascaline/vectors.h"

// Conversions between float and the 16-bit formats: round to nearest even, NaN becomes CUDA's 0x7fff.
namespace pascaline_host {

#ifdef __F16C__
// The processor's own instructions. Written out, as the header of all intrinsics takes longer to parse than most
// kernels take to compile.
using Words128 = std::uint32_t __attribute__((vector_size(16)));

inline std::uint16_t half_bits_by_instruction(float value) {
  Words128 halves;
  __asm__("vcvtps2ph $0, %1, %0" : "=x"(halves) : "x"(value));
  return static_cast<std::uint16_t>(halves[0]);
}

inline float half_value_by_instruction(std::uint16_t bits) {
  const Words128 halves = {bits, 0, 0, 0};
  float value;
  __asm__("vcvtph2ps %1, %0" : "=x"(value) : "x"(halves));
  return value;
}
#endif

inline std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// `value >> shift`, rounded to nearest, ties to even.
inline std::uint32_t shift_to_even(std::uint32_t value, int shift) {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t rest = value & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u);
}

inline std::uint16_t half_bits_in_software(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return 0x7fffu;
  }
  if (magnitude >= 0x47800000u) {
    return static_cast<std::uint16_t>(sign | 0x7c00u);
  }
  const int exponent = static_cast<int>(magnitude >> 23);
  if (exponent >= 113) {
    // A carry out of the mantissa raises the exponent, up to infinity.
    return static_cast<std::uint16_t>(sign | shift_to_even(magnitude - (112u << 23), 13));
  }
  const int shift = 126 - exponent;
  if (shift > 25) {
    return static_cast<std::uint16_t>(sign);
  }
  return static_cast<std::uint16_t>(sign | shift_to_even((magnitude & 0x7fffffu) | 0x800000u, shift));
}

inline float half_value_in_software(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) {
    return float_of(sign | 0x7f800000u | mantissa << 13);
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return float_of(sign | float_bits(magnitude));
  }
  return float_of(sign | (exponent + 112u) << 23 | mantissa << 13);
}

inline std::uint16_t half_bits(float value) {
#ifdef __F16C__
  return value != value ? std::uint16_t{0x7fff} : half_bits_by_instruction(value);
#else
  return half_bits_in_software(value);
#endif
}

inline float half_value(std::uint16_t bits) {
#ifdef __F16C__
  return half_value_by_instruction(bits);
#else
  return half_value_in_software(bits);
#endif
}

inline std::uint16_t bfloat16_bits(float value) {
  return value != value ? std::uint16_t{0x7fff} : static_cast<std::uint16_t>(shift_to_even(float_bits(value), 16));
}

inline float bfloat16_value(std::uint16_t bits) { return float_of(static_cast<std::uint32_t>(bits) << 16); }

/// The double as a float whose last bit remembers whether anything was cut off, so that rounding it once more
/// gives what rounding the double once would have given.
inline float rounded_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value || (float_bits(nearest) & 1u) != 0) {
    return nearest;
  }
  const bool away = (value < 0 ? -value : value) > (nearest < 0 ? -static_cast<double>(nearest) : nearest);
  return float_of(float_bits(nearest) + (away ? 1u : ~0u));
}

}  // namespace pascaline_host
