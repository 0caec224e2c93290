#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tuner/sweep/device_scheduler.hpp"

// What a runner makes of what its lane tells.
namespace pascaline {

void DeviceScheduler::on_trial(const TrialDone& done) {
  const auto found = on_device_.find(done.id);
  const std::string run_key = std::move(found->second.run_key);
  on_device_.erase(found);
  ran_ = true;
  task_->looked_at = true;
  task_->spent_s += (done.trial.verify_ms + done.trial.measure_ms) / 1000;
  if (done.trial.status == TrialStatus::timed_out || done.trial.status == TrialStatus::crashed) {
    recorder_.note(fmt::format("{}: {}: {} ({}); its process is replaced", view_.device, name_of(done.trial.status),
                               done.trial.reason, done.trial.config.text()));
  }
  store_trial(*task_, done.trial, run_key);
}

// As if it had never been asked for.
void DeviceScheduler::on_cut(TrialCut cut) {
  const auto found = on_device_.find(cut.job.id);
  recorder_.persist([&](Store& store) { store.end_attempt(session_, task_->context, found->second.config); });
  task_->search.put_back({found->second.config, std::move(cut.job.binary), found->second.run_key});
  on_device_.erase(found);
}

void DeviceScheduler::on_finals(const FinalsDone& done) {
  recorder_.persist([&](Store& store) {
    for (const Config& config : in_finals_) {
      store.end_attempt(session_, task_->context, config);
    }
  });
  in_finals_.clear();
  if (done.result) {
    for (const Trial& failed : done.result->failed) {
      on_finalist_failed(FinalistFailed{failed});
    }
  }
  if (done.result && done.result->out_of_time) {
    decide_without_finals();
    release_for_later();
    return;
  }
  if (done.result) {
    std::int64_t winner = 0;
    for (std::size_t i = 0; i < done.result->trials.size(); ++i) {
      const Trial& trial = done.result->trials[i];
      const std::int64_t id =
          recorder_.persist([&](Store& store) { return store.add_trial(session_, task_->context, trial); });
      winner = i == done.result->winner ? id : winner;
    }
    announce(*done.result, winner);
    // What they were to be compared with fell out; another one takes its place.
    if (!done.result->baseline && task_->search.baseline()) {
      begin_finals(over_after_finals_, finals_allowed_s_);
      return;
    }
  }
  if (finals_cut_ && finals_shared_) {
    release_for_later();
  } else {
    release_task(over_after_finals_);
  }
}

void DeviceScheduler::announce(const FinalsResult& result, std::int64_t winner) {
  recorder_.persist(
      [&](Store& store) { store.set_winner(task_->context, winner, result.baseline, result.confidence); });
  if (!task_->decided) {
    task_->decided = true;
    ++recorder_.summary().problems_done;
  }
  if (recorder_.events().winner) {
    FinalsResult told = result;
    told.baseline_why = result.baseline ? task_->search.why_no_default() : "";
    recorder_.events().winner(view_.device, task_->search.wanted(), told, task_->search.done());
  }
}

void DeviceScheduler::on_finalist_failed(const FinalistFailed& failed) {
  recorder_.note(fmt::format("{}: a finalist fell out: {}: {} ({})", view_.device, name_of(failed.trial.status),
                             failed.trial.reason, failed.trial.config.text()));
  recorder_.persist([&](Store& store) { store.add_trial(session_, task_->context, failed.trial); });
  std::erase(in_finals_, failed.trial.config);
  task_->search.discard(failed.trial.config);
}

// What the device has no room for costs this problem, not the sweep.
void DeviceScheduler::on_refused(const std::string& reason) {
  recorder_.note(fmt::format("{} is left out: {}", task_->search.wanted().problem.text(), reason));
  take_back();
  drop_finals();
  task_->over = true;
  release_task(false);
}

void DeviceScheduler::on_telemetry(const LaneTelemetry& telemetry) {
  const Sensors& sensors = telemetry.sensors;
  view_.temperature_c = sensors.temperature_c;
  view_.sm_clock_mhz = sensors.sm_clock_mhz;
  view_.power_w = sensors.power_w;
  const std::string state(name_of(telemetry.state));
  const bool waits = telemetry.state == GovernorState::cooling || telemetry.state == GovernorState::settling;
  if (waits && view_.governor != state) {
    recorder_.note(fmt::format("{}: {}: {}", view_.device, state, telemetry.reason));
  }
  view_.governor = state;
  view_.governor_reason = telemetry.reason;
  TelemetryRow row;
  row.unix_ms = telemetry.unix_ms;
  row.temperature_c = sensors.temperature_c;
  row.sm_clock_mhz = sensors.sm_clock_mhz;
  row.memory_clock_mhz = sensors.memory_clock_mhz;
  row.power_w = sensors.power_w;
  if (sensors.throttle_reasons) {
    row.throttle_reasons = static_cast<std::int64_t>(*sensors.throttle_reasons);
  }
  row.governor_state = state;
  row.canary_us = telemetry.canary_us;
  telemetry_.push_back(std::move(row));
}

void DeviceScheduler::on_ended(const LaneEnded& ended) {
  ended_because_ = fmt::format("{}: {}", view_.device, ended.reason);
  gave_up_ = ended.gave_up;
  recorder_.note(fmt::format("{} is not used any more: {}", view_.device, ended.reason));
  if (task_ == nullptr) {
    return;
  }
  take_back();
  drop_finals();
  release_task(false);
}

LaneView DeviceScheduler::view() const {
  LaneView view = view_;
  if (task_ != nullptr) {
    const ProblemSearch& search = task_->search;
    view.problem = search.wanted().problem.text();
    view.label = search.wanted().label;
    view.problem_index = task_->index + 1;
    view.problem_count = group_.tasks().size();
    view.done = search.done();
    view.planned = options_.trials < kUnlimitedTrials ? search.done() + search.remaining() : 0;
    view.best_us = search.best_us();
    view.default_us = search.default_us();
  }
  view.stage = lane_.ended()                                         ? "lost"
               : task_ == nullptr                                    ? "idle"
               : lane_.worker_process() <= 0 && lane_.restarts() > 0 ? "restarting"
               : stage_ != Stage::searching                          ? "finals"
               : problem_set_ && !prepared_                          ? "starting"
               : lane_.trials_left() == 0                            ? "waiting for the compiler"
                                                                     : "search";
  return view;
}

}  // namespace pascaline
