#pragma once

#include <cstddef>

#include "runtime/device/cuda/cuda_context.hpp"

namespace pascaline {

/// Addresses that were reserved, the first `mapped_bytes` of them with memory behind them.
struct CudaRange {
  CuAddress address = 0;
  std::size_t bytes = 0;
  std::size_t mapped_bytes = 0;
};

/// Whether the device's memory can be put behind reserved addresses.
[[nodiscard]] bool can_map_memory(const CudaContext& context) noexcept;

/// Reserves addresses for at least `bytes` bytes, in whole pages; throws CudaError, saying so if the device cannot do
/// it. The context must be current, here and below.
[[nodiscard]] CudaRange reserve_range(const CudaContext& context, std::size_t bytes);

/// Puts memory behind the first `bytes` bytes, at most the range's, and the rest of the last page. Throws CudaError and
/// leaves the range as it was if that fails.
void map_range(const CudaContext& context, CudaRange& range, std::size_t bytes);

/// Waits for the device and gives memory and addresses back.
void release_range(const CudaContext& context, const CudaRange& range) noexcept;

}  // namespace pascaline
