#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/device/probe.hpp"
#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline::sm61 {

/// What an SM of sm_61 can do, in clocks of the SM. Where each number comes from is in docs/sm61_code.md.
struct SmRates {
  double conflict = 1;        ///< clocks that a register bank conflict delays a scheduler, 0 to 1
  double shared_bytes = 128;  ///< per clock, by all warps of the SM
  double wide_loads = 1;  ///< part of their clocks that loads of 8 and 16 bytes a lane take: 0.5 if lanes share words
  double global_bytes = 64;        ///< per clock, from L2
  double shared_latency = 24;      ///< of a load from shared memory, and of a shuffle
  double global_latency = 216;     ///< of a load that L2 has
  double unit_latency = 20;        ///< of MUFU, conversions, special registers and other units with barriers
  double read_latency = 12;        ///< until the operands of a store or load are read
  bool measured_conflict = false;  ///< `conflict` was measured on the device
};

/// The rates above, with what was measured of the device in their place: the cost of a conflict (0 to 1), bandwidth of
/// shared memory and L2, and latency of both.
[[nodiscard]] SmRates sm_rates(const MeasuredRates& measured);

/// Why a scheduler issued nothing in a clock, or that it issued.
enum class SlotUse : std::uint8_t {
  issued,
  conflict,       ///< registers of one bank
  pipe,           ///< the unit is busy with other warps: shared or global memory, or a slow unit
  shared_memory,  ///< all warps wait; at least one for shared memory
  global_memory,  ///< …; at least one for global memory
  barrier,        ///< …; at least one for other warps of its block
  latency,        ///< …; all for results of arithmetic
};
/// "issued", "bank conflicts", "busy units", "shared memory", "global memory", "other warps", "arithmetic latency".
[[nodiscard]] std::string_view name_of(SlotUse use) noexcept;

/// Blocks and warps that run on an SM at a time.
struct ResidentWarps {
  std::uint32_t blocks = 1;
  std::uint32_t warps_per_block = 1;
};

/// An estimate of how an SM spends its time in a loop.
struct LoopTime {
  static constexpr std::size_t kUses = static_cast<std::size_t>(SlotUse::latency) + 1;

  double clocks = 0;  ///< for an iteration of every resident warp
  /// FFMA and dp4a per clock and scheduler: 1 is the peak of the SM.
  double arithmetic = 0;
  std::array<double, kUses> shares{};  ///< of the schedulers' clocks; together 1
  double busy_shared = 0;              ///< the part of `pipe` in which warps waited for shared memory to be free
  double busy_global = 0;              ///< the same of global memory

  [[nodiscard]] double share(SlotUse use) const noexcept { return shares[static_cast<std::size_t>(use)]; }
  /// What most clocks without an instruction were lost to; `issued` if that took 95 % of them or more.
  [[nodiscard]] SlotUse limit() const noexcept;
};

/// Plays several iterations of a loop on an SM: four schedulers, each with every fourth warp, stall counts, barriers
/// and dual issues as the code says them, units that all warps share. Every warp takes the heaviest path, and loops
/// inside run once. It knows nothing of addresses: loads and stores of shared memory are taken to be without bank
/// conflicts, those of global memory to be coalesced and in L2. An estimate, never checked on a card. Throws Error if
/// there is no such loop, or no warp.
[[nodiscard]] LoopTime time_of_loop(const KernelCode& kernel, std::size_t loop, ResidentWarps warps,
                                    const SmRates& rates = {});

/// The same of the code in no loop on the heaviest path through the kernel: `clocks` are those of one run of it by
/// every resident warp. All zero if there is no such code. Throws Error if there is no warp.
[[nodiscard]] LoopTime time_outside_loops(const KernelCode& kernel, ResidentWarps warps, const SmRates& rates = {});

}  // namespace pascaline::sm61
