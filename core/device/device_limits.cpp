#include "core/device/device_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pascaline {
namespace {

using Member = std::pair<std::string_view, std::int64_t DeviceLimits::*>;

constexpr std::array<Member, 15> kMembers{{
    {"compute_capability", &DeviceLimits::compute_capability},
    {"warp_size", &DeviceLimits::warp_size},
    {"max_threads_per_block", &DeviceLimits::max_threads_per_block},
    {"max_threads_per_sm", &DeviceLimits::max_threads_per_sm},
    {"max_blocks_per_sm", &DeviceLimits::max_blocks_per_sm},
    {"max_shared_bytes_per_block", &DeviceLimits::max_shared_bytes_per_block},
    {"max_shared_bytes_per_sm", &DeviceLimits::max_shared_bytes_per_sm},
    {"max_registers_per_block", &DeviceLimits::max_registers_per_block},
    {"max_registers_per_sm", &DeviceLimits::max_registers_per_sm},
    {"max_registers_per_thread", &DeviceLimits::max_registers_per_thread},
    {"max_grid_x", &DeviceLimits::max_grid_x},
    {"max_grid_y", &DeviceLimits::max_grid_y},
    {"max_grid_z", &DeviceLimits::max_grid_z},
    {"sm_count", &DeviceLimits::sm_count},
    {"l2_bytes", &DeviceLimits::l2_bytes},
}};

constexpr std::int64_t kKib = 1024;

struct ArchitectureRow {
  std::string_view name;
  std::int64_t compute_capability;
  std::int64_t max_threads_per_sm;
  std::int64_t max_blocks_per_sm;
  std::int64_t shared_bytes_per_sm;
  std::int64_t registers_per_block;
  std::int64_t sm_count;
  std::int64_t l2_bytes;
};

// CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability". Blocks of every row take
// 48 KiB of shared memory without opting in to more.
constexpr std::array<ArchitectureRow, 12> kArchitectures{{
    {"sm_50", 50, 2048, 32, 64 * kKib, 64 * kKib, 5, 2048 * kKib},
    {"sm_52", 52, 2048, 32, 96 * kKib, 64 * kKib, 16, 2048 * kKib},
    {"sm_60", 60, 2048, 32, 64 * kKib, 64 * kKib, 56, 4096 * kKib},
    {"sm_61", 61, 2048, 32, 96 * kKib, 64 * kKib, 20, 2048 * kKib},
    {"sm_62", 62, 2048, 32, 64 * kKib, 32 * kKib, 2, 512 * kKib},
    {"sm_70", 70, 2048, 32, 96 * kKib, 64 * kKib, 80, 6144 * kKib},
    {"sm_75", 75, 1024, 16, 64 * kKib, 64 * kKib, 36, 4096 * kKib},
    {"sm_80", 80, 2048, 32, 164 * kKib, 64 * kKib, 108, 40960 * kKib},
    {"sm_86", 86, 1536, 16, 100 * kKib, 64 * kKib, 46, 4096 * kKib},
    {"sm_87", 87, 1536, 16, 164 * kKib, 64 * kKib, 16, 4096 * kKib},
    {"sm_89", 89, 1536, 24, 100 * kKib, 64 * kKib, 76, 65536 * kKib},
    {"sm_90", 90, 2048, 32, 228 * kKib, 64 * kKib, 132, 51200 * kKib},
}};

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::span<const Member> limit_members() noexcept { return kMembers; }

std::optional<DeviceLimits> limits_of_architecture(std::string_view architecture) noexcept {
  for (const ArchitectureRow& row : kArchitectures) {
    if (row.name == architecture) {
      DeviceLimits limits;
      limits.compute_capability = row.compute_capability;
      limits.max_threads_per_sm = row.max_threads_per_sm;
      limits.max_blocks_per_sm = row.max_blocks_per_sm;
      limits.max_shared_bytes_per_sm = row.shared_bytes_per_sm;
      limits.max_registers_per_block = row.registers_per_block;
      limits.sm_count = row.sm_count;
      limits.l2_bytes = row.l2_bytes;
      return limits;
    }
  }
  return std::nullopt;
}

std::string known_architectures() {
  std::string names;
  for (const ArchitectureRow& row : kArchitectures) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

DeviceLimits tighter(const DeviceLimits& actual, const DeviceLimits& target) noexcept {
  DeviceLimits both = actual;
  for (const auto& [name, member] : kMembers) {
    if (name != "sm_count" && name != "l2_bytes") {
      both.*member = std::min(actual.*member, target.*member);
    }
  }
  return both;
}

int resident_blocks(const DeviceLimits& limits, int threads, int registers, std::int64_t shared_bytes) noexcept {
  constexpr std::int64_t kRegisterUnit = 256;
  constexpr std::int64_t kSharedUnit = 256;
  constexpr std::int64_t kPartitions = 4;
  if (threads <= 0 || threads > limits.max_threads_per_block || registers > limits.max_registers_per_thread ||
      shared_bytes > limits.max_shared_bytes_per_block) {
    return 0;
  }
  const std::int64_t warps = round_up(threads, limits.warp_size) / limits.warp_size;
  std::int64_t blocks = std::min(limits.max_blocks_per_sm, limits.max_threads_per_sm / limits.warp_size / warps);
  if (registers > 0) {
    // Each of the four partitions holds whole warps only.
    const std::int64_t per_warp = round_up(std::int64_t{registers} * limits.warp_size, kRegisterUnit);
    const std::int64_t warps_by_registers = limits.max_registers_per_sm / kPartitions / per_warp * kPartitions;
    if (per_warp * warps > limits.max_registers_per_block) {
      return 0;
    }
    blocks = std::min(blocks, warps_by_registers / warps);
  }
  if (shared_bytes > 0) {
    blocks = std::min(blocks, limits.max_shared_bytes_per_sm / round_up(shared_bytes, kSharedUnit));
  }
  return static_cast<int>(blocks);
}

std::optional<std::string> reason_block_does_not_fit(const DeviceLimits& limits, int threads, int registers,
                                                     std::int64_t shared_bytes) {
  if (shared_bytes > limits.max_shared_bytes_per_block) {
    return fmt::format("{} bytes of shared memory per block; the device has {}", shared_bytes,
                       limits.max_shared_bytes_per_block);
  }
  if (resident_blocks(limits, threads, registers, shared_bytes) == 0) {
    return fmt::format("{} threads with {} registers each do not fit on a multiprocessor", threads, registers);
  }
  return std::nullopt;
}

double occupancy(const DeviceLimits& limits, int threads, int registers, std::int64_t shared_bytes) noexcept {
  const int blocks = resident_blocks(limits, threads, registers, shared_bytes);
  const std::int64_t resident_threads = blocks * round_up(threads, limits.warp_size);
  return static_cast<double>(resident_threads) / static_cast<double>(limits.max_threads_per_sm);
}

}  // namespace pascaline
