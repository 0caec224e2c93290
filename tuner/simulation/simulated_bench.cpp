#include "tuner/simulation/simulated_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"
#include "tuner/measure/finals_sampler.hpp"

namespace pascaline {
namespace {

constexpr int kWarmAfter = 100;  // launches back to back

}  // namespace

double SimulatedBench::draw_us(const SimulatedResult& result) {
  return result.time_us * std::exp(result.spread * std::normal_distribution<double>()(generator_));
}

// After many launches back to back the card is as warm as it gets.
TimedWork SimulatedBench::work_of(const Trial& trial, const SimulatedResult& result) {
  back_to_back_ = 0;
  return {[this, result, power_w = world_.power_w(trial.problem, trial.config)] {
            ++back_to_back_;
            card_.draw_power(power_w);
            card_.advance(1e-6 * result.time_us);
          },
          [this, result, factor = world_.sustained_factor(trial.problem, trial.config)](bool /*cold_cache*/) {
            const double time_us = draw_us(result) * (back_to_back_ > kWarmAfter ? factor : 1);
            card_.advance(1e-6 * time_us);
            return time_us;
          }};
}

// The same as TrialRunner does.
SimulatedBench::MeasuredTrial SimulatedBench::measure_trial(const TrialJob& job, double launch_limit_s) {
  MeasuredTrial measured{job.blank};
  Trial& trial = *measured.trial;
  const SimulatedResult result = world_.measure(trial.problem, trial.config);
  const double verify_s = world_.verify_s(trial.problem, trial.config);
  trial.verify_ms = 1000 * verify_s;
  trial.load_ms = trial.verify_ms / 2;
  trial.status = result.status;
  trial.reason = result.reason;
  card_.advance(verify_s);
  if (result.status == TrialStatus::crashed) {
    measured.overdue = result.reason;
  } else if (result.time_us > 1e6 * launch_limit_s) {
    trial.status = TrialStatus::timed_out;
    measured.overdue = fmt::format("timed out after {:.3g} s in phase 'launch'", launch_limit_s);
    card_.advance(launch_limit_s);
  } else if (result.status == TrialStatus::ok) {
    time_trial(measured, job.best_us, result);
  }
  return measured;
}

void SimulatedBench::time_trial(MeasuredTrial& into, double best_us, const SimulatedResult& result) {
  if (result.measure_s) {
    take_recorded(into, result);
    return;
  }
  Trial& trial = *into.trial;
  const double begun_s = card_.now_s();
  Measured measured = measure(card_.monitor(), work_of(trial, result), options_, best_us, noise_);
  if (measured.gave_up || measured.cut_short) {
    into.gave_up = measured.gave_up;
    into.trial.reset();
    return;
  }
  trial.measure_ms = 1000 * (card_.now_s() - begun_s);
  take_measured(trial, std::move(measured), options_, best_us);
  if (has_time(trial.status)) {
    noise_.add(trial.samples);
  }
}

// Takes as long as when it was recorded.
void SimulatedBench::take_recorded(MeasuredTrial& into, const SimulatedResult& result) {
  constexpr double kMaxSamples = 30;
  card_.advance(*result.measure_s);
  if (card_.monitor().left_s() <= 0) {
    into.trial.reset();
    return;
  }
  Trial& trial = *into.trial;
  const auto samples = static_cast<std::size_t>(std::clamp(1e6 * *result.measure_s / result.time_us, 1.0, kMaxSamples));
  trial.samples.assign(samples, {result.time_us, SampleMark::none, {}, {}, {}});
  trial.time = summarize(trial.samples);
  trial.measure_ms = 1000 * *result.measure_s;
}

// A finalist that does not run now is left out first.
std::optional<FinalsResult> SimulatedBench::hold_finals(const FinalsJob& job) {
  const FinalsOptions& options = job.options;
  DeviceMonitor& monitor = card_.monitor();
  std::vector<Trial> contenders;
  for (const auto& [blank, binary] : job.finalists) {
    contenders.push_back(blank);
  }
  Finals finals(std::move(contenders), objective_of(options), options,
                [&](double canary_us) { return monitor.scale_of(canary_us); });
  FinalsSampler sampler(monitor, options, options_.cold_cache, {});
  for (std::size_t i = 0; i < finals.contenders().size();) {
    const Trial& trial = finals.contenders()[i];
    const SimulatedResult result = world_.measure(trial.problem, trial.config);
    if (result.status == TrialStatus::ok) {
      sampler.add(work_of(trial, result));
      ++i;
    } else {
      finals.fail(i, result.reason);
    }
  }
  if (!finals.contenders().empty()) {
    card_.advance(static_cast<double>(finals.contenders().size()) *
                  world_.finalist_s(finals.contenders().front().problem));
  }
  for (Round round = finals.next(monitor.left_s()); !round.over(); round = finals.next(monitor.left_s())) {
    finals.add(sampler.measure(round, finals.contenders()));
  }
  card_.draw_power(std::nullopt);
  return finals.decided();
}

}  // namespace pascaline
