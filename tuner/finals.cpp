#include "tuner/finals.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/statistics.hpp"

namespace pascaline {
namespace {

std::vector<double> times_of(const Trial& trial) {
  std::vector<double> times;
  for (const Sample& sample : trial.samples) {
    if (sample.counted) {
      times.push_back(sample.time_us);
    }
  }
  return times;
}

void time_round(TrialRunner& runner, TrialRunner::Ready& ready, Trial& trial, int launches) {
  for (int launch = 0; launch < launches; ++launch) {
    Sample sample;
    sample.time_us = runner.device().time_launch_us(ready.kernel, ready.geometry, ready.arguments.pointers(),
                                                    runner.options().cold_cache);
    trial.samples.push_back(sample);
  }
}

}  // namespace

void decide_finals(FinalsResult& result, const FinalsOptions& options) {
  const Trial* standard = nullptr;
  std::size_t fastest = 0;
  std::size_t standard_index = 0;
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    if (result.trials[i].is_default) {
      standard = &result.trials[i];
      standard_index = i;
    }
    fastest = result.trials[i].time->median_us < result.trials[fastest].time->median_us ? i : fastest;
  }
  result.winner = fastest;
  if (standard == nullptr) {
    result.confidence = 1.0;
    return;
  }
  result.baseline = standard->time;
  const double p = mann_whitney_p(times_of(result.trials[fastest]), times_of(*standard));
  if (fastest == standard_index || !(p <= options.p_value)) {
    result.winner = standard_index;
    result.confidence = 0.5;
  } else {
    result.confidence = 1.0 - p / 2.0;
  }
}

std::optional<FinalsResult> run_finals(TrialRunner& runner, const std::vector<std::pair<Config, Binary>>& finalists,
                                       const FinalsOptions& options) {
  FinalsResult result;
  std::vector<TrialRunner::Ready> ready;
  for (const auto& [config, binary] : finalists) {
    ready.push_back(runner.make_ready(config, binary));
    result.trials.push_back(runner.blank(config, binary));
    result.trials.back().stage = TrialStage::finals;
    runner.device().launch(ready.back().kernel, ready.back().geometry, ready.back().arguments.pointers());
  }
  if (ready.empty()) {
    return std::nullopt;
  }
  runner.device().synchronize();
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      time_round(runner, ready[i], result.trials[i], options.launches);
    }
  }
  for (Trial& trial : result.trials) {
    trial.time = summarize(trial.samples);
  }
  decide_finals(result, options);
  return result;
}

}  // namespace pascaline
