#include "tuner/sweep/sweep_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/stop_check.hpp"
#include "tuner/sweep/report_plan.hpp"
#include "tuner/sweep/sum_up.hpp"
#include "tuner/sweep/sweep_begin.hpp"

namespace pascaline {
namespace {

constexpr std::chrono::milliseconds kLongestWait{100};
constexpr double kShortestSliceSeconds = 2;
constexpr double kLongestSliceSeconds = 300;
constexpr double kSlicesEach = 8;
constexpr double kShareOfLook = 0.125;  // of the time that is left
constexpr double kSearchShare = 0.65;   // of a look, the rest is for its finals
// For a launch that is about to end, and what it told to be stored.
constexpr std::chrono::milliseconds kOvertime{1000};

}  // namespace

SweepRun::SweepRun(SweepState& sweep) : sweep_(sweep), progress_(sweep) {
  for (const auto& plan : sweep_.plans) {
    plan->heed([this] { check_search(); });
  }
}

SweepSummary SweepRun::run() {
  try {
    work();
    for (const ScheduledDevice& scheduled : sweep_.devices) {
      scheduled.scheduler->decide_rest();
    }
    check_any_left();
    sum_up(sweep_);
    progress_.report(true);
    finish(sweep_.summary.interrupted ? "interrupted" : "finished");
  } catch (...) {
    end_failed();
    throw;
  }
  const bool nothing_ran = std::ranges::all_of(sweep_.devices, [](const ScheduledDevice& scheduled) {
    const auto& end = scheduled.scheduler->end();
    return scheduled.scheduler->ended() && !(end && end->gave_up) && scheduled.scheduler->lab().times().total_ms() == 0;
  });
  if (nothing_ran && progress_.trials_made() == 0) {
    throw Error(sweep_.summary.end.reason);
  }
  return sweep_.summary;
}

// A kernel whose files are at fault costs its own problems; where there were no others, that is the sweep's fault.
void SweepRun::check_any_left() const {
  std::string fault;
  for (const auto& plan : sweep_.plans) {
    for (const auto& task : plan->tasks()) {
      if (task->state.reserved()) {
        continue;
      }
      if (task->state.stage() != TaskStage::left_out || task->fault.empty()) {
        return;
      }
      fault = fault.empty() ? task->fault : fault;
    }
  }
  if (!fault.empty()) {
    throw Error(fault);
  }
}

void SweepRun::work() {
  report_missing_readings();
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    make_way(scheduled);
    if (!scheduled.plan->all_over() && !sweep_.stop &&
        (scheduled.polite == nullptr || scheduled.polite->reason().empty())) {
      scheduled.scheduler->warm_up();
    }
  }
  for (;;) {
    closing_ = closing() || (closing_ && !any_untried());  // a device that is done begins again only for these
    try {
      for (const auto& plan : sweep_.plans) {
        plan->fill_pool(closing_ || sweep_.stop || sweep_.time.deadline.over() || all_paused());
      }
      take_compiled();
      feed();
    } catch (const StoppedError&) {
      continue;  // the next round ends the sweep for the same reason
    }
    sweep_.report_stop();
    progress_.report(false);
    if (done(closing_)) {
      break;
    }
    wait();
  }
  const bool all_over = std::ranges::all_of(sweep_.plans, [](const auto& plan) { return plan->all_over(); });
  // A budget that is used up is the plan's end, too.
  sweep_.summary.interrupted = !all_over && (sweep_.stop || !closing_);
}

// Called while a search looks for a valid configuration: whoever looks on sees that time goes by.
void SweepRun::check_search() {
  progress_.report(false);
  if (sweep_.stop || sweep_.time.deadline.over()) {
    throw StoppedError("the search ends with the sweep");
  }
}

void SweepRun::feed() {
  if (!over_at_ && sweep_.time.deadline.over()) {
    over_at_ = sweep_.time.clock.now();
    closing_ = true;
  }
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    make_way(scheduled);
    if (over_at_) {
      scheduled.scheduler->run_out(sweep_.time.clock.now() - *over_at_ >= kOvertime);
    } else {
      scheduled.scheduler->feed(closing_, sweep_.stop, slice(*scheduled.plan));
    }
    scheduled.scheduler->pump();
  }
}

// Leaves the device to who uses the machine, as long as somebody does.
void SweepRun::make_way(const ScheduledDevice& scheduled) {
  if (scheduled.polite == nullptr) {
    return;
  }
  const double now_s = sweep_.time.here_s();
  if (scheduled.polite->look(now_s)) {
    const std::string& reason = scheduled.polite->reason();
    sweep_.recorder.note(reason.empty() ? fmt::format("{}: resumed", scheduled.scheduler->device())
                                        : fmt::format("{}: paused: {}", scheduled.scheduler->device(), reason));
  }
  scheduled.scheduler->pause(scheduled.polite->reason());
}

bool SweepRun::all_paused() const {
  return std::ranges::all_of(sweep_.devices, [](const ScheduledDevice& scheduled) {
    return scheduled.polite != nullptr && !scheduled.polite->reason().empty();
  });
}

