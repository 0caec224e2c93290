#pragma once

#include <cstdint>
#include <optional>

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

  /// Of `count` elements at `values` and the float64 numbers at `expected`, at most 2^32 of them: how many are not
  /// finite or not within the limits, and the key of that with the largest error among the others: its error in float32
  /// above 2^32 - 1 less its number, 0 if there is none. Waits; throws CudaError.
  struct Result {
    std::uint64_t beyond = 0;
    std::uint64_t key = 0;
  };
  [[nodiscard]] Result compare(CuAddress values, ElementType type, CuAddress expected, std::uint64_t count,
                               const ElementLimits& limits, unsigned sm_count);

 private:
  CudaContext& context_;
  CuModule module_ = nullptr;
  CuFunction of_float32_ = nullptr;
  CuFunction of_float16_ = nullptr;
  CuAddress result_ = 0;
};

}  // namespace pascaline
