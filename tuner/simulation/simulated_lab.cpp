#include "tuner/simulation/simulated_lab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"
#include "tuner/simulation/simulated_clock.hpp"

namespace pascaline {

SimulatedLab::SimulatedLab(MeasureClientOptions options, const SimulatedWorld& world, const SweepClock& clock)
    : options_(std::move(options)), world_(world), clock_(clock) {}

void SimulatedLab::warm_up() {
  wanted_ = true;
  begin_next(clock_.now());
}

void SimulatedLab::set_problem(MeasureProblem problem) {
  problem_ = std::move(problem);
  preparing_ = true;
  begin_next(clock_.now());
}

void SimulatedLab::submit(TrialJob job) {
  trials_.push_back(std::move(job));
  begin_next(clock_.now());
}

void SimulatedLab::submit(FinalsJob job) {
  finals_ = std::move(job);
  begin_next(clock_.now());
}

std::vector<TrialJob> SimulatedLab::take_back() {
  std::vector<TrialJob> back;
  const std::size_t begun = work_ == Work::trial ? 1 : 0;
  while (trials_.size() > begun) {
    back.push_back(std::move(trials_.back()));
    trials_.pop_back();
  }
  return back;
}

void SimulatedLab::interrupt() {
  work_ = Work::none;
  ends_at_ = SweepClock::TimePoint::max();
  finals_.reset();
  preparing_ = false;
  open_ = false;
  wanted_ = false;
}

void SimulatedLab::begin(Work work, SweepClock::TimePoint at, double seconds) {
  work_ = work;
  begun_at_ = at;
  ends_at_ = std::isfinite(seconds) ? at + clock_seconds(seconds) : SweepClock::TimePoint::max();
}

// One thing after the other, as a worker reads its requests.
void SimulatedLab::begin_next(SweepClock::TimePoint at) {
  if (work_ != Work::none || ended_ || (!wanted_ && !busy())) {
    return;
  }
  if (!open_) {
    begin(Work::opening, at, world_.open_s());
  } else if (preparing_) {
    begin(Work::preparing, at, world_.prepare_s(problem_->problem));
  } else if (!trials_.empty()) {
    begin_trial(at);
  } else if (finals_) {
    begin_finals(at);
  }
}

double SimulatedLab::left_s(SweepClock::TimePoint at) const {
  const auto left_s = options_.deadline.left_s();  // as of now, which is not before `at`
  return left_s ? *left_s + clock_.seconds_since(at) : SimulatedWorld::kForever;
}

double SimulatedLab::draw_us(const SimulatedResult& result) {
  return result.time_us * std::exp(result.spread * std::normal_distribution<double>()(generator_));
}

// Sampled as a device is, and timed out where a launch takes too long.
Trial SimulatedLab::measured(const Trial& blank) {
  Trial trial = blank;
  const SimulatedResult result = world_.measure(trial.problem, trial.config);
  trial.verify_ms = 1000 * world_.verify_s(trial.problem, trial.config);
  trial.status = result.status;
  trial.reason = result.reason;
  if (result.time_us > 1e6 * options_.kernel_timeout_s) {
    trial.status = TrialStatus::timed_out;
    trial.reason = fmt::format("a launch took more than {:.3g} s", options_.kernel_timeout_s);
    trial.measure_ms = 1000 * options_.kernel_timeout_s;
  }
  if (trial.status != TrialStatus::ok) {
    return trial;
  }
  const Race race(trials_.front().best_us, options_.measure.race_error, options_.measure.target_half_width, noise_);
  double spent_ms = 0;
  SamplingVerdict verdict = SamplingVerdict::more;
  while (verdict == SamplingVerdict::more) {
    trial.samples.push_back({draw_us(result), SampleMark::none, {}, {}, {}});
    spent_ms += trial.samples.back().time_us / 1000;
    verdict = judge_samples(trial.samples, 1, spent_ms, options_.measure, race);
  }
  if (verdict == SamplingVerdict::dropped) {
    trial.reason = fmt::format("{}{} samples", kDroppedReason, trial.samples.size());
  }
  noise_.add(trial.samples);
  trial.time = summarize(trial.samples);
  trial.measure_ms = spent_ms + options_.measure.warm_up * result.time_us / 1000;
  return trial;
}

void SimulatedLab::begin_trial(SweepClock::TimePoint at) {
  const TrialJob& job = trials_.front();
  trial_result_ = measured(job.blank);
  const double seconds = (trial_result_->verify_ms + trial_result_->measure_ms) / 1000;
  const double allowed_s = std::max(0.0, left_s(at) - job.leave_s);
  if (seconds > allowed_s) {
    trial_result_.reset();
  }
  begin(Work::trial, at, std::min(seconds, allowed_s));
}

void SimulatedLab::add_round(FinalsResult& result, double& seconds) {
  for (Trial& trial : result.trials) {
    const SimulatedResult truth = world_.measure(trial.problem, trial.config);
    for (int launch = 0; launch < finals_->options.launches; ++launch) {
      trial.samples.push_back({draw_us(truth), SampleMark::none, {}, {}, {}});
      seconds += 1e-6 * trial.samples.back().time_us;
    }
    trial.time = summarize(trial.samples);
  }
  ++result.rounds;
}

void SimulatedLab::begin_finals(SweepClock::TimePoint at) {
  FinalsResult result;
  const FinalsOptions& options = finals_->options;
  for (const auto& [blank, binary] : finals_->finalists) {
    result.trials.push_back(blank);
    result.trials.back().stage = TrialStage::finals;
  }
  const double allowed_s = std::min(left_s(at), finals_->allowed_s.value_or(SimulatedWorld::kForever));
  double seconds = 0;
  while (result.rounds < options.rounds && seconds * (result.rounds + 1) <= allowed_s * std::max(1, result.rounds)) {
    add_round(result, seconds);
    if (finals_look_after(result.rounds, options)) {
      decide_finals(result, options);
      if (finals_are_settled(result, options)) {
        break;
      }
    }
  }
  result.out_of_time = result.rounds < kMinFinalsRounds;
  if (!result.out_of_time) {
    decide_finals(result, options);
  }
  finals_result_ = std::move(result);
  begin(Work::finals, at, std::min(seconds, allowed_s));
}

void SimulatedLab::finish(std::vector<MeasureEvent>& events) {
  const double spent_ms = 1000 * std::chrono::duration<double>(ends_at_ - begun_at_).count();
  switch (std::exchange(work_, Work::none)) {
    case Work::none:
      break;
    case Work::opening:
      open_ = true;
      times_.opening_ms += spent_ms;
      break;
    case Work::preparing:
      preparing_ = false;
      times_.preparing_ms += spent_ms;
      events.emplace_back(ProblemPrepared{});
      break;
    case Work::trial: {
      TrialJob job = std::move(trials_.front());
      trials_.pop_front();
      times_.trials_ms += spent_ms;
      if (trial_result_) {
        events.emplace_back(TrialDone{job.id, std::move(*trial_result_)});
      } else {
        events.emplace_back(TrialCut{std::move(job)});
      }
      break;
    }
    case Work::finals:
      times_.finals_ms += spent_ms;
      events.emplace_back(FinalsDone{finals_->id, std::move(finals_result_)});
      finals_.reset();
      break;
  }
}

void SimulatedLab::pump(std::vector<MeasureEvent>& events) {
  if (ended_) {
    return;
  }
  if (lost_) {
    interrupt();
    ended_ = true;
    events.emplace_back(MeasuringEnded{"the device was lost"});
    return;
  }
  while (work_ != Work::none && ends_at_ <= clock_.now()) {
    finish(events);
    begin_next(std::exchange(ends_at_, SweepClock::TimePoint::max()));
  }
}

}  // namespace pascaline
