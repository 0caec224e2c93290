#include "tuner/sweep/sweep_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/duration.hpp"
#include "core/util/stop_check.hpp"
#include "tuner/sweep/budget.hpp"
#include "tuner/sweep/phase_times.hpp"
#include "tuner/sweep/stop_text.hpp"

namespace pascaline {
namespace {

constexpr std::chrono::milliseconds kLongestWait{100};
constexpr std::chrono::milliseconds kViewEvery{200};
constexpr std::chrono::milliseconds kNoteEvery{1000};
constexpr double kShortestSliceSeconds = 2;
constexpr double kLongestSliceSeconds = 300;
constexpr double kSlicesEach = 8;
constexpr double kShareOfLook = 0.125;  // of the time that is left
constexpr double kSearchShare = 0.65;   // of a look, the rest is for its finals
// For a launch that is about to end, and what it told to be stored.
constexpr std::chrono::milliseconds kOvertime{1000};

// One line for each output that is hardly checked, whichever shapes it is of.
std::vector<std::string> weak_checks_of(const DevicePlan& plan) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> problems;  // by kernel and sentence
  for (const auto& task : plan.tasks()) {
    const Problem& problem = task->search.wanted().problem;
    for (const std::string& weak : task->reference.weak_checks) {
      problems[{problem.kernel, weak}].push_back(problem.text());
    }
  }
  std::vector<std::string> lines;
  for (const auto& [key, of] : problems) {
    const std::string others = of.size() == 1 ? "" : fmt::format(" and {}", counted(of.size() - 1, "other shape"));
    lines.push_back(fmt::format("{}{}: {}", of.front(), others, key.second));
  }
  return lines;
}

}  // namespace

SweepSummary SweepRun::run() {
  trials_at_start_ = summary_.trials;
  try {
    work();
    check_any_left();
    sum_up();
    tell(true);
    finish(summary_.interrupted ? "interrupted" : "finished");
  } catch (...) {
    end_failed();
    throw;
  }
  const bool nothing_ran = std::all_of(devices_.begin(), devices_.end(), [](const ScheduledDevice& scheduled) {
    const auto& end = scheduled.scheduler->end();
    return scheduled.scheduler->ended() && !(end && end->gave_up) && scheduled.scheduler->lab().times().total_ms() == 0;
  });
  if (nothing_ran && summary_.trials == trials_at_start_) {
    throw Error(summary_.end_reason);
  }
  return summary_;
}

void SweepRun::sum_up() {
  for (const ScheduledDevice& scheduled : devices_) {
    const WorkerTimes& times = scheduled.scheduler->lab().times();
    summary_.busy_s += times.total_ms() / 1000;
    summary_.opening_s += times.opening_ms / 1000;
    summary_.preparing_s += times.preparing_ms / 1000;
    summary_.finals_s += times.finals_ms / 1000;
    summary_.waited_s += scheduled.scheduler->lab().waited_ms() / 1000;
    summary_.paused_s += scheduled.polite != nullptr ? scheduled.polite->paused_s() : 0;
    if (const auto& end = scheduled.scheduler->end()) {
      summary_.gave_up = summary_.gave_up || end->gave_up;
      summary_.remedy = summary_.remedy.empty() ? end->remedy : summary_.remedy;
      summary_.end_reason +=
          fmt::format("{}{}: {}", summary_.end_reason.empty() ? "" : "; ", scheduled.scheduler->device(), end->reason);
    }
  }
  for (const auto& plan : plans_) {
    summary_.compile_s += plan->builds().compile_ms() / 1000;
  }
  recorder_.persist([&](Store& store) {
    summary_.trial_times = {};
    for (const TrialTimes& times : store.trial_times(summary_.run)) {
      summary_.trial_times += times;
    }
    static_cast<TrialCounts&>(summary_) = {};
    const std::map<std::int64_t, TrialCounts> counts = counts_by_session(store);
    for (const SessionRow& session : store.sessions()) {
      const auto known = counts.find(session.id);
      if (session.run_uuid == summary_.run && known != counts.end()) {
        summary_ += known->second;
      }
    }
  });
  summary_.not_reached = not_reached();
  for (const auto& plan : plans_) {
    summary_.problems_exhausted += static_cast<int>(std::ranges::count_if(
        plan->tasks(), [](const auto& task) { return task->search.little_left() && !task->search.wanted().between; }));
    for (const auto& task : plan->tasks()) {
      if (const std::string doubt = task->reference.agreement.doubt(task->tunable.own_space->reference);
          !doubt.empty()) {
        summary_.doubts.push_back(fmt::format("{}: {}", task->search.wanted().problem.text(), doubt));
      }
    }
    for (std::string& doubt : weak_checks_of(*plan)) {
      summary_.doubts.push_back(std::move(doubt));
    }
    PlanTimes times = plan_times(*plan, recorder_, static_cast<double>(spent_ms()) / 1000);
    summary_.problems_planned += static_cast<int>(plan->problems());
    summary_.problems_decided += times.decided;
    std::ranges::move(times.phases, std::back_inserter(summary_.phases));
    if (times.model) {
      summary_.models.push_back(std::move(*times.model));
    }
    if (has_time_limit(options_)) {
      const double missing_s = seconds_for(plan->agenda().first_looks(std::nullopt), devices_of(*plan));
      summary_.missing_s = std::max(summary_.missing_s.value_or(0), missing_s);
    }
  }
  summary_.wall_s = clock_.seconds_since(started_);
}

