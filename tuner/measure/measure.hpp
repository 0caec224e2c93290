#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/trial.hpp"
#include "runtime/device/device.hpp"
#include "tuner/measure/race.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// How a configuration is timed.
struct MeasureOptions {
  bool cold_cache = true;  ///< evict the device's L2 before every sample
  int warm_up = 2;         ///< launches before the first sample, not recorded
  int min_samples = 10;
  int max_samples = 200;            ///< that count; samples the governor marks do not
  double target_half_width = 0.01;  ///< of the median's 95 % interval, relative
  double budget_ms = 1000;          ///< of one configuration's samples; waiting for the card is not charged
  /// How often a configuration as fast as the best so far may be found slower, and be dropped, before its median is
  /// known (Race); 0: none is dropped.
  double race_error = 0.01;
};

/// What came of timing one configuration.
struct Measured {
  std::vector<Sample> samples;      ///< all, raw; the marked ones do not count
  std::optional<double> canary_us;  ///< median of the canary around the samples that count
  double clock_scale = 1;           ///< what the samples are to be multiplied by
  /// The card did not become fit (DeviceMonitor::reason says why), or the stop hook spoke: worth nothing.
  bool gave_up = false;
  bool cut_short =
      false;             ///< the time was up (DeviceMonitor::set_end_s) before there were samples enough: worth nothing
  bool dropped = false;  ///< slower than the best so far, and sampled no further
  double warm_up_ms = 0;
  double evict_ms = 0;
  double sample_ms = 0;  ///< launching what is timed, and waiting for it
  double wait_ms = 0;    ///< for the card to be fit
  /// Not empty if the kernel itself makes the card throttle, so that too few samples count: one line, why.
  std::string unfit;
};

/// Whether a configuration needs more samples.
enum class SamplingVerdict : std::uint8_t {
  more,
  enough,   ///< the median is known as well as asked for, or a limit is reached
  dropped,  ///< slower than the best so far
};

/// The verdict after `samples`, which took `spent_ms` and are to be multiplied by `clock_scale`.
[[nodiscard]] SamplingVerdict judge_samples(const std::vector<Sample>& samples, double clock_scale, double spent_ms,
                                            const MeasureOptions& options, const Race& race);

/// What is measured: it is launched, or launched, waited for and timed in microseconds, with cold caches or not.
struct TimedWork {
  std::function<void()> launch;
  std::function<double(bool cold_cache)> time_us;
};

/// One timed launch with the readings beside it and the governor's verdict.
[[nodiscard]] Sample take_sample(DeviceMonitor& monitor, const TimedWork& work, bool cold_cache);
/// The same of a kernel.
[[nodiscard]] Sample take_sample(DeviceMonitor& monitor, const Kernel& kernel, const Geometry& geometry,
                                 std::span<void* const> arguments, bool cold_cache);

/// Times work until the median's interval is narrow enough, it is slower than `best_us` (the best median so far, 0 if
/// none) but for the error allowed, or a limit is reached. `noise`: what is known of how times scatter. Once the time
/// is up, as few as three samples are enough. Throws what Device::time_launch_us throws.
[[nodiscard]] Measured measure(DeviceMonitor& monitor, const TimedWork& work, const MeasureOptions& options,
                               double best_us, const NoiseScale& noise = {});
/// The same of launches of a kernel.
[[nodiscard]] Measured measure(DeviceMonitor& monitor, const Kernel& kernel, const Geometry& geometry,
                               std::span<void* const> arguments, const MeasureOptions& options, double best_us,
                               const NoiseScale& noise = {});

/// Stores the result of timing in a trial: samples, durations, status, reason and, if there are enough samples, the
/// time. `best_us`: the best time so far, which the trial was raced against.
void take_measured(Trial& trial, Measured measured, const MeasureOptions& options, double best_us);

/// Marks the samples from `begin` on that carry no mark as taken while the canary drifted.
void mark_drifted(std::vector<Sample>& samples, std::size_t begin);

}  // namespace pascaline
