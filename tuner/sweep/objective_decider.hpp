#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"
#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

/// How far the time allowed finals.
struct FinalsLimits {
  bool shared = false;  ///< their time is shared with problems that were not looked at
  bool cut = false;     ///< they have fewer finalists or rounds than are wanted
};

/// Stores and reports the decisions of finals by another objective than time.
class ObjectiveDecider {
 public:
  /// `recorder` and `options` must outlive it; `device`: for display.
  ObjectiveDecider(SweepRecorder& recorder, const SweepOptions& options, std::string device)
      : recorder_(recorder), options_(options), device_(std::move(device)) {}

  /// True if an objective is asked for and no winner by it is stored.
  [[nodiscard]] bool lacks(const SweepTask& task) const;
  /// Stores what `result.by_objective` decides, of each compiler, or reports why nothing is decided. `ids`: the stored
  /// trials of `result.trials`.
  void announce(SweepTask& task, const FinalsResult& result, const std::vector<std::int64_t>& ids,
                const FinalsLimits& limits);

 private:
  [[nodiscard]] bool tell_undecided(SweepTask& task, const ObjectiveDecision& decision, const FinalsLimits& limits);
  [[nodiscard]] bool was_not_compared(const Store& store, const SweepTask& task, const ContextIds& context,
                                      const FinalsResult& result, const FinalsLimits& limits) const;
  void store(const SweepTask& task, const ObjectiveDecision& decided, const FinalsResult& result,
             std::optional<std::size_t> baseline, const std::vector<std::int64_t>& ids, const FinalsLimits& limits);

  SweepRecorder& recorder_;
  const SweepOptions& options_;
  std::string device_;
};

}  // namespace pascaline
