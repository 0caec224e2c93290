#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/binary.hpp"
#include "core/device/device_rates.hpp"
#include "core/space/space.hpp"

namespace pascaline {

/// What a launch is expected to take, and why. Times are in microseconds; those of the terms are what the launch would
/// take if nothing else limited it.
struct Estimate {
  double time_us = 0;     ///< of the launch, all in all
  double compute_us = 0;  ///< issuing its instructions, spread evenly over the SMs
  double shared_us = 0;   ///< shared memory's bandwidth
  double global_us = 0;   ///< the larger of what L2 delivers of what blocks ask for, and memory of the compulsory bytes
  double latency_us = 0;  ///< waiting in turn within a block, times the turns in which an SM's blocks follow each other
  double occupancy = 0;   ///< resident warps over the SM's maximum
  double waves = 0;       ///< blocks over those that are resident at once
  int registers = 0;      ///< a thread: of the binary, or estimated
  int resident_blocks = 0;  ///< of an SM
  bool fits = true;         ///< false: no block fits an SM; `time_us` is infinite
};

/// Estimates launch times of a bound space's configurations from what its file says of the work (core/
/// performance_model.hpp), without running or compiling them. Only the order of times matters. A space without such a
/// section is judged by occupancy, waves and the problem's operations and bytes alone. Const use is thread-safe.
///
/// The blocks of an SM share its arithmetic, shared memory and L2 rates (a roofline, Williams et al. 2009); a block
/// that is alone is bound by its own chain of waits instead, which more resident blocks hide (Volkov 2016). Blocks run
/// in waves, the last of which is not full.
class StaticModel {
 public:
  /// `space` must outlive it.
  StaticModel(const BoundSpace& space, const DeviceRates& rates);

  /// Of the configuration with these value indices; nothing if an expression has no value for it. `compiled`: what its
  /// binary uses, which replaces the estimated registers and instructions; may be null.
  [[nodiscard]] std::optional<Estimate> estimate(std::span<const std::uint16_t> indices,
                                                 const Resources* compiled = nullptr) const;
  /// Time alone, in microseconds; infinity if no block fits an SM.
  [[nodiscard]] std::optional<double> time_us(std::span<const std::uint16_t> indices) const;
  /// Natural logarithm of the time in microseconds, a prior mean for a surrogate; nothing if there is no finite one.
  /// Throws Error if `config` is not of the space.
  [[nodiscard]] std::optional<double> predicted_log_time(const Config& config) const;

 private:
  struct Work;
  [[nodiscard]] std::optional<Work> work_of(std::span<const std::uint16_t> indices) const;
  void apply_resources(Work& work, const Resources& compiled) const;
  [[nodiscard]] double clocks_of(const Work& work, double load) const;

  const BoundSpace* space_;
  DeviceRates rates_;
  double compulsory_bytes_;
  double least_flops_;
};

/// Estimate of one configuration; throws Error if it is not of the space or an expression has no value.
[[nodiscard]] Estimate estimate(const BoundSpace& space, const Config& config, const DeviceRates& rates,
                                const Resources* compiled = nullptr);

}  // namespace pascaline
