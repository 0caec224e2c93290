#include "tuner/finals.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/statistics.hpp"

namespace pascaline {
namespace {

std::vector<double> times_of(const Trial& trial) {
  std::vector<double> times;
  for (const Sample& sample : trial.samples) {
    if (sample.counted()) {
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

using Finalist = std::pair<Config, Binary>;

// `running` is the finalist on the device at any time: the one to blame if the device fails.
FinalsResult time_finalists(TrialRunner& runner, const std::vector<const Finalist*>& finalists,
                            const FinalsOptions& options, std::size_t& running) {
  FinalsResult result;
  std::vector<TrialRunner::Ready> ready;
  for (running = 0; running < finalists.size(); ++running) {
    const auto& [config, binary] = *finalists[running];
    ready.push_back(runner.make_ready(config, binary));
    result.trials.push_back(runner.blank(config, binary));
    result.trials.back().stage = TrialStage::finals;
    runner.device().launch(ready.back().kernel, ready.back().geometry, ready.back().arguments.pointers());
    runner.device().synchronize();
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (running = 0; running < ready.size(); ++running) {
      time_round(runner, ready[running], result.trials[running], options.launches);
    }
  }
  for (Trial& trial : result.trials) {
    trial.time = summarize(trial.samples);
  }
  return result;
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
  const std::vector<double> best_times = times_of(result.trials[fastest]);
  const std::vector<double> standard_times = times_of(*standard);
  const double p = mann_whitney_p(best_times, standard_times);
  // Of two wide distributions the one with the lower median may still be the slower one as a rule.
  const bool faster = p <= options.p_value && probability_faster(best_times, standard_times) > 0.5;
  if (fastest == standard_index || !faster) {
    result.winner = standard_index;
    result.confidence = 0.5;
  } else {
    result.confidence = 1.0 - p / 2.0;
  }
}

std::optional<FinalsResult> run_finals(TrialRunner& runner, const std::vector<std::pair<Config, Binary>>& finalists,
                                       const FinalsOptions& options) {
  std::vector<const Finalist*> left;
  left.reserve(finalists.size());
  for (const Finalist& finalist : finalists) {
    left.push_back(&finalist);
  }
  while (!left.empty()) {
    std::size_t running = 0;
    try {
      FinalsResult result = time_finalists(runner, left, options, running);
      decide_finals(result, options);
      return result;
    } catch (const CudaError&) {
    } catch (const HostDeviceError&) {
    }
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(running));
    runner.recover();
  }
  return std::nullopt;
}

}  // namespace pascaline
