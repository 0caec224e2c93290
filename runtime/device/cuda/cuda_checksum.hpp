#pragma once

#include <cstdint>

#include "runtime/device/cuda/cuda_context.hpp"

namespace pascaline {

/// Sums up device memory on the device, so that what must not change need not be copied to be compared. Belongs to one
/// context; forget it before a reset.
class ChecksumAid {
 public:
  explicit ChecksumAid(CudaContext& context);
  ChecksumAid(const ChecksumAid&) = delete;
  ChecksumAid& operator=(const ChecksumAid&) = delete;
  ~ChecksumAid();

  /// Sum of `words` 4-byte words at `address` (4-byte aligned), word i counted 2i+1 times, modulo 2^64. Waits; throws
  /// CudaError.
  [[nodiscard]] std::uint64_t sum(CuAddress address, std::uint64_t words, unsigned sm_count);

 private:
  CudaContext& context_;
  CuModule module_ = nullptr;
  CuFunction function_ = nullptr;
  CuAddress result_ = 0;
};

}  // namespace pascaline
