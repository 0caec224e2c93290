#include "tuner/sweep/plan_record.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/device/compilers.hpp"

namespace pascaline {
namespace {

// A portfolio changes nothing of what trials mean, and the contents of buffers are kept as a hash.
constexpr std::array<std::string_view, 3> kNotPlanned{"--portfolio", "--input", "--answer"};

}  // namespace

SweepPlan plan_of(std::vector<PlannedKernel> kernels, const std::vector<SweepProblem>& problems,
                  const SweepOptions& options) {
  SweepPlan plan;
  plan.kernels = std::move(kernels);
  std::sort(plan.kernels.begin(), plan.kernels.end(),
            [](const PlannedKernel& a, const PlannedKernel& b) { return a.name < b.name; });
  plan.devices = options.devices;
  plan.target = options.compile.target;
  plan.nvrtc = is_compiler_wish(options.compile.nvrtc) ? options.compile.nvrtc : "";
  plan.searcher = options.search.searcher;
  plan.seed = options.search.seed;
  if (options.record.trials_given) {
    plan.trials = options.trials;
  }
  plan.budget_s = options.budget_s;
  if (options.until) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.until->time_since_epoch());
    plan.until_unix_s = std::max<std::int64_t>(1, seconds.count());
  }
  plan.retry_failed = options.search.retry_failed;
  plan.jobs = static_cast<std::int64_t>(options.compile.jobs);
  plan.compile_timeout_s = options.compile.timeout_s;
  plan.compile_memory_mib = static_cast<std::int64_t>(options.compile.memory_bytes >> 20U);
  plan.kernel_timeout_s = options.waits.kernel_timeout_s;
  plan.cold_cache = options.measure.cold_cache;
  plan.min_samples = options.measure.min_samples;
  plan.max_samples = options.measure.max_samples;
  plan.half_width = options.measure.target_half_width;
  plan.sample_budget_ms = options.measure.budget_ms;
  plan.race_error = options.measure.race_error;
  plan.finalists = options.finalists;
  plan.rounds = options.finals.rounds;
  plan.preheat_s = options.governor.preheat_limit_s;
  plan.max_temperature_c = options.governor.limit_c;
  plan.drift = options.governor.canary_tolerance;
  plan.pause_limit_s = options.governor.pause_limit_s;
  plan.tolerate_power = (options.governor.tolerated_throttle & kPowerThrottleBits) != 0;
  plan.tolerate_thermal = (options.governor.tolerated_throttle & kThermalThrottleBits) != 0;
  plan.objective = options.finals.objective.objective;
  plan.polite = options.polite.enabled;
  plan.min_gain = options.search.min_gain;
  plan.deepen = options.search.deepen;
  for (const SweepProblem& problem : problems) {
    plan.problems.push_back({problem.problem, problem.count, problem.label, problem.phases, problem.part});
  }
  std::copy_if(options.record.paths.begin(), options.record.paths.end(), std::back_inserter(plan.paths),
               [](const auto& path) { return std::ranges::find(kNotPlanned, path.first) == kNotPlanned.end(); });
  return plan;
}

}  // namespace pascaline