// Reports, once for all devices, which readings of --polite this machine lacks.
void SweepRun::report_missing_readings() {
  std::vector<std::string> all;
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    for (const std::string& what : scheduled.polite ? scheduled.polite->not_told() : std::vector<std::string>()) {
      if (std::find(all.begin(), all.end(), what) == all.end()) {
        all.push_back(what);
      }
    }
  }
  if (!all.empty()) {
    sweep_.recorder.note(fmt::format("--polite: this machine does not report {}; the sweep does not pause for that",
                                     fmt::join(all, ", ")));
  }
}

// Time for nothing but finals of what is on the devices now.
bool SweepRun::closing() const {
  const auto left_s = sweep_.time.deadline.left_s();
  if (!left_s) {
    return false;
  }
  double reserve_s = 0;
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    reserve_s = std::max(reserve_s, scheduled.scheduler->reserve_s(sweep_.time.limit_s.value_or(*left_s)));
  }
  return *left_s <= reserve_s;
}

bool SweepRun::any_untried() const {
  return std::ranges::any_of(sweep_.plans, [](const auto& plan) { return plan->any_fresh_waits(); });
}

bool SweepRun::done(bool closing) const {
  const bool quiet = std::ranges::all_of(sweep_.devices, [](const ScheduledDevice& scheduled) {
    return scheduled.scheduler->idle() || scheduled.scheduler->ended();
  });
  const bool lost = std::ranges::all_of(sweep_.devices,
                                        [](const ScheduledDevice& scheduled) { return scheduled.scheduler->ended(); });
  // A model whose devices are all lost leaves its part of the plan undone.
  const bool nothing_left = std::ranges::all_of(sweep_.plans, [&](const auto& plan) {
    return plan->all_over() || std::ranges::all_of(sweep_.devices, [&](const ScheduledDevice& scheduled) {
             return scheduled.plan != plan.get() || scheduled.scheduler->ended();
           });
  });
  return lost || (quiet && (sweep_.stop || nothing_left || (closing && (over_at_ || !any_untried()))));
}

void SweepRun::take_compiled() {
  for (const auto& plan : sweep_.plans) {
    for (const DevicePlan::Outcome& outcome : plan->take_compiled()) {
      sweep_.recorder.store_trial(*outcome.task, outcome.resolved.trial, {}, sweep_.options.trials);
    }
  }
}

// Until somebody says something, a deadline comes, or it is time to look at the clock.
void SweepRun::wait() {
  std::vector<pollfd> waits;
  const bool more_to_propose =
      std::ranges::any_of(sweep_.plans, [](const auto& plan) { return plan->has_more_to_propose(); });
  SweepClock::TimePoint until =
      sweep_.time.clock.now() + (more_to_propose ? std::chrono::milliseconds(0) : kLongestWait);
  const auto add = [&](const auto& service) {
    const std::vector<pollfd> wakeups = service.wakeups();
    waits.insert(waits.end(), wakeups.begin(), wakeups.end());
    until = std::min(until, service.wakes_at());
  };
  for (const auto& plan : sweep_.plans) {
    add(plan->builds().builder());
  }
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    add(scheduled.scheduler->lab());
  }
  sweep_.time.clock.wait_until(until, std::move(waits));
}

// With a time limit a problem keeps a device as long as it is expected to gain more than others would, but no longer
// than for a part of the time that is left, so that a guess does not cost too much.
std::optional<Slice> SweepRun::slice(const DevicePlan& plan) const {
  const auto left_s = sweep_.time.deadline.left_s();
  if (!left_s) {
    return std::nullopt;
  }
  const double share_s = *left_s * kShareOfLook;
  Slice slice;
  slice.left_s = *left_s;
  slice.others_untried = plan.any_fresh_waits();
  slice.longest_s = slice.others_untried ? kSearchShare * share_s : std::numeric_limits<double>::infinity();
  slice.wanted_s = std::clamp(share_s / kSlicesEach, kShortestSliceSeconds, kLongestSliceSeconds);
  slice.finals_s = std::min(*left_s, (1 - kSearchShare) * share_s);
  return slice;
}

void SweepRun::finish(const std::string& state) {
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    sweep_.recorder.persist([&](Store& store) { store.end_session(scheduled.scheduler->session(), state); });
  }
}

// Called while another fault is on its way up: a database that fails now must not hide it.
void SweepRun::end_failed() noexcept {
  try {
    for (const ScheduledDevice& scheduled : sweep_.devices) {
      sweep_.store.end_session(scheduled.scheduler->session(), "failed");
    }
  } catch (const std::exception& error) {
    sweep_.summary.end.reason = error.what();  // stays "running" until a later sweep finds its process dead
  }
}

SweepSummary run_sweep(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems,
                       const SweepOptions& options, const SweepEvents& events, const std::atomic<bool>& stop,
                       const SweepServices& services) {
  require_sensors_of_objective(options);
  SweepState sweep(options, events, stop, services);
  begin_sweep(sweep, spaces, problems);
  report_plan(sweep);
  return SweepRun(sweep).run();
}

}  // namespace pascaline
