#pragma once

#include <cstdint>

namespace pascaline {

/// What RMSNorm adds to the mean of squares. Kernels are compiled for it: their dimension EPSILON.
struct NormEpsilon {
  static constexpr std::int64_t kMaxNano = 1'000'000'000;

  std::int64_t nano = 1000;  ///< billionths, 1 to 10^9

  [[nodiscard]] constexpr double value() const noexcept { return static_cast<double>(nano) / 1e9; }
  friend constexpr bool operator==(NormEpsilon, NormEpsilon) = default;
};

}  // namespace pascaline
