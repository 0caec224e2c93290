#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace pascaline::cpu {

/// `y = x/2 · (1 + erf(x/√2))`, y may be x. By the complement, which loses nothing where erf is near −1.
inline void gelu_erf_values(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = 0.5F * x[i] * std::erfc(-x[i] / std::numbers::sqrt2_v<float>);
  }
}

}  // namespace pascaline::cpu
