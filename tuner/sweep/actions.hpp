#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/device/device_rates.hpp"
#include "db/store.hpp"
#include "tuner/sweep/agenda.hpp"
#include "tuner/sweep/build_queue.hpp"
#include "tuner/sweep/deepening.hpp"
#include "tuner/sweep/forecast.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

/// A step that a device may take next at a task, with its expected cost and saving.
struct Action {
  SweepTask* task = nullptr;
  Deepening what = Deepening::none;  ///< none: its search, which ends in finals
  double seconds = 0;                ///< of the device
  double saved_us = 0;               ///< of the model's time
  double share = 0;                  ///< of the problem's time, that it may save
  double least_s = 0;                ///< with less time than that nothing comes of it
  double weight = 0;                 ///< calls that a shape in between is taken to have

  /// Microseconds of the model's time that a second is expected to save.
  [[nodiscard]] double rate() const noexcept { return saved_us / seconds; }
};

/// Decides what a device of a plan does next: with a limit of time, what is expected to save most of the model's time
/// in a second; without one, the problems in their order.
class Agenda {
 public:
  using Tasks = std::vector<std::unique_ptr<SweepTask>>;

  /// All must outlive it; `tasks` may be filled later.
  Agenda(const SweepOptions& options, const Tasks& tasks, const BuildQueue& builds)
      : options_(options), tasks_(tasks), builds_(builds) {}

  /// Of the device, where they are known.
  void set_rates(std::optional<DeviceRates> rates) { rates_ = rates; }

  /// The searches of tasks that wait for a device, the most valuable first; those that the time left is too short for
  /// come last.
  [[nodiscard]] std::vector<Action> searches(std::optional<double> left_s = std::nullopt) const;
  /// The same with everything else that may be done.
  [[nodiscard]] std::vector<Action> actions(std::optional<double> left_s) const;
  /// Makes a task ready for its action; false if there is nothing to do after all.
  [[nodiscard]] bool begin(const Action& action) const;
  /// Whether another action is worth more than further trials of a task that a device has.
  [[nodiscard]] bool prefers_another(const SweepTask& present, std::optional<double> left_s) const;
  /// Seconds that the next trials of a task are expected to keep a device, with preparation and finals.
  [[nodiscard]] double expected_s(const SweepTask& task) const;
  /// First looks at problems that wait for one, in the order of `searches`.
  [[nodiscard]] std::vector<FirstLook> first_looks(std::optional<double> left_s) const;
  /// Microseconds of a call with the default, estimated from what others took, in the order of the tasks.
  [[nodiscard]] std::vector<double> estimated_defaults_us() const;
  /// EstimatedDefaults::factor of these estimates.
  [[nodiscard]] double factor_of_estimates() const;
  /// Whether a task stays when its search is over, as time that is left may go to it.
  [[nodiscard]] bool keeps(const SweepTask& task) const;
  /// Finishes the tasks on which nothing is left to do, unless what a device does now may change that.
  void finish_ended() const;
  /// A result was decided: what won on one shape may be near what is best on others.
  void note_winner(SweepTask& task, const Config& winner) const;

 private:
  struct Near {
    double octaves = 0;
    SweepTask* task = nullptr;
  };

  [[nodiscard]] std::vector<Outlook> outlooks() const;
  [[nodiscard]] bool is_settled(const SweepTask& task) const;
  [[nodiscard]] std::optional<Action> search(SweepTask& task, const Outlook& outlook, const AttainedRates& rates) const;
  [[nodiscard]] std::optional<Action> comparison(SweepTask& task) const;
  [[nodiscard]] std::optional<Action> finals_again(SweepTask& task) const;
  [[nodiscard]] std::optional<Action> neighbours(SweepTask& task, double trial_s) const;
  [[nodiscard]] std::optional<Action> shape_between(SweepTask& task, double trial_s) const;
  [[nodiscard]] std::vector<Near> tuned_around(const SweepTask& task) const;
  [[nodiscard]] std::vector<Config> winners_near(const SweepTask& task) const;
  [[nodiscard]] bool any_fresh() const;

  const SweepOptions& options_;
  const Tasks& tasks_;
  const BuildQueue& builds_;
  std::optional<DeviceRates> rates_{};
};

}  // namespace pascaline
