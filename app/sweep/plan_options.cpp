#include "app/sweep/plan_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "app/sweep/sweep_options.hpp"
#include "app/text.hpp"
#include "report/text.hpp"

namespace pascaline {

OptionWords options_of(const SweepPlan& plan) {
  const auto number = [](double value) { return fmt::format("{}", value); };
  const auto seconds = [](double value) { return fmt::format("{}s", std::round(value * 1000) / 1000); };
  const auto whole = [](std::int64_t value) { return std::to_string(value); };
  OptionWords words{{"--devices", fmt::format("{}", fmt::join(plan.devices, ","))},
                    {"--searcher", plan.searcher},
                    {"--seed", whole(static_cast<std::int64_t>(plan.seed))},
                    {"--jobs", whole(plan.jobs)},
                    {"--compile-timeout", number(plan.compile_timeout_s)},
                    {"--compile-memory", whole(plan.compile_memory_mib)},
                    {"--kernel-timeout", number(plan.kernel_timeout_s)},
                    {"--min-samples", whole(plan.min_samples)},
                    {"--max-samples", whole(plan.max_samples)},
                    {"--precision", number(plan.half_width)},
                    {"--sample-budget-ms", number(plan.sample_budget_ms)},
                    {"--race-error", number(plan.race_error)},
                    {"--min-gain", number(plan.min_gain)},
                    {"--finalists", whole(plan.finalists)},
                    {"--rounds", whole(plan.rounds)},
                    {"--preheat", number(plan.preheat_s)},
                    {"--drift", number(plan.drift)},
                    {"--pause-limit", number(plan.pause_limit_s)}};
  for (const PlannedKernel& kernel : plan.kernels) {
    words.emplace_back("--kernel", kernel.name);
  }
  const auto add = [&](bool wanted, const char* option, const std::string& value) {
    if (wanted) {
      words.emplace_back(option, value);
    }
  };
  add(!plan.target.empty(), "--target", plan.target);
  add(!plan.nvrtc.empty(), "--nvrtc", plan.nvrtc);
  add(plan.trials.has_value(), "--trials", whole(plan.trials.value_or(0)));
  add(plan.budget_s.has_value(), "--budget", seconds(plan.budget_s.value_or(0)));
  add(plan.objective != Objective::time, "--objective", std::string(name_of(plan.objective)));
  add(plan.retry_failed, "--retry-failed", "");
  add(!plan.cold_cache, "--warm-cache", "");
  add(plan.max_temperature_c.has_value(), "--max-temperature", number(plan.max_temperature_c.value_or(0)));
  add(plan.tolerate_power, "--tolerate", "power");
  add(plan.tolerate_thermal, "--tolerate", "thermal");
  add(plan.polite, "--polite", "");
  add(!plan.deepen, "--time-left", std::string(kSearchOn));
  return words;
}

std::string word_of(const std::pair<std::string, std::string>& option) {
  return option.second.empty() ? option.first : option.first + "=" + option.second;
}

std::string options_text(const OptionWords& options) {
  std::string text;
  for (const auto& [option, value] : options) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, shell_word(clean_line(value)));
  }
  return text;
}

}  // namespace pascaline
