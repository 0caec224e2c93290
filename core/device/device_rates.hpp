#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/device/device_limits.hpp"
#include "core/device/probe.hpp"

namespace pascaline {

/// What a device does at most in a unit of time, for a static model and a roofline: per clock and multiprocessor where
/// nothing else is said.
struct DeviceRates {
  DeviceLimits limits;       ///< the card's own, which decide how many blocks an SM holds
  double clock_mhz = 1733;   ///< of the SMs
  double memory_gbps = 320;  ///< of the device memory, 10^9 bytes a second
  double fp32_lanes = 128;   ///< fused multiply-adds
  /// Instructions of four int8 multiply-adds each (dp4a); nothing where they are not known.
  std::optional<double> dp4a_lanes = 128;
  double issue_slots = 4;            ///< warps that issue an instruction
  double shared_bytes = 128;         ///< of shared memory
  double l2_bytes = 32;              ///< that an SM gets from L2
  double shared_latency = 24;        ///< clocks until a value read from shared memory arrives
  double global_latency = 350;       ///< clocks until a value read through L2 arrives, between a hit and a miss
  double barrier_latency = 30;       ///< clocks a barrier takes, all warps being there
  double arithmetic_latency = 6;     ///< clocks until a sum may be used
  double block_start_latency = 600;  ///< clocks to start a block, read its arguments and end it
  double launch_us = 3;              ///< microseconds of a launch that does nothing
  bool of_product = false;           ///< clock and bandwidth are a product's own, not typical of the architecture
  bool measured_clock = false;       ///< `use_measured` set the clock
  bool measured_memory = false;      ///< … the bandwidth of device memory

  /// Most float32 operations, 10^9 a second: a multiply-add of every lane in every clock.
  [[nodiscard]] double peak_gflops() const noexcept;
  /// Most int8 operations, 10^9 a second, of dp4a.
  [[nodiscard]] std::optional<double> peak_int8_gops() const noexcept;
};

/// Float32 lanes (multiply-adds a clock) of a multiprocessor of an architecture (`sm_61`) or compute capability
/// (`6.1`); nothing for one that is not known.
[[nodiscard]] std::optional<double> fp32_lanes_of(std::string_view architecture);
/// The same of dp4a, where it is known.
[[nodiscard]] std::optional<double> dp4a_lanes_of(std::string_view architecture);

/// Rates of an architecture (`sm_61`) or compute capability (`6.1`, as a device gives it) with that many SMs: clock and
/// memory bandwidth are those of the product of that many SMs where it is known, else typical of the architecture.
/// Nothing for a text that is neither.
[[nodiscard]] std::optional<DeviceRates> typical_rates(std::string_view architecture, const DeviceLimits& limits);

/// Puts what was measured of the device in place of what is typical; the rest stays. Bandwidth of device memory is the
/// higher of reading and copying; `global_latency` the mean of L2's and device memory's, both being needed.
void use_measured(DeviceRates& rates, const MeasuredRates& measured);

/// Where clock and bandwidth are from, for people: "measured by pascaline probe", "boost clock and memory of the common
/// product of that size; not measured", …; `architecture` as for `typical_rates`.
[[nodiscard]] std::string source_of(const DeviceRates& rates, std::string_view architecture);

}  // namespace pascaline
