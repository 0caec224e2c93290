#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/space/space.hpp"
#include "core/trial.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/measure/given_data.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/measure/problem_data.hpp"
#include "tuner/measure/reference_run.hpp"
#include "tuner/measure/site_bench.hpp"
#include "tuner/monitor/device_monitor.hpp"

namespace pascaline {

/// Turns compiled configurations of one problem into trials on a device: loads, verifies, times.
class TrialRunner {
 public:
  /// `space` and `monitor` must outlive it; its device is the monitor's. `reference` is the compiled reference, which
  /// only a configuration that is not run does without. Buffers, inputs and the reference's results are made for the
  /// first configuration that needs them.
  TrialRunner(DeviceMonitor& monitor, const BoundSpace& space, std::optional<ReferenceRun> reference,
              MeasureOptions options, std::uint64_t seed);
  /// The same with a reference that is launched with the untuned configuration.
  TrialRunner(DeviceMonitor& monitor, const BoundSpace& space, const Binary& reference, MeasureOptions options,
              std::uint64_t seed);
  /// The same of a site of a model, whose configurations are its alternatives: chains of launches that the
  /// dispatcher's kernels make, compared with what the operations by themselves give.
  TrialRunner(DeviceMonitor& monitor, const BoundSpace& site, DispatcherOptions kernels, MeasureOptions options,
              std::uint64_t seed);

  /// Has `told` called with "load", "inputs", "launch" (before the launch that is verified), "check" and "measure" as
  /// these begin, so that whoever watches knows how long each may take.
  void on_phase(std::function<void(std::string_view phase)> told) { phase_ = std::move(told); }

  /// Has the device draw inputs with this kernel, `drawing_code`; before anything is prepared.
  void draw_by(Binary drawing) { drawing_ = std::move(drawing); }

  /// Has the whole problem run with these contents of buffers; before anything is prepared.
  void give(GivenData given);

  /// Has the problem itself run, and not the smaller one that is enough for its times (BoundSpace::measured): who only
  /// asks whether results are right wants its largest offsets. Before anything is prepared.
  void run_whole_shape() { measured_ = *space_; }

  /// Makes buffers, inputs and the reference's results, unless they are there; `run` does it by itself. Throws
  /// CudaError or EmulatorError if memory is short, ReferenceError if there is nothing to compare results with.
  void prepare();

  /// Of outputs whose check can hardly fail, once prepared (ProblemData::weak_checks).
  [[nodiscard]] const std::vector<std::string>& weak_checks() const noexcept { return weak_checks_; }

  /// One trial; every outcome is in its status, nothing but faults of the environment is thrown, and ArgumentError
  /// where a file with contents has changed. Look at `gave_up`, `cut_short` and `device_lost` afterwards.
  [[nodiscard]] Trial run(const Config& config, const Compiled& compiled, double best_us);

  /// Of a last trial whose result is wrong: the first configuration with a result that is wrong in the same way, which
  /// may be its own. Nothing if the result is right, or so wrong that nothing follows from it.
  [[nodiscard]] const std::optional<Config>& agrees_with() const noexcept { return agrees_with_; }

  /// Whether the card was not fit for the last trial: it says nothing of the configuration and must not be stored.
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }

  /// Whether the time was up (DeviceMonitor::set_end_s) before the last trial came to anything: as with `gave_up`.
  [[nodiscard]] bool cut_short() const noexcept { return cut_short_; }

  /// Whether the last trial took the device from this process; nothing more can be run then.
  [[nodiscard]] bool device_lost() const noexcept { return lost_; }

  /// A verified configuration held ready for repeated timing.
  struct Ready {
    Config config;
    std::vector<Kernel> kernels{};  ///< of each launch; none of a site
    std::vector<Geometry> geometries{};
    std::optional<LaunchArguments> arguments{};
    Graph graph{};  ///< of a site or a pipeline: its launches

    /// It must stay where it is. Launches a pipeline once.
    [[nodiscard]] TimedWork work(Device& device);
  };
  /// Loads a configuration for timing; throws what Device::load throws.
  [[nodiscard]] Ready make_ready(const Config& config, const Binary& binary);

  /// Tells whoever watches (`on_phase`) what begins now.
  void phase(std::string_view name) const;

  [[nodiscard]] const BoundSpace& space() const noexcept { return *space_; }

  /// Makes the device usable again after a launch that failed. There must be no `Ready` left.
  void recover();

  [[nodiscard]] DeviceMonitor& monitor() noexcept { return *monitor_; }
  [[nodiscard]] Device& device() noexcept { return monitor_->device(); }
  [[nodiscard]] const MeasureOptions& options() const noexcept { return options_; }

 private:
  void refresh_inputs();
  void run_compiled(Trial& trial, const Binary& binary, double best_us);
  void load_verify_measure(Trial& trial, const Binary& binary, double best_us);
  bool verify(Trial& trial, Ready& ready);
  [[nodiscard]] bool needs_second_launch(const Ready& ready);
  [[nodiscard]] bool check_launch(Trial& trial, const Ready& ready);
  void launch(Ready& ready, std::uint8_t poison);
  void launch_again(Ready& ready);
  void launch_prepared(const Ready& ready);
  void find_agreement(const Config& config, const Binary& binary);
  void build_and_time_site(Trial& trial, double best_us);
  void time(Trial& trial, Ready& ready, double best_us);

  DeviceMonitor* monitor_;
  Device* device_;
  const BoundSpace* space_;
  BoundSpace measured_;  ///< of the shape that is run for it
  std::optional<ReferenceRun> reference_;
  std::optional<Binary> drawing_;
  GivenData given_;
  MeasureOptions options_;
  std::uint64_t seed_;
  std::optional<ProblemData> data_;
  std::optional<DispatcherOptions> kernels_;  ///< of a site
  std::unique_ptr<SiteBench> site_;           ///< once it was needed
  double trials_ms_ = 0;                      ///< spent on trials so far
  bool lost_ = false;
  bool gave_up_ = false;
  bool cut_short_ = false;
  std::vector<std::pair<Config, Binary>> wrong_;  ///< the first with each result that is not the reference's
  std::optional<Config> agrees_with_;
  std::vector<std::string> weak_checks_;
  ProblemData::Results wrong_outputs_;  ///< of the last trial, if others may agree with them
  std::function<void(std::string_view)> phase_;
  double draws_ms_ = 0;  ///< spent on inputs and references so far
  NoiseScale noise_;
};

}  // namespace pascaline
