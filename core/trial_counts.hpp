#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/trial.hpp"

namespace pascaline {

/// How many trials there are. Everything that tells such numbers tells these, as `kTrialCounts` lists them.
struct TrialCounts {
  std::int64_t trials = 0;
  std::int64_t ok = 0;
  std::int64_t dropped = 0;
  std::int64_t duplicates = 0;
  std::int64_t rejected = 0;
  std::int64_t crashed = 0;
  std::int64_t finals = 0;

  /// Adds `count` trials of a kind.
  void add(TrialStage stage, TrialStatus status, bool is_duplicate, std::int64_t count = 1);
  void add(const Trial& trial) { add(trial.stage, trial.status, trial.shared_trial != 0); }
  TrialCounts& operator+=(const TrialCounts& others);

  friend bool operator==(const TrialCounts&, const TrialCounts&) = default;
};

/// Decides which counts include a trial.
struct TrialKind {
  TrialStage stage = TrialStage::search;
  TrialStatus status = TrialStatus::ok;
  bool is_duplicate = false;
};

/// One of the counts, with all that shows it needs.
struct TrialCount {
  const char* name;     ///< in JSON, CSV and tables
  const char* title;    ///< at the head of a column
  const char* one;      ///< "trial": what follows the number 1
  const char* many;     ///< "trials"
  const char* meaning;  ///< a sentence
  std::int64_t TrialCounts::*value;
  bool (*includes)(const TrialKind& kind);
};

[[nodiscard]] constexpr bool in_search(const TrialKind& kind) { return kind.stage == TrialStage::search; }
[[nodiscard]] constexpr bool is_usable(const TrialKind& kind) { return in_search(kind) && has_time(kind.status); }

/// All counts in the order in which they are shown. A new one needs its member above and its entry here, no more.
inline constexpr std::array kTrialCounts{
    TrialCount{"trials", "Trials", "trial", "trials",
               "Configurations that searches tried, each once in a session, failed ones and duplicates among them.",
               &TrialCounts::trials, in_search},
    TrialCount{"ok", "Usable", "usable", "usable", "Trials that ran and gave the right result.", &TrialCounts::ok,
               is_usable},
    TrialCount{"dropped", "Dropped early", "dropped early", "dropped early",
               "Usable trials that racing sampled no further, as they are slower than the best.", &TrialCounts::dropped,
               [](const TrialKind& kind) {
                 return in_search(kind) && !kind.is_duplicate && kind.status == TrialStatus::dropped;
               }},
    TrialCount{"duplicates", "Duplicates", "duplicate", "duplicates",
               "Trials that share the result of another one, as their machine code is the same.",
               &TrialCounts::duplicates, [](const TrialKind& kind) { return in_search(kind) && kind.is_duplicate; }},
    TrialCount{"rejected", "Rejected", "rejected", "rejected",
               "Trials that a limit of the device ruled out before they were measured.", &TrialCounts::rejected,
               [](const TrialKind& kind) { return in_search(kind) && kind.status == TrialStatus::rejected; }},
    TrialCount{"crashed", "Crashed or hung", "crashed or hung", "crashed or hung",
               "Trials that crashed or did not end in time; a new worker measured the next.", &TrialCounts::crashed,
               [](const TrialKind& kind) {
                 return in_search(kind) &&
                        (kind.status == TrialStatus::crashed || kind.status == TrialStatus::timed_out);
               }},
    TrialCount{"finals", "In finals", "measurement in finals", "measurements in finals",
               "Measurements of finalists, side by side; they repeat trials and are none.", &TrialCounts::finals,
               [](const TrialKind& kind) { return kind.stage == TrialStage::finals; }},
};

/// "24 trials, 22 usable, 10 dropped early, 2 duplicates, 12 measurements in finals": those that are not 0, and always
/// the trials and the usable ones.
[[nodiscard]] std::string counts_text(const TrialCounts& counts);

/// "trials ok": the names of the counts that include the trial.
[[nodiscard]] std::string counted_as(const Trial& trial);

/// Calls `visit(count, number)` for each.
template <typename Counts, typename Visit>
void for_each_count(Counts& counts, Visit&& visit) {
  for (const TrialCount& count : kTrialCounts) {
    visit(count, counts.*count.value);
  }
}

}  // namespace pascaline
