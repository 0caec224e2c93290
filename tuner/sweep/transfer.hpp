#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device_rates.hpp"
#include "core/device/probe.hpp"
#include "runtime/device/device.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"
#include "tuner/sweep/transfer_priors.hpp"

namespace pascaline {

/// Gives the searches of a plan earlier measurements to begin with: by this device or others, of other shapes, element
/// types and kernels, before this run or in it.
class Transfer {
 public:
  using Tasks = std::vector<std::unique_ptr<SweepTask>>;

  /// All must outlive it; `tasks` may be filled later.
  Transfer(const SweepOptions& options, const DeviceInfo& info, const Tasks& tasks)
      : options_(options), info_(info), tasks_(tasks) {}

  /// Takes the rates that `pascaline probe` measured of the device, and the toolkits of the run as rows of the
  /// database, by compiler.
  void begin(const MeasuredRates& rates, std::vector<std::int64_t> toolkits) {
    measured_rates_ = rates;
    toolkits_ = std::move(toolkits);
  }
  [[nodiscard]] const MeasuredRates& measured_rates() const noexcept { return measured_rates_; }
  /// For a static model; nothing of other devices than GPUs.
  [[nodiscard]] std::optional<DeviceRates> device_rates() const;

  /// Takes over trials and winners of other devices, while the plan is made.
  void recall_elsewhere(SweepRecorder& recorder, SweepTask& task) const;
  /// The same of other element types, once all tasks are there.
  void recall_other_types(SweepTask& task) const;
  /// Has a search begin with winners of the run itself, of the same shape with other element types, if there are any by
  /// now.
  void begin_with_types_of_run(SweepTask& task) const;
  /// Priors of a search that begins now.
  [[nodiscard]] std::vector<Prior> known_before_search(const SweepTask& task, const SearchDomain& domain) const;

  /// Lists what searches of problems, shapes in between aside, took over from other devices and element types, in the
  /// order of the tasks.
  [[nodiscard]] std::vector<TakenOver> taken_over() const;
  /// The same for the log: a line for each of these devices, one for other types before the run, one for those in it.
  /// `problems`: how many the plan has.
  [[nodiscard]] std::vector<std::string> taken_over_lines(std::size_t problems) const;

 private:
  void take_over_trials(SweepRecorder& recorder, SweepTask& task) const;
  void take_over_winners(SweepTask& task) const;
  [[nodiscard]] bool takes_over(const SweepTask& task) const;
  [[nodiscard]] std::vector<RelatedProblem> of_other_types(const SweepTask& task) const;
  [[nodiscard]] std::vector<RelatedProblem> measured_before(const SweepTask& task, bool other_types) const;

  const SweepOptions& options_;
  const DeviceInfo& info_;
  const Tasks& tasks_;
  MeasuredRates measured_rates_{};
  std::vector<std::int64_t> toolkits_{};
};

}  // namespace pascaline
