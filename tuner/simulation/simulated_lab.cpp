#include "tuner/simulation/simulated_lab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"
#include "tuner/measure/finals_sampler.hpp"
#include "tuner/measure/worker_deadline.hpp"
#include "tuner/simulation/simulated_clock.hpp"

namespace pascaline {
namespace {

constexpr int kWarmAfter = 100;  // launches back to back
constexpr int kMaxWorkerFailures = 3;
constexpr int kMaxPreparationsInVain = 2;
constexpr double kSecondsUntilRestart = 0.5;  // times the square of the failures in a row

double card_seconds(SweepClock::TimePoint at) {
  return std::chrono::duration<double>(at - SweepClock::TimePoint{}).count();
}

}  // namespace

SimulatedLab::SimulatedLab(MeasureClientOptions options, const SimulatedWorld& world, const SweepClock& clock)
    : options_(std::move(options)), world_(world), clock_(clock), card_(options_) {}

void SimulatedLab::warm_up() {
  wanted_ = true;
  begin_next(clock_.now());
}

void SimulatedLab::set_problem(MeasureProblem problem) {
  problem_ = std::move(problem);
  preparing_ = true;
  preparations_ = 0;
  if (started_) {
    to_prepare_.push_back(problem_->problem);
  }
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
  card_.close(card_seconds(clock_.now()));
  overdue_.clear();
  finals_.reset();
  if (std::exchange(preparing_, false)) {
    problem_.reset();
  }
  started_ = false;
  wanted_ = false;
}

void SimulatedLab::stop_worker() {
  const std::string phase = work_ == Work::opening     ? "start"
                            : work_ == Work::preparing ? "inputs"
                            : work_ == Work::trial     ? "measure"
                            : work_ == Work::finals    ? "0"
                                                       : "";
  if (!phase.empty()) {
    const double limit_s = allowed_s(phase);
    overdue_ = fmt::format("timed out after {:.3g} s in phase '{}'", limit_s, phase);
    ends_at_ = clock_.now() + clock_seconds(limit_s);
  }
}

void SimulatedLab::lose_device(std::string how) {
  device_fault_ = how;
  loss_ = std::move(how);
}

// How long a worker may be silent.
double SimulatedLab::allowed_s(const std::string& phase) const {
  WorkerDeadline deadline(options_);
  const double best_us = !trials_.empty() ? trials_.front().best_us : finals_ ? finals_->best_us : 0;
  if (phase == "start") {
    deadline.allow_start();
  } else if (!deadline.allow_phase(phase, best_us)) {
    deadline.allow_finalist(best_us);
  }
  return deadline.allowed_s();
}

void SimulatedLab::begin(Work work, SweepClock::TimePoint at, double seconds) {
  work_ = work;
  begun_at_ = at;
  ends_at_ = std::isfinite(seconds) ? at + clock_seconds(seconds) : SweepClock::TimePoint::max();
}

// One thing after the other, as a worker reads its requests.
void SimulatedLab::begin_next(SweepClock::TimePoint at) {
  if (work_ != Work::none || ended_ || (!busy() && (started_ || !wanted_))) {
    return;
  }
  if (!started_) {
    if (at < start_at_) {
      begin(Work::waiting, at, std::chrono::duration<double>(start_at_ - at).count());
    } else {
      open(at);
    }
    return;
  }
  card_.idle_until(card_seconds(at));
  if (!to_prepare_.empty()) {
    begin(Work::preparing, at, world_.prepare_s(to_prepare_.front()));
    card_.advance(world_.prepare_s(to_prepare_.front()));
  } else if (!trials_.empty()) {
    begin_trial(at);
  } else if (finals_) {
    begin_finals(at);
    card_.idle_until(card_seconds(ends_at_));
  }
}

// A new worker prepares the problem again.
void SimulatedLab::open(SweepClock::TimePoint at) {
  started_ = true;
  wanted_ = false;
  preparing_ = problem_.has_value();
  to_prepare_.clear();
  if (problem_) {
    to_prepare_.push_back(problem_->problem);
  }
  card_.open(card_seconds(at));
  card_.monitor().set_end_s(card_seconds(at) + left_s(at));
  card_.advance(world_.open_s());
  if (device_fault_.empty()) {
    std::ignore = card_.monitor().preheat();
  }
  begin(Work::opening, at, card_.now_s() - card_seconds(at));
}

double SimulatedLab::left_s(SweepClock::TimePoint at) const {
  const auto left_s = options_.deadline.left_s();  // as of now, which is not before `at`
  return left_s ? *left_s + clock_.seconds_since(at) : SimulatedWorld::kForever;
}

double SimulatedLab::draw_us(const SimulatedResult& result) {
  return result.time_us * std::exp(result.spread * std::normal_distribution<double>()(generator_));
}

// After many launches back to back the card is as warm as it gets.
TimedWork SimulatedLab::work_of(const Trial& trial, const SimulatedResult& result) {
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

void SimulatedLab::begin_trial(SweepClock::TimePoint at) {
  const TrialJob& job = trials_.front();
  card_.monitor().set_end_s(card_seconds(at) + std::max(0.0, left_s(at) - job.leave_s));
  gives_up_ = false;
  measure_trial(trial_result_.emplace(job.blank), job);
  begin(Work::trial, at, card_.now_s() - card_seconds(at));
}

// The same as TrialRunner does.
void SimulatedLab::measure_trial(Trial& trial, const TrialJob& job) {
  const SimulatedResult result = world_.measure(trial.problem, trial.config);
  const double verify_s = world_.verify_s(trial.problem, trial.config);
  trial.verify_ms = 1000 * verify_s;
  trial.load_ms = trial.verify_ms / 2;
  trial.status = result.status;
  trial.reason = result.reason;
  card_.advance(verify_s);
  if (result.status == TrialStatus::crashed) {
    overdue_ = result.reason;
  } else if (const double limit_s = allowed_s("launch"); result.time_us > 1e6 * limit_s) {
    trial.status = TrialStatus::timed_out;
    overdue_ = fmt::format("timed out after {:.3g} s in phase 'launch'", limit_s);
    card_.advance(limit_s);
  } else if (result.status == TrialStatus::ok) {
    time_trial(trial, job, result);
  }
}

void SimulatedLab::time_trial(Trial& trial, const TrialJob& job, const SimulatedResult& result) {
  if (result.measure_s) {
    take_recorded(trial, result);
    return;
  }
  const double begun_s = card_.now_s();
  Measured measured = measure(card_.monitor(), work_of(trial, result), options_.measure, job.best_us, noise_);
  if (measured.gave_up || measured.cut_short) {
    gives_up_ = measured.gave_up;
    trial_result_.reset();
    return;
  }
  trial.measure_ms = 1000 * (card_.now_s() - begun_s);
  waited_ms_ += measured.wait_ms;
  take_measured(trial, std::move(measured), options_.measure, job.best_us);
  if (has_time(trial.status)) {
    noise_.add(trial.samples);
  }
}

// As long as it took when it was recorded.
void SimulatedLab::take_recorded(Trial& trial, const SimulatedResult& result) {
  constexpr double kMaxSamples = 30;
  card_.advance(*result.measure_s);
  if (card_.monitor().left_s() <= 0) {
    trial_result_.reset();
    return;
  }
  const auto samples = static_cast<std::size_t>(std::clamp(1e6 * *result.measure_s / result.time_us, 1.0, kMaxSamples));
  trial.samples.assign(samples, {result.time_us, SampleMark::none, {}, {}, {}});
  trial.time = summarize(trial.samples);
  trial.measure_ms = 1000 * *result.measure_s;
}

// A finalist that does not run now is left out first.
void SimulatedLab::begin_finals(SweepClock::TimePoint at) {
  const FinalsOptions& options = finals_->options;
  DeviceMonitor& monitor = card_.monitor();
  monitor.set_end_s(card_seconds(at) + std::min(left_s(at), finals_->allowed_s.value_or(SimulatedWorld::kForever)));
  std::vector<Trial> contenders;
  for (const auto& [blank, binary] : finals_->finalists) {
    contenders.push_back(blank);
  }
  Finals finals(std::move(contenders), objective_of(options), options,
                [&](double canary_us) { return monitor.scale_of(canary_us); });
  FinalsSampler sampler(monitor, options, options_.measure.cold_cache, {});
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
  finals_result_ = finals.decided();
  gives_up_ = finals_result_ && finals_result_->gave_up;
  begin(Work::finals, at, card_.now_s() - card_seconds(at));
}

void SimulatedLab::finish(std::vector<MeasureEvent>& events) {
  const double spent_ms = 1000 * std::chrono::duration<double>(ends_at_ - begun_at_).count();
  if (!overdue_.empty()) {
    const TrialStatus status =
        trial_result_ && trial_result_->status == TrialStatus::crashed ? TrialStatus::crashed : TrialStatus::timed_out;
    lose(std::exchange(overdue_, {}), status, events);
    return;
  }
  ends_at_ = SweepClock::TimePoint::max();
  switch (std::exchange(work_, Work::none)) {
    case Work::none:
    case Work::waiting:
      break;
    case Work::opening:
      finish_opening(spent_ms, events);
      break;
    case Work::preparing:
      finish_preparing(spent_ms, events);
      break;
    case Work::trial:
      finish_trial(spent_ms, events);
      break;
    case Work::finals:
      if (gives_up_) {
        end({card_.monitor().reason(), true, card_.monitor().remedy()}, events);
        break;
      }
      times_.finals_ms += spent_ms;
      failures_ = 0;
      events.emplace_back(FinalsDone{finals_->id, std::move(finals_result_)});
      finals_.reset();
      break;
  }
}

void SimulatedLab::finish_opening(double spent_ms, std::vector<MeasureEvent>& events) {
  if (!device_fault_.empty()) {
    lose(device_fault_, TrialStatus::crashed, events);
    return;
  }
  times_.opening_ms += spent_ms;
  waited_ms_ += 1000 * card_.monitor().waited_s();
}

void SimulatedLab::finish_preparing(double spent_ms, std::vector<MeasureEvent>& events) {
  const Problem prepared = std::move(to_prepare_.front());
  to_prepare_.pop_front();
  if (std::string reason = world_.refusal(prepared); !reason.empty()) {
    refuse(std::move(reason), events);
    return;
  }
  preparing_ = false;
  failures_ = 0;
  preparations_ = 0;
  times_.preparing_ms += spent_ms;
  events.emplace_back(ProblemPrepared{});
}

void SimulatedLab::finish_trial(double spent_ms, std::vector<MeasureEvent>& events) {
  if (gives_up_) {
    end({card_.monitor().reason(), true, card_.monitor().remedy()}, events);
    return;
  }
  TrialJob job = std::move(trials_.front());
  trials_.pop_front();
  times_.trials_ms += spent_ms;
  failures_ = 0;
  if (trial_result_) {
    events.emplace_back(TrialDone{job.id, std::move(*trial_result_)});
  } else {
    events.emplace_back(TrialCut{std::move(job)});
  }
  trial_result_.reset();
}

// The trial or finalist on the device, if there was one, is what ended the worker.
bool SimulatedLab::blame(Work lost, TrialStatus status, const std::string& how, std::vector<MeasureEvent>& events) {
  if (lost == Work::trial) {
    TrialDone done{trials_.front().id, std::move(trials_.front().blank)};
    done.trial.status = status;
    done.trial.reason = how;
    trials_.pop_front();
    events.emplace_back(std::move(done));
    return true;
  }
  if (lost == Work::finals) {
    auto& finalists = finals_->finalists;
    const auto found = finalists.begin() + static_cast<std::ptrdiff_t>(generator_() % finalists.size());
    FinalistFailed failed{std::move(found->first)};
    failed.trial.status = status;
    failed.trial.reason = how;
    finalists.erase(found);
    events.emplace_back(std::move(failed));
    if (finalists.empty()) {
      events.emplace_back(FinalsDone{finals_->id, std::nullopt});
      finals_.reset();
    }
    return true;
  }
  return false;
}

void SimulatedLab::lose(const std::string& how, TrialStatus status, std::vector<MeasureEvent>& events) {
  const Work lost = std::exchange(work_, Work::none);
  ends_at_ = SweepClock::TimePoint::max();
  card_.close(card_seconds(clock_.now()));
  overdue_.clear();
  trial_result_.reset();
  started_ = false;
  ++restarts_;
  if (blame(lost, status, how, events)) {
    events.emplace_back(WorkerRestarted{});  // the trial says why
  } else if (lost == Work::preparing && ++preparations_ >= kMaxPreparationsInVain) {
    refuse(how, events);
  } else if (++failures_ >= kMaxWorkerFailures) {
    end({how}, events);
  } else {
    start_at_ = clock_.now() + clock_seconds(kSecondsUntilRestart * failures_ * failures_);
    events.emplace_back(WorkerRestarted{how});
  }
}

void SimulatedLab::refuse(std::string reason, std::vector<MeasureEvent>& events) {
  preparing_ = false;
  problem_.reset();
  finals_.reset();
  events.emplace_back(ProblemRefused{std::move(reason)});
}

void SimulatedLab::end(MeasuringEnded ended, std::vector<MeasureEvent>& events) {
  interrupt();
  ended_ = true;
  events.emplace_back(std::move(ended));
}

void SimulatedLab::report_readings(std::vector<MeasureEvent>& events) {
  for (SimulatedCard::Reading& reading : card_.take_readings(card_seconds(clock_.now()))) {
    const auto age = clock_seconds(card_seconds(clock_.now()) - reading.at_s);
    const auto wall = clock_.wall() - std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
    reading.telemetry.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(wall.time_since_epoch()).count();
    events.emplace_back(std::move(reading.telemetry));
  }
}

void SimulatedLab::pump(std::vector<MeasureEvent>& events) {
  report_readings(events);
  while (!ended_ && work_ != Work::none && ends_at_ <= clock_.now()) {
    const SweepClock::TimePoint ended_at = ends_at_;
    finish(events);
    begin_next(ended_at);
  }
  if (const std::string how = std::exchange(loss_, {}); !how.empty() && !ended_ && started_) {
    lose(how, TrialStatus::crashed, events);
    begin_next(clock_.now());
  }
}

}  // namespace pascaline
