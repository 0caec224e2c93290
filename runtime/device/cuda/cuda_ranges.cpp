#include "runtime/device/cuda/cuda_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr int kSmallestGranularity = 0;  // of CUmemAllocationGranularity_flags

CuMemoryKind kind_on(const CudaContext& context) {
  CuMemoryKind kind;
  kind.location.device = context.device();
  return kind;
}

std::size_t page_bytes(const CudaContext& context) {
  const DriverApi& driver = context.driver();
  const CuMemoryKind kind = kind_on(context);
  std::size_t bytes = 0;
  driver(driver.memory_granularity, &bytes, &kind, kSmallestGranularity);
  return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

// Maps `bytes` of new memory at `address` and lets the device use it.
void map_memory(const CudaContext& context, CuAddress address, std::size_t bytes) {
  const DriverApi& driver = context.driver();
  const CuMemoryKind kind = kind_on(context);
  CuMemory memory = 0;
  driver.check(driver.memory_create.symbol, driver.memory_create.address(&memory, bytes, &kind, 0),
               fmt::format("growing a buffer by {} bytes", bytes));
  const CuResult mapped = driver.memory_map.address(address, bytes, 0, memory, 0);
  // The mapping keeps the memory, which goes with it.
  driver.memory_release.address(memory);
  driver.check(driver.memory_map.symbol, mapped);
  CuAccess access;
  access.location.device = context.device();
  const CuResult allowed = driver.memory_access.address(address, bytes, &access, 1);
  if (allowed != 0) {
    driver.memory_unmap.address(address, bytes);
    driver.check(driver.memory_access.symbol, allowed);
  }
}

}  // namespace

bool can_map_memory(const CudaContext& context) noexcept {
  int maps = 0;
  return context.driver().device_attribute.address(&maps, kCuMapsMemory, context.device()) == 0 && maps != 0;
}

CudaRange reserve_range(const CudaContext& context, std::size_t bytes) {
  if (!can_map_memory(context)) {
    throw CudaError(
        "this device's driver cannot map memory to reserved addresses (virtual GPUs and some older "
        "drivers cannot); update it, or allocate the whole size at once",
        kCuNotSupported);
  }
  constexpr std::size_t kMax = std::size_t{1} << 47;  // addresses have so many bits
  if (bytes > kMax) {
    throw CudaError(fmt::format("cannot reserve addresses for {} bytes", bytes), kCuOutOfMemory);
  }
  const DriverApi& driver = context.driver();
  CudaRange range;
  range.bytes = round_up(std::max<std::size_t>(bytes, 1), page_bytes(context));
  driver.check(driver.range_reserve.symbol, driver.range_reserve.address(&range.address, range.bytes, 0, 0, 0),
               fmt::format("reserving addresses for {} bytes", bytes));
  return range;
}

void map_range(const CudaContext& context, CudaRange& range, std::size_t bytes) {
  const std::size_t wanted = std::min(round_up(bytes, page_bytes(context)), range.bytes);
  if (wanted > range.mapped_bytes) {
    map_memory(context, range.address + range.mapped_bytes, wanted - range.mapped_bytes);
    range.mapped_bytes = wanted;
  }
}

void release_range(const CudaContext& context, const CudaRange& range) noexcept {
  const DriverApi& driver = context.driver();
  if (range.mapped_bytes > 0) {
    driver.synchronize.address();
    driver.memory_unmap.address(range.address, range.mapped_bytes);
  }
  driver.range_free.address(range.address, range.bytes);
}

}  // namespace pascaline
