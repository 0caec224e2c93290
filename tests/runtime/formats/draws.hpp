#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace pascaline::testing {

/// Number `index` of SplitMix64 from seed 0 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
[[nodiscard]] inline std::uint64_t splitmix(std::uint64_t index) noexcept {
  std::uint64_t state = (index + 1) * 0x9E3779B97F4A7C15U;
  state = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27U)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31U);
}

/// Blocks of values as make_golden.py draws them: sums of four uniform numbers, of many magnitudes, with blocks that
/// are zero, constant, one-sided, or have one large value.
[[nodiscard]] inline std::vector<float> drawn_values(std::size_t count, std::size_t values) {
  std::vector<float> drawn(count * values);
  for (std::size_t block = 0; block < count; ++block) {
    const std::size_t special = block % 32;
    for (std::size_t i = 0; i < values; ++i) {
      double sum = 0;
      for (std::size_t part = 0; part < 4; ++part) {
        sum += static_cast<double>(splitmix((block * values + i) * 4 + part) >> 40U);
      }
      double value = sum / (1 << 24) - 2;
      if (special == 7) {
        value = 0;
      } else if (special == 15) {
        value = 3.25;
      } else if (special == 23) {
        value = std::fabs(value) + 5;
      } else if (special == 31 && i > 0) {
        value = std::ldexp(value, -10);
      }
      drawn[block * values + i] = static_cast<float>(std::ldexp(value, static_cast<int>(block % 41) - 30));
    }
  }
  return drawn;
}

}  // namespace pascaline::testing
