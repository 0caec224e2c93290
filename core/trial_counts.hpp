#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/trial.hpp"

namespace pascaline {

/// How many trials there are. Everything that tells such numbers tells these: the words are those of the glossary in
/// docs/report.md.
struct TrialCounts {
  std::int64_t trials = 0;      ///< configurations that searches tried, those that failed and duplicates among them
  std::int64_t ok = 0;          ///< usable ones: they ran and gave the right result
  std::int64_t dropped = 0;     ///< of the usable ones, those that racing dropped early as slower than the best
  std::int64_t duplicates = 0;  ///< trials that share the result of the same machine code
  std::int64_t finals = 0;      ///< measurements of finalists; they repeat trials and are none

  /// Adds `times` trials of a kind; `reason` tells whether racing dropped them.
  void add(TrialStage stage, TrialStatus status, bool is_duplicate, std::string_view reason, std::int64_t times = 1);
  void add(const Trial& trial) { add(trial.stage, trial.status, trial.shared_trial != 0, trial.reason); }
  TrialCounts& operator+=(const TrialCounts& others);

  friend bool operator==(const TrialCounts&, const TrialCounts&) = default;
};

/// "24 trials (22 usable, 10 of them dropped early as slower, 2 duplicates), 12 measurements in finals".
[[nodiscard]] std::string text_of(const TrialCounts& counts);

/// Calls `visit(name, count)` for each, in the order of the members.
template <typename Visit>
void for_each_count(const TrialCounts& counts, Visit&& visit) {
  visit("trials", counts.trials);
  visit("ok", counts.ok);
  visit("dropped", counts.dropped);
  visit("duplicates", counts.duplicates);
  visit("finals", counts.finals);
}

}  // namespace pascaline
