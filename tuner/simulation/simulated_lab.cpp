#include "tuner/simulation/simulated_lab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/measure/worker_deadline.hpp"
#include "tuner/simulation/simulated_clock.hpp"

namespace pascaline {
namespace {

constexpr int kMaxWorkerFailures = 3;
constexpr int kMaxPreparationsInVain = 2;
constexpr double kSecondsUntilRestart = 0.5;  // times the square of the failures in a row

double card_seconds(SweepClock::TimePoint at) {
  return std::chrono::duration<double>(at - SweepClock::TimePoint{}).count();
}

}  // namespace

SimulatedLab::SimulatedLab(MeasureClientOptions options, const SimulatedWorld& world, const SweepClock& clock)
    : options_(std::move(options)), world_(world), clock_(clock), bench_(options_, world), card_(bench_.card()) {}

void SimulatedLab::warm_up() {
  worker_.wanted = true;
  begin_next(clock_.now());
}

void SimulatedLab::set_problem(MeasureProblem problem) {
  preparation_.problem = std::move(problem);
  preparation_.open = true;
  preparation_.in_vain = 0;
  if (worker_.started) {
    preparation_.queue.push_back(preparation_.problem->problem);
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
  const std::size_t begun = work_.what == Work::trial ? 1 : 0;
  while (trials_.size() > begun) {
    back.push_back(std::move(trials_.back()));
    trials_.pop_back();
  }
  return back;
}

void SimulatedLab::interrupt() {
  work_.what = Work::none;
  work_.ends_at = SweepClock::TimePoint::max();
  card_.close(card_seconds(clock_.now()));
  work_.overdue.clear();
  finals_.reset();
  if (std::exchange(preparation_.open, false)) {
    preparation_.problem.reset();
  }
  worker_.started = false;
  worker_.wanted = false;
}

void SimulatedLab::stop_worker() {
  const std::string phase = work_.what == Work::opening     ? "start"
                            : work_.what == Work::preparing ? "inputs"
                            : work_.what == Work::trial     ? "measure"
                            : work_.what == Work::finals    ? "0"
                                                            : "";
  if (!phase.empty()) {
    const double limit_s = allowed_s(phase);
    work_.overdue = fmt::format("timed out after {:.3g} s in phase '{}'", limit_s, phase);
    work_.ends_at = clock_.now() + clock_seconds(limit_s);
  }
}

void SimulatedLab::lose_device(std::string how) {
  worker_.device_fault = how;
  worker_.loss = std::move(how);
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
  work_.what = work;
  work_.begun_at = at;
  work_.ends_at = std::isfinite(seconds) ? at + clock_seconds(seconds) : SweepClock::TimePoint::max();
}

// One thing after the other, as a worker reads its requests.
void SimulatedLab::begin_next(SweepClock::TimePoint at) {
  if (work_.what != Work::none || ended_ || (!busy() && (worker_.started || !worker_.wanted))) {
    return;
  }
  if (!worker_.started) {
    if (at < worker_.start_at) {
      begin(Work::waiting, at, std::chrono::duration<double>(worker_.start_at - at).count());
    } else {
      open(at);
    }
    return;
  }
  card_.idle_until(card_seconds(at));
  if (!preparation_.queue.empty()) {
    begin(Work::preparing, at, world_.prepare_s(preparation_.queue.front()));
    card_.advance(world_.prepare_s(preparation_.queue.front()));
  } else if (!trials_.empty()) {
    begin_trial(at);
  } else if (finals_) {
    begin_finals(at);
    card_.idle_until(card_seconds(work_.ends_at));
  }
}

// A new worker prepares the problem again.
void SimulatedLab::open(SweepClock::TimePoint at) {
  worker_.started = true;
  worker_.wanted = false;
  preparation_.open = preparation_.problem.has_value();
  preparation_.queue.clear();
  if (preparation_.problem) {
    preparation_.queue.push_back(preparation_.problem->problem);
  }
  card_.open(card_seconds(at));
  card_.monitor().set_end_s(card_seconds(at) + left_s(at));
  card_.advance(world_.open_s());
  if (worker_.device_fault.empty()) {
    std::ignore = card_.monitor().preheat();
  }
  begin(Work::opening, at, card_.now_s() - card_seconds(at));
}

double SimulatedLab::left_s(SweepClock::TimePoint at) const {
  const auto left_s = options_.deadline.left_s();  // as of now, which is not before `at`
  return left_s ? *left_s + clock_.seconds_since(at) : SimulatedWorld::kForever;
}

void SimulatedLab::begin_trial(SweepClock::TimePoint at) {
  const TrialJob& job = trials_.front();
  card_.monitor().set_end_s(card_seconds(at) + std::max(0.0, left_s(at) - job.leave_s));
  SimulatedBench::MeasuredTrial measured = bench_.measure_trial(job, allowed_s("launch"));
  waited_ms_ += measured.trial ? measured.trial->wait_ms : 0;
  work_.trial = std::move(measured.trial);
  work_.gives_up = measured.gave_up;
  work_.overdue = std::move(measured.overdue);
  begin(Work::trial, at, card_.now_s() - card_seconds(at));
}

void SimulatedLab::begin_finals(SweepClock::TimePoint at) {
  card_.monitor().set_end_s(card_seconds(at) +
                            std::min(left_s(at), finals_->allowed_s.value_or(SimulatedWorld::kForever)));
  work_.finals = bench_.hold_finals(*finals_);
  work_.gives_up = work_.finals && work_.finals->gave_up;
  begin(Work::finals, at, card_.now_s() - card_seconds(at));
}

void SimulatedLab::finish(std::vector<MeasureEvent>& events) {
  const double spent_ms = 1000 * std::chrono::duration<double>(work_.ends_at - work_.begun_at).count();
  if (!work_.overdue.empty()) {
    const TrialStatus status =
        work_.trial && work_.trial->status == TrialStatus::crashed ? TrialStatus::crashed : TrialStatus::timed_out;
    lose(std::exchange(work_.overdue, {}), status, events);
    return;
  }
  work_.ends_at = SweepClock::TimePoint::max();
  switch (std::exchange(work_.what, Work::none)) {
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
      if (work_.gives_up) {
        end({card_.monitor().reason(), true, card_.monitor().remedy()}, events);
        break;
      }
      times_.finals_ms += spent_ms;
      worker_.failures = 0;
      events.emplace_back(FinalsDone{finals_->id, std::move(work_.finals)});
      finals_.reset();
      break;
  }
}

void SimulatedLab::finish_opening(double spent_ms, std::vector<MeasureEvent>& events) {
  if (!worker_.device_fault.empty()) {
    lose(worker_.device_fault, TrialStatus::crashed, events);
    return;
  }
  times_.opening_ms += spent_ms;
  waited_ms_ += 1000 * card_.monitor().waited_s();
}

void SimulatedLab::finish_preparing(double spent_ms, std::vector<MeasureEvent>& events) {
  const Problem prepared = std::move(preparation_.queue.front());
  preparation_.queue.pop_front();
  if (std::string reason = world_.refusal(prepared); !reason.empty()) {
    refuse(std::move(reason), events);
    return;
  }
  preparation_.open = false;
  worker_.failures = 0;
  preparation_.in_vain = 0;
  times_.preparing_ms += spent_ms;
  events.emplace_back(ProblemPrepared{});
}

void SimulatedLab::finish_trial(double spent_ms, std::vector<MeasureEvent>& events) {
  if (work_.gives_up) {
    end({card_.monitor().reason(), true, card_.monitor().remedy()}, events);
    return;
  }
  TrialJob job = std::move(trials_.front());
  trials_.pop_front();
  times_.trials_ms += spent_ms;
  worker_.failures = 0;
  if (work_.trial) {
    events.emplace_back(TrialDone{job.id, std::move(*work_.trial)});
  } else {
    events.emplace_back(TrialCut{std::move(job)});
  }
  work_.trial.reset();
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
    const auto found = finalists.begin() + static_cast<std::ptrdiff_t>(bench_.draw(finalists.size()));
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
  const Work lost = std::exchange(work_.what, Work::none);
  work_.ends_at = SweepClock::TimePoint::max();
  card_.close(card_seconds(clock_.now()));
  work_.overdue.clear();
  work_.trial.reset();
  worker_.started = false;
  ++worker_.restarts;
  if (blame(lost, status, how, events)) {
    events.emplace_back(WorkerRestarted{});  // the trial says why
  } else if (lost == Work::preparing && ++preparation_.in_vain >= kMaxPreparationsInVain) {
    refuse(how, events);
  } else if (++worker_.failures >= kMaxWorkerFailures) {
    end({how}, events);
  } else {
    worker_.start_at = clock_.now() + clock_seconds(kSecondsUntilRestart * worker_.failures * worker_.failures);
    events.emplace_back(WorkerRestarted{how});
  }
}

void SimulatedLab::refuse(std::string reason, std::vector<MeasureEvent>& events) {
  preparation_.open = false;
  preparation_.problem.reset();
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
  while (!ended_ && work_.what != Work::none && work_.ends_at <= clock_.now()) {
    const SweepClock::TimePoint ended_at = work_.ends_at;
    finish(events);
    begin_next(ended_at);
  }
  if (const std::string how = std::exchange(worker_.loss, {}); !how.empty() && !ended_ && worker_.started) {
    lose(how, TrialStatus::crashed, events);
    begin_next(clock_.now());
  }
}

}  // namespace pascaline
