#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "tuner/finals/standing_decision.hpp"
#include "tuner/sweep/actions.hpp"
#include "tuner/sweep/finals_budget.hpp"
#include "tuner/sweep/objective_decider.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

/// Decides who won, stores and reports it, in view of what the database has for the same key: of earlier finals, and of
/// other sweeps meanwhile.
class WinnerDecider {
 public:
  /// All must outlive it; `device`: for display.
  WinnerDecider(SweepRecorder& recorder, const SweepOptions& options, const Agenda& agenda, const FinalsBudget& budget,
                const std::string& device)
      : recorder_(recorder),
        options_(options),
        agenda_(agenda),
        budget_(budget),
        device_(device),
        by_objective_(recorder, options, device) {}

  /// Before finals: has what earlier ones decided compared once more.
  void recall_standing(SweepTask& task) {
    recorder_.persist([&](Store& store) { recall_standing(store, task); });
  }
  /// The options with what the finalists are compared with: the baseline, and what finals decided before.
  [[nodiscard]] FinalsOptions with_what_to_compare(const SweepTask& task, FinalsOptions options) const;
  /// Stores and reports a result of finals. `ids`: the stored trials of `decided.trials`.
  void announce(SweepTask& task, const FinalsResult& decided, const std::vector<std::int64_t>& ids,
                const FinalsLimits& limits);
  /// Decides by the search's trials, where time for finals is lacking. An earlier decision by finals, of the same
  /// compiler, is better founded, and stays.
  void decide_without_finals(SweepTask& task);
  [[nodiscard]] const ObjectiveDecider& by_objective() const noexcept { return by_objective_; }

  static constexpr const char* kNotAllWays = "not all ways to compute it were measured";

 private:
  // Decisions are read and stored in one transaction, and reported when that is over.
  using Notes = std::vector<std::string>;

  /// Earlier decisions by finals, by time, of the problem whose finals are held.
  struct Earlier {
    struct OfCompiler {
      std::optional<Store::DecisionId> decided{};
      std::optional<StandingDecision> standing{};  ///< where its winner is usable here
    };
    std::vector<OfCompiler> by_compiler{};
    std::optional<std::size_t> last{};      ///< index of the compiler with the latest decision
    std::set<std::int64_t> not_compared{};  ///< toolkits whose newer winners, by another sweep, were not timed here

    [[nodiscard]] std::optional<StandingDecision> standing() const {
      return last ? by_compiler.at(*last).standing : std::nullopt;
    }
  };

  void recall_standing(const Store& store, SweepTask& task);
  [[nodiscard]] FinalsResult heed_later_decisions(const Store& store, SweepTask& task, FinalsResult result,
                                                  Notes& notes);
  [[nodiscard]] bool is_better_elsewhere(const Store& store, const ContextIds& context,
                                         const FinalsResult& result) const;
  void store_others(Store& store, const SweepTask& task, const FinalsResult& result,
                    const std::vector<std::int64_t>& ids, Notes& notes) const;
  void store_decision(Store& store, const SweepTask& task, const ContextIds& context, const FinalsResult& result,
                      std::int64_t trial, Notes& notes) const;
  [[nodiscard]] std::optional<FinalsResult> decide_and_store(Store& store, SweepTask& task, const FinalsResult& decided,
                                                             const std::vector<std::int64_t>& ids, Notes& notes);
  void report_winner(const SweepTask& task, const FinalsResult& result) const;
  void note(SweepTask& task, const FinalsResult& result);
  [[nodiscard]] static bool decided_in_finals(const Store& store, const SweepTask& task, const Config& config);

  SweepRecorder& recorder_;
  const SweepOptions& options_;
  const Agenda& agenda_;
  const FinalsBudget& budget_;
  std::string device_;
  ObjectiveDecider by_objective_;
  Earlier earlier_{};
};

}  // namespace pascaline
