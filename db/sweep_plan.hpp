#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/objective.hpp"
#include "core/problem.hpp"
#include "core/space/space_part.hpp"

namespace pascaline {

/// Calls of a problem in a phase of a model.
struct PhaseCalls {
  std::string phase;  ///< "prompt", "token", "image", or as the workload calls it
  double count = 0;
  friend bool operator==(const PhaseCalls&, const PhaseCalls&) = default;
};

/// Where a phase stands among the others: those of a model as its work goes (prompt, token, image), others after them.
[[nodiscard]] inline std::size_t rank_of_phase(std::string_view phase) noexcept {
  constexpr std::array<std::string_view, 3> kPhases{"prompt", "token", "image"};
  return static_cast<std::size_t>(std::find(kPhases.begin(), kPhases.end(), phase) - kPhases.begin());
}

/// A kernel of a plan, as its files were.
struct PlannedKernel {
  std::string name;
  std::string source_hash;
  std::string space_hash;
  friend bool operator==(const PlannedKernel&, const PlannedKernel&) = default;
};

/// A problem of a plan.
struct PlannedProblem {
  Problem problem;
  double count = 1;                  ///< calls by the model, in all its phases; 0: a shape between others
  std::string label;                 ///< names in the workload, possibly empty
  std::vector<PhaseCalls> phases{};  ///< the same by phase, in the order of their names; empty: there are no phases
  SpacePart part{};                  ///< of its space that is searched
  friend bool operator==(const PlannedProblem&, const PlannedProblem&) = default;
};

/// What a run of the tuner set out to do, as a database keeps it to be resumed. Read from a database it is what anybody
/// may have written there: whoever uses it checks it as a command line is checked.
struct SweepPlan {
  std::vector<PlannedKernel> kernels{};  ///< in the order of their names
  std::vector<std::string> devices;
  std::string target;  ///< empty: the devices' own
  std::string nvrtc;   ///< a version of NVRTC, several or "all"; empty: none was asked for, or by a path
  std::string searcher;
  std::uint64_t seed = 1;
  std::optional<std::int64_t> trials{};  ///< of each problem; nothing: not asked for
  std::optional<double> budget_s{};
  std::optional<std::int64_t> until_unix_s{};
  bool retry_failed = false;
  std::int64_t jobs = 1;
  double compile_timeout_s = 0;
  std::int64_t compile_memory_mib = 0;
  double kernel_timeout_s = 0;
  bool cold_cache = true;
  std::int64_t min_samples = 0;
  std::int64_t max_samples = 0;
  double half_width = 0;
  double sample_budget_ms = 0;
  double race_error = 0;
  std::int64_t finalists = 0;
  std::int64_t rounds = 0;
  double preheat_s = 0;
  std::optional<double> max_temperature_c{};
  double drift = 0;
  double pause_limit_s = 0;
  bool tolerate_power = false;
  bool tolerate_thermal = false;
  Objective objective = Objective::time;
  bool polite = false;
  double min_gain = 0;
  bool deepen = false;
  std::vector<PlannedProblem> problems{};
  /// Options with a path, or what may be one, that the run was begun with: to be shown, never to be opened.
  std::vector<std::pair<std::string, std::string>> paths{};
  friend bool operator==(const SweepPlan&, const SweepPlan&) = default;
};

}  // namespace pascaline
