#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pascaline {

/// Limits of a device that decide which configurations can run on it and how many blocks fit.
/// Expressions see each as `device_` + the member's name.
struct DeviceLimits {
  std::int64_t compute_capability = 61;  ///< ten times the major and the minor number
  std::int64_t warp_size = 32;
  std::int64_t max_threads_per_block = 1024;
  std::int64_t max_threads_per_sm = 2048;
  std::int64_t max_blocks_per_sm = 32;
  std::int64_t max_shared_bytes_per_block = std::int64_t{48} * 1024;
  std::int64_t max_shared_bytes_per_sm = std::int64_t{96} * 1024;
  std::int64_t max_registers_per_block = std::int64_t{64} * 1024;
  std::int64_t max_registers_per_sm = std::int64_t{64} * 1024;
  std::int64_t max_registers_per_thread = 255;
  std::int64_t max_grid_x = 2147483647;
  std::int64_t max_grid_y = 65535;
  std::int64_t max_grid_z = 65535;
  std::int64_t sm_count = 20;
  std::int64_t l2_bytes = std::int64_t{2} * 1024 * 1024;
};

/// Most threads of a block along z, on every device (along x and y the limit on a block's threads is the tighter).
constexpr std::int64_t kMaxBlockZ = 64;

/// Name and member of every limit, in declaration order.
[[nodiscard]] std::span<const std::pair<std::string_view, std::int64_t DeviceLimits::*>> limit_members() noexcept;

/// Limits of an architecture (`sm_50` … `sm_90`) from the CUDA Programming Guide's table of compute
/// capabilities, with the SM count and L2 of a middling card; nothing for an unknown one.
[[nodiscard]] std::optional<DeviceLimits> limits_of_architecture(std::string_view architecture) noexcept;

/// The architectures that it knows, for messages: "sm_50, sm_52, …, sm_90".
[[nodiscard]] std::string known_architectures();

/// The tighter of both for every per-block and per-SM limit; SM count and L2 are `actual`'s.
[[nodiscard]] DeviceLimits tighter(const DeviceLimits& actual, const DeviceLimits& target) noexcept;

/// Resident blocks an SM holds of a kernel with these needs (allocation granularities of sm_5x to sm_9x:
/// registers by 256 a warp, shared memory by 256 bytes); 0 if not even one fits.
[[nodiscard]] int resident_blocks(const DeviceLimits& limits, int threads, int registers,
                                  std::int64_t shared_bytes) noexcept;

/// Why a block with these needs cannot run on the device, for a sweep that rejects it and a dispatcher that takes
/// another configuration; nothing if it can. `registers` is 0 if they are not known, `shared_bytes` static and dynamic.
[[nodiscard]] std::optional<std::string> reason_block_does_not_fit(const DeviceLimits& limits, int threads,
                                                                   int registers, std::int64_t shared_bytes);

/// Resident warps over the SM's maximum, 0 … 1.
[[nodiscard]] double occupancy(const DeviceLimits& limits, int threads, int registers,
                               std::int64_t shared_bytes) noexcept;

}  // namespace pascaline