double SweepRun::devices_of(const DevicePlan& plan) const {
  return static_cast<double>(
      std::ranges::count_if(devices_, [&](const ScheduledDevice& scheduled) { return scheduled.plan == &plan; }));
}

// A kernel whose files are at fault costs its own problems; where there were no others, that is the sweep's fault.
void SweepRun::check_any_left() const {
  std::string fault;
  for (const auto& plan : plans_) {
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
  tell_what_nobody_tells();
  for (const ScheduledDevice& scheduled : devices_) {
    make_way(scheduled);
    if (!scheduled.plan->all_over() && !stop_ && (scheduled.polite == nullptr || scheduled.polite->reason().empty())) {
      scheduled.scheduler->warm_up();
    }
  }
  for (;;) {
    closing_ = closing() || (closing_ && !any_untried());  // a device that is done begins again only for these
    try {
      for (const auto& plan : plans_) {
        plan->fill_pool(closing_ || stop_ || deadline_.over() || all_paused());
      }
      take_compiled();
      feed();
    } catch (const StoppedError&) {
      continue;  // the next round ends the sweep for the same reason
    }
    report_stop();
    tell(false);
    if (done(closing_)) {
      break;
    }
    wait();
  }
  const bool all_over = std::all_of(plans_.begin(), plans_.end(), [](const auto& plan) { return plan->all_over(); });
  // A budget that is used up is the plan's end, too.
  summary_.interrupted = !all_over && (stop_ || !closing_);
}

// At once, whatever goes on; what is on a device may take a while, as a launch that hangs is waited for until its
// limit.
void SweepRun::report_stop() {
  if (!stop_ || reported_stop_) {
    return;
  }
  reported_stop_ = true;
  StopWait wait;
  for (const ScheduledDevice& scheduled : devices_) {
    if (scheduled.scheduler->quiet() || scheduled.scheduler->ended()) {
      continue;
    }
    const bool in_finals = scheduled.scheduler->view().stage.starts_with("finals");
    (in_finals ? wait.finals : wait.trials) += 1;
    const auto wakes_at = scheduled.scheduler->lab().wakes_at();
    if (wakes_at != SweepClock::TimePoint::max()) {
      wait.at_most_s = std::max(wait.at_most_s, std::chrono::duration<double>(wakes_at - clock_.now()).count());
    }
  }
  recorder_.note(stop_text(wait));
}

// Called while a search looks for a valid configuration: whoever looks on sees that time goes by.
void SweepRun::check_search() {
  tell(false);
  if (stop_ || deadline_.over()) {
    throw StoppedError("the search ends with the sweep");
  }
}

void SweepRun::feed() {
  if (!over_at_ && deadline_.over()) {
    over_at_ = clock_.now();
    closing_ = true;
  }
  for (const ScheduledDevice& scheduled : devices_) {
    make_way(scheduled);
    if (over_at_) {
      scheduled.scheduler->run_out(clock_.now() - *over_at_ >= kOvertime);
    } else {
      scheduled.scheduler->feed(closing_, stop_, slice(*scheduled.plan));
    }
    scheduled.scheduler->pump();
  }
}

// Leaves the device to who uses the machine, as long as somebody does.
void SweepRun::make_way(const ScheduledDevice& scheduled) {
  if (scheduled.polite == nullptr) {
    return;
  }
  const double now_s = clock_.seconds_since(started_);
  if (scheduled.polite->look(now_s)) {
    const std::string& reason = scheduled.polite->reason();
    recorder_.note(reason.empty() ? fmt::format("{}: resumed", scheduled.scheduler->device())
                                  : fmt::format("{}: paused: {}", scheduled.scheduler->device(), reason));
  }
  scheduled.scheduler->pause(scheduled.polite->reason());
}

bool SweepRun::all_paused() const {
  return std::all_of(devices_.begin(), devices_.end(), [](const ScheduledDevice& scheduled) {
    return scheduled.polite != nullptr && !scheduled.polite->reason().empty();
  });
}

// Once, for all devices: what politeness cannot heed here.
void SweepRun::tell_what_nobody_tells() {
  std::vector<std::string> all;
  for (const ScheduledDevice& scheduled : devices_) {
    for (const std::string& what : scheduled.polite ? scheduled.polite->not_told() : std::vector<std::string>()) {
      if (std::find(all.begin(), all.end(), what) == all.end()) {
        all.push_back(what);
      }
    }
  }
  if (!all.empty()) {
    recorder_.note(fmt::format("--polite: this machine does not tell {}: the sweep does not pause for that",
                               fmt::join(all, ", ")));
  }
}

// Time for nothing but finals of what is on the devices now.
bool SweepRun::closing() const {
  const auto left_s = deadline_.left_s();
  if (!left_s) {
    return false;
  }
  double reserve_s = 0;
  for (const ScheduledDevice& scheduled : devices_) {
    reserve_s = std::max(reserve_s, scheduled.scheduler->reserve_s(limit_s_.value_or(*left_s)));
  }
  return *left_s <= reserve_s;
}

bool SweepRun::any_untried() const {
  return std::ranges::any_of(plans_, [](const auto& plan) { return plan->any_fresh_waits(); });
}

bool SweepRun::done(bool closing) const {
  const bool quiet = std::all_of(devices_.begin(), devices_.end(), [](const ScheduledDevice& scheduled) {
    return scheduled.scheduler->idle() || scheduled.scheduler->ended();
  });
  const bool lost = std::all_of(devices_.begin(), devices_.end(),
                                [](const ScheduledDevice& scheduled) { return scheduled.scheduler->ended(); });
  // A model whose devices are all lost leaves its part of the plan undone.
  const bool nothing_left = std::all_of(plans_.begin(), plans_.end(), [&](const auto& plan) {
    return plan->all_over() || std::all_of(devices_.begin(), devices_.end(), [&](const ScheduledDevice& scheduled) {
             return scheduled.plan != plan.get() || scheduled.scheduler->ended();
           });
  });
  return lost || (quiet && (stop_ || nothing_left || (closing && (over_at_ || !any_untried()))));
}

void SweepRun::take_compiled() {
  for (const auto& plan : plans_) {
    for (const DevicePlan::Outcome& outcome : plan->take_compiled()) {
      recorder_.store_trial(*outcome.task, outcome.resolved.trial, {}, options_.trials);
    }
  }
}

// Until somebody says something, a deadline comes, or it is time to look at the clock.
void SweepRun::wait() {
  std::vector<pollfd> waits;
  const bool looking = std::any_of(plans_.begin(), plans_.end(), [](const auto& plan) { return plan->looking(); });
  SweepClock::TimePoint until = clock_.now() + (looking ? std::chrono::milliseconds(0) : kLongestWait);
  const auto add = [&](const auto& service) {
    const std::vector<pollfd> wakeups = service.wakeups();
    waits.insert(waits.end(), wakeups.begin(), wakeups.end());
    until = std::min(until, service.wakes_at());
  };
  for (const auto& plan : plans_) {
    add(plan->builds().builder());
  }
  for (const ScheduledDevice& scheduled : devices_) {
    add(scheduled.scheduler->lab());
  }
  clock_.wait_until(until, std::move(waits));
}

// With a time limit a problem keeps a device as long as it is expected to gain more than others would, but no longer
// than for a part of the time that is left, so that a guess does not cost too much.
std::optional<Slice> SweepRun::slice(const DevicePlan& plan) const {
  const auto left_s = deadline_.left_s();
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

// At the pace so far: of the searches without pauses and finals, and of finals by those that there were, or by what
// their windows take.
std::optional<double> SweepRun::eta_s() const {
  const auto budget_s = deadline_.left_s();
  const std::int64_t made = summary_.trials - trials_at_start_;
  if (options_.trials >= kUnlimitedTrials || made < 3) {
    return budget_s;
  }
  double aside_s = 0;
  double finals_s = 0;
  for (const ScheduledDevice& scheduled : devices_) {
    const double of_finals_s = scheduled.scheduler->lab().times().finals_ms / 1000;
    finals_s += of_finals_s;
    aside_s += of_finals_s + (scheduled.polite != nullptr ? scheduled.polite->paused_s() : 0);
  }
  const double devices = std::max(1.0, static_cast<double>(devices_.size()));
  const double elapsed_s = clock_.seconds_since(started_) - aside_s / devices;
  double left = 0;
  double undecided = 0;
  double decided = 0;
  for (const auto& plan : plans_) {
    for (const auto& task : plan->tasks()) {
      left += task->over() ? 0 : task->search.remaining();
      const bool in_finals = task->state.stage() == TaskStage::finals;
      undecided += !task->over() && (in_finals || task->finals.decided_on.empty()) ? 1 : 0;
      decided += task->finals.begun && !in_finals ? 1 : 0;
    }
  }
  const double each_s = finals_s > 0 ? finals_s / std::max(1.0, decided) : objective_windows_s(options_.finals);
  const double eta_s = left * std::max(0.0, elapsed_s) / static_cast<double>(made) + undecided * each_s / devices;
  if (!(eta_s > 0)) {  // of finals alone, of which nothing is known
    return budget_s;
  }
  return budget_s ? std::min(*budget_s, eta_s) : eta_s;
}

std::vector<std::string> SweepRun::not_reached() const {
  std::vector<std::string> names;
  for (const auto& plan : plans_) {
    for (const auto& task : plan->tasks()) {
      if (task->untried() && !task->search.wanted().between) {
        names.push_back(task->search.wanted().problem.text() +
                        (plans_.size() > 1 ? fmt::format(" on {}", plan->info().name) : ""));
      }
    }
  }
  return names;
}

SweepView SweepRun::view(bool last) const {
  SweepView view;
  for (const ScheduledDevice& scheduled : devices_) {
    DeviceProgress& device = view.devices.emplace_back(scheduled.scheduler->view());
    for (const ModelResult& model : summary_.models) {  // which there are at the end
      device.estimated_us = model.total.device == device.name ? model.estimated_us : device.estimated_us;
    }
  }
  static_cast<TrialCounts&>(view) = static_cast<const TrialCounts&>(summary_);
  for (const auto& plan : plans_) {
    view.compiling += plan->builds().builder().busy();
    view.compile_workers += plan->builds().builder().workers();
    view.problems += plan->problems();
    for (const auto& task : plan->tasks()) {
      if (task->result.provisional) {
        view.provisional.push_back(task->search.wanted().problem.text());
      }
      if (!task->look.no_time.empty()) {
        view.no_time.push_back(fmt::format("{}: {}", task->search.wanted().problem.text(), task->look.no_time));
      }
    }
  }
  std::vector<std::string> untried = not_reached();
  view.problems_untried = untried.size();
  if (last) {
    view.not_reached = std::move(untried);
  }
  view.problems_done = static_cast<std::size_t>(summary_.problems_done);
  view.elapsed_s = static_cast<double>(spent_ms()) / 1000;
  view.eta_s = eta_s();
  view.budget_left_s = deadline_.left_s();
  return view;
}

std::int64_t SweepRun::spent_ms() const {
  return earlier_spent_ms_ + std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - started_).count();
}

// Whoever looks on, here or from another terminal.
void SweepRun::tell(bool last) {
  const auto now = clock_.now();
  if (now - viewed_ < kViewEvery && !last) {
    return;
  }
  viewed_ = now;
  const SweepView view = this->view(last);
  if (events_.view) {
    events_.view(view);
  }
  if (now - noted_ < kNoteEvery && !last) {
    return;
  }
  noted_ = now;
  look_for_database();
  SweepView whole = view;
  whole.devices.clear();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::vector<TelemetryRow> readings = devices_[i].scheduler->take_telemetry();
    recorder_.persist([&](Store& store) {
      store.note_progress(devices_[i].scheduler->session(), spent_ms(), session_progress_text(view.devices[i], whole),
                          readings);
    });
  }
}

