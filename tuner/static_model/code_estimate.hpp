#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "core/binary.hpp"
#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"
#include "runtime/device/sm61/sm_model.hpp"
#include "tuner/static_model/launch_work.hpp"

namespace pascaline {

/// What takes most of a launch's time.
enum class LaunchLimit : std::uint8_t {
  issue,          ///< schedulers issue in 85 % of the clocks of the hottest loop or more
  conflicts,      ///< register bank conflicts in it
  shared_memory,  ///< its bandwidth or latency
  global_memory,  ///< of L2
  other_units,    ///< conversions, MUFU, float64 and half precision
  other_warps,    ///< warps wait for those of their block
  latency,        ///< of arithmetic
  outside,        ///< code outside the hottest loops
  few_blocks,     ///< SMs without work, or with less than they can hold
  device_memory,  ///< its bandwidth
  launch,         ///< starting the kernel and its blocks
};
/// "issue", "bank conflicts", "shared memory", "global memory", "other units", "other warps", "arithmetic latency",
/// "code outside the loop", "few blocks", "device memory", "launch".
[[nodiscard]] std::string_view name_of(LaunchLimit limit) noexcept;

/// What decides how many blocks an SM holds.
enum class ResidencyLimit : std::uint8_t { registers, shared_memory, both, threads };
/// "registers", "shared memory", "registers and shared memory", "threads and blocks".
[[nodiscard]] std::string_view name_of(ResidencyLimit limit) noexcept;
/// Of blocks of that many threads; `threads` where an SM would hold no more of blocks that need nothing.
[[nodiscard]] ResidencyLimit residency_limit(const DeviceLimits& limits, int threads, int registers,
                                             std::int64_t shared_bytes) noexcept;

/// A launch at one end of what is not known of the hardware. Times in microseconds.
struct CodeTime {
  double time_us = 0;
  double loops_us = 0;    ///< in the hottest loop, those beside it and those around it
  double outside_us = 0;  ///< in the code outside loops
  double arithmetic = 0;  ///< FFMA and dp4a per clock and scheduler in the hottest loop, 1 the peak of an SM
  LaunchLimit limit = LaunchLimit::issue;
};

/// An estimate of a launch's time from its machine code.
struct CodeEstimate {
  CodeTime least;  ///< bank conflicts cost nothing, and lanes share the words of wide loads from shared memory
  CodeTime most;   ///< a bank conflict costs a clock, and no words are shared, unless the space tells
  /// Clocks of a bank conflict, 0 to 1, at both ends, where they were measured on the device.
  std::optional<double> measured_conflict;
  double trips = 0;         ///< iterations of the hottest loop, a thread; 0 without a loop
  int resident_blocks = 0;  ///< of an SM, by registers, shared memory and threads
  ResidencyLimit residency = ResidencyLimit::threads;
  double waves = 0;      ///< blocks over those that are resident at once
  double memory_us = 0;  ///< of device memory, for the bytes that must move

  /// Geometric mean of both ends.
  [[nodiscard]] double time_us() const noexcept;
};

/// What the loops of one kernel's code take, kept for further estimates of the same code: playing them is most of an
/// estimate's work. Of one thread, and of one kernel.
class PlayedLoops {
 public:
  /// As `sm61::time_of_loop`; rates that differ by less than a millionth count as equal.
  [[nodiscard]] const sm61::LoopTime& of_loop(const sm61::KernelCode& kernel, std::size_t loop,
                                              sm61::ResidentWarps warps, const sm61::SmRates& rates);
  /// As `sm61::time_outside_loops`.
  [[nodiscard]] const sm61::LoopTime& outside_loops(const sm61::KernelCode& kernel, sm61::ResidentWarps warps,
                                                    const sm61::SmRates& rates);

 private:
  using Key = std::array<std::int64_t, 11>;
  [[nodiscard]] static Key key_of(std::int64_t loop, sm61::ResidentWarps warps, const sm61::SmRates& rates);

  std::map<Key, sm61::LoopTime> played_;
};

/// Estimates a launch on a card with those rates: an estimate that was never checked on a card of this architecture.
///
/// Every loop takes its heaviest path. Iterations of the hottest loop follow from the work: operations of all threads
/// over those of an iteration (2 of an FFMA or dp4a) and the number of threads, others of its nest with a tenth of
/// its arithmetic or more taken to run as often (beside it, where it is in no loop); where it is the only loop that
/// loads from global memory, bytes asked for give a second count, which is taken where it is well higher, as the loop
/// may do arithmetic that is not counted as work. A loop around it runs as often as its stores to global memory go into
/// the bytes of the results or, without stores, its loads into the bytes asked for, at least once and at most as often
/// as the loop inside; without either, as the square root of that. Other loops run once. Each loop takes what
/// `time_of_loop` says at the residency of full and of the last, partial wave; code outside loops what
/// `time_outside_loops` says. The time is the norm of this and of device memory's, so never below either, and a launch.
/// Both ends take the cost of a bank conflict from `sm_rates` where it was measured. Nothing if no block fits an SM, or
/// if the work does not tell how often a loop runs. `rates.limits` must be those of the card; throws Error if the code
/// cannot be played.
[[nodiscard]] std::optional<CodeEstimate> estimate_from_code(const sm61::KernelCode& kernel, const LaunchWork& work,
                                                             const DeviceRates& rates,
                                                             const sm61::SmRates& sm_rates = {});

/// The same, with what `played` has of this kernel's loops and for what it has not.
[[nodiscard]] std::optional<CodeEstimate> estimate_from_code(const sm61::KernelCode& kernel, const LaunchWork& work,
                                                             const DeviceRates& rates, const sm61::SmRates& sm_rates,
                                                             PlayedLoops& played);

/// The same of a binary; nothing also if it is no cubin whose code can be read.
[[nodiscard]] std::optional<CodeEstimate> estimate_from_code(const Binary& binary, const BoundSpace& space,
                                                             const Config& config, const DeviceRates& rates,
                                                             const sm61::SmRates& sm_rates = {});

}  // namespace pascaline
