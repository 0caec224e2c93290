#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/space.hpp"
#include "core/trial.hpp"
#include "tuner/compile_pool.hpp"
#include "tuner/measure.hpp"
#include "tuner/problem_data.hpp"

namespace pascaline {

/// Turns compiled configurations of one problem into trials on a device: loads, verifies, times.
class TrialRunner {
 public:
  /// `space` and `device` must outlive it. `reference` is the compiled naive kernel, if the device uses one. Buffers,
  /// inputs and the reference's results are made for the first configuration that needs them.
  TrialRunner(Device& device, const BoundSpace& space, std::optional<Binary> reference, MeasureOptions options,
              std::uint64_t seed);

  /// Makes buffers, inputs and the reference's results, unless they are there; `run` does it by itself. Throws
  /// CudaError or HostDeviceError if memory is short.
  void prepare();

  /// One trial; every outcome is in its status, nothing but faults of the environment is thrown. Look at
  /// `device_lost` afterwards.
  [[nodiscard]] Trial run(const Config& config, const Compiled& compiled, double best_us);

  /// Whether the last trial took the device from this process; nothing more can be run then.
  [[nodiscard]] bool device_lost() const noexcept { return lost_; }

  /// A verified configuration held ready for repeated timing.
  struct Ready {
    Config config;
    Kernel kernel;
    Geometry geometry;
    LaunchArguments arguments;
  };
  /// Loads a configuration for timing; throws what Device::load throws.
  [[nodiscard]] Ready make_ready(const Config& config, const Binary& binary);

  /// A trial with all that is known before it runs: problem, config, whether it is the default, and what the binary
  /// says of itself.
  [[nodiscard]] Trial blank(const Config& config, const Binary& binary) const;

  /// Makes the device usable again after a launch that failed. There must be no `Ready` left.
  void recover();

  [[nodiscard]] Device& device() noexcept { return *device_; }
  [[nodiscard]] const MeasureOptions& options() const noexcept { return options_; }

 private:
  void refresh_inputs();
  void load_verify_measure(Trial& trial, const Binary& binary, double best_us);
  bool verify(Trial& trial, Ready& ready);

  Device* device_;
  const BoundSpace* space_;
  std::optional<Binary> reference_;
  MeasureOptions options_;
  std::uint64_t seed_;
  std::optional<ProblemData> data_;
  double trials_ms_ = 0;  ///< spent on trials so far
  bool lost_ = false;
  double draws_ms_ = 0;  ///< spent on inputs and references so far
};

/// The status and reason of a configuration that may not run with these resources on this device, or nothing.
[[nodiscard]] std::optional<std::string> exceeds_limits(const Resources& resources, const Geometry& geometry,
                                                        const DeviceLimits& limits);

}  // namespace pascaline
