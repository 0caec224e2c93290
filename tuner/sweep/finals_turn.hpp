#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/measure/lab.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/device_status.hpp"
#include "tuner/sweep/finals_budget.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"
#include "tuner/sweep/winner_decider.hpp"

namespace pascaline {

/// The finals of the task that a device has: has the finalists built, measured and decided.
class FinalsTurn {
 public:
  /// The end of the finals, and with them of the turn.
  struct End {
    bool over = false;  ///< its search is over, too
  };

  /// All must outlive it.
  FinalsTurn(DevicePlan& plan, SweepRecorder& recorder, const SweepOptions& options, Lab& lab,
             const DeviceStatus& status);

  /// Has the finalists built, or says that there is nothing to compare. `last`: the search is over, and nothing is to
  /// be done after these finals; `shared`: see FinalsLimits; `allowed_s`: for all of them.
  [[nodiscard]] std::optional<End> begin(SweepTask& task, bool last, bool shared, std::optional<double> allowed_s);
  /// Has them measured: once all are built and the problem is prepared. `left_s`: until the sweep ends.
  [[nodiscard]] std::optional<End> send(SweepTask& task, std::optional<double> left_s);
  /// Takes their result.
  [[nodiscard]] std::optional<End> take(SweepTask& task, const FinalsDone& done);
  /// One of them failed; they go on without it.
  void take_failed(SweepTask& task, const FinalistFailed& failed);
  /// Forgets them, as if they had not been begun.
  void drop(SweepTask& task);

  [[nodiscard]] const FinalsBudget& budget() const noexcept { return budget_; }
  [[nodiscard]] WinnerDecider& decider() noexcept { return decider_; }

 private:
  [[nodiscard]] bool fit_in_time(const SweepTask& task, FinalsJob& job, std::size_t& most,
                                 std::optional<double> left_s);
  void end_attempts(const SweepTask& task);
  [[nodiscard]] End for_later(SweepTask& task) const;

  DevicePlan& plan_;
  SweepRecorder& recorder_;
  Lab& lab_;
  const DeviceStatus& status_;
  FinalsBudget budget_;
  WinnerDecider decider_;
  bool last_ = false;
  FinalsLimits limits_{};
  std::optional<double> allowed_s_{};
  std::vector<Config> on_device_{};
  std::uint64_t next_job_ = 1;
};

}  // namespace pascaline
