#pragma once

#include <optional>

#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/device_status.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

/// How much time the finals of a task need, and what fits in how much.
class FinalsBudget {
 public:
  /// Both must outlive it.
  FinalsBudget(const SweepOptions& options, const DeviceStatus& status) : options_(options), status_(status) {}

  [[nodiscard]] bool by_time_alone() const;
  /// Of the task's next finals.
  [[nodiscard]] FinalsOptions options(const SweepTask& task) const;
  [[nodiscard]] FinalsNeed need(const SweepTask& task) const;
  /// Seconds of the best and the baseline, just often enough to tell them apart; 0 if there is nothing to compare.
  [[nodiscard]] double min_s(const SweepTask& task) const;
  /// Seconds to leave to them, of a limit of `limit_s` in all; 0 if there is nothing to compare.
  [[nodiscard]] double reserve_s(const SweepTask& task, double limit_s) const;
  /// Seconds that they may take: the share, and more if the objective is to be decided.
  [[nodiscard]] double wanted_s(const SweepTask& task, double share_s, double left_s, bool lacks_objective) const;
  /// What of them fits in `allowed_s`; nothing if nothing does. What the other objective needs is left to it where
  /// rounds are enough without.
  [[nodiscard]] std::optional<FinalsFit> fit(const SweepTask& task, double allowed_s) const;

  /// From the worker's last launch to its decision in the database.
  static constexpr double kAnswerSeconds = 0.3;

 private:
  [[nodiscard]] bool takes_energies(const SweepTask& task) const;
  [[nodiscard]] double energies_s(const SweepTask& task) const;
  [[nodiscard]] double objective_s() const;

  const SweepOptions& options_;
  const DeviceStatus& status_;
};

}  // namespace pascaline