// A database that was deleted or replaced still takes what is written to it, and nobody will ever read that.
void SweepRun::look_for_database() {
  struct stat status {};
  const bool there = ::stat(options_.database.c_str(), &status) == 0;
  if (there && database_inode_ == 0) {
    database_inode_ = status.st_ino;
  }
  if (!there || status.st_ino != database_inode_) {
    throw StoreError(
        fmt::format("{}: it was deleted or replaced during the sweep; what was measured since then is lost",
                    options_.database.string()));
  }
}

void SweepRun::finish(const std::string& state) {
  for (const ScheduledDevice& scheduled : devices_) {
    recorder_.persist([&](Store& store) { store.end_session(scheduled.scheduler->session(), state); });
  }
}

// Called while another fault is on its way up: a database that fails now must not hide it.
void SweepRun::end_failed() noexcept {
  try {
    for (const ScheduledDevice& scheduled : devices_) {
      store_.end_session(scheduled.scheduler->session(), "failed");
    }
  } catch (const std::exception& error) {
    summary_.end_reason = error.what();  // stays "running" until a later sweep finds its process dead
  }
}

SweepSummary run_sweep(const std::vector<Space>& spaces, const std::vector<SweepProblem>& problems,
                       const SweepOptions& options, const SweepEvents& events, const std::atomic<bool>& stop,
                       const SweepServices& services) {
  require_sensors_of_objective(options);
  SweepRun run(spaces, problems, options, events, stop, services);
  return run.run();
}

}  // namespace pascaline
