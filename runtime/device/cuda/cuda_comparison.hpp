#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/element_limits.hpp"
#include "core/problem.hpp"
#include "runtime/device/cuda/cuda_context.hpp"

namespace pascaline {

/// Compares results in device memory with what they must be on the device, so that they need not be copied. Belongs to
/// one context; forget it before a reset.
class ComparisonAid {
 public:
  explicit ComparisonAid(CudaContext& context);
  ComparisonAid(const ComparisonAid&) = delete;
  ComparisonAid& operator=(const ComparisonAid&) = delete;
  ~ComparisonAid();

  /// Whether elements of that type can be compared.
  [[nodiscard]] static bool takes(ElementType type) noexcept;

  /// `Device::largest_error` of `count` elements at `values`, of a type that it takes, and as many float64 numbers at
  /// `expected`. Waits; throws CudaError.
  [[nodiscard]] double largest_error(CuAddress values, ElementType type, CuAddress expected, std::uint64_t count,
                                     const ElementLimits& limits, unsigned sm_count);

 private:
  static constexpr std::size_t kTypes = 5;

  CudaContext& context_;
  CuModule module_ = nullptr;
  std::array<CuFunction, kTypes> functions_{};
  CuAddress result_ = 0;
};

}  // namespace pascaline
