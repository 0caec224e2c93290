#include "tuner/sweep/device_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

// One on the device and one in the worker's hands, so that the device does not wait for the database.
constexpr std::size_t kTrialsAhead = 2;
constexpr int kMinTrialsOfSlice = 8;
constexpr double kShareOfPreheat = 0.2;  // of the time there is
constexpr double kAnswerSeconds = 0.3;   // from the worker's last launch to its decision in the database

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

LaneOptions lane_options(const SweepOptions& options, const DeviceInfo& device, const Deadline& deadline) {
  LaneOptions lane;
  lane.device = device.id;
  lane.target = options.target;
  lane.program = options.program.empty() ? "/proc/self/exe" : options.program;
  lane.sensors = options.sensors;
  lane.measure = options.measure;
  lane.governor = options.governor;
  lane.kernel_timeout_s = options.kernel_timeout_s;
  lane.patience = options.patience;
  lane.deadline = deadline;
  if (const auto left_s = deadline.left_s()) {
    lane.governor.preheat_limit_s = std::min(lane.governor.preheat_limit_s, kShareOfPreheat * *left_s);
  }
  // The host's clock is everybody's: what else runs on the machine is no reason to wait.
  lane.governor.passive = lane.governor.passive || (device.kind == DeviceKind::emulator && options.sensors.empty());
  return lane;
}

}  // namespace

DeviceScheduler::DeviceScheduler(DevicePlan& group, SweepRecorder& recorder, const SweepOptions& options,
                                 const DeviceInfo& device, std::int64_t session, const Deadline& deadline)
    : group_(group),
      recorder_(recorder),
      options_(options),
      lane_(lane_options(options, device, deadline)),
      session_(session) {
  view_.device = device.id;
  view_.name = device.name;
}

void DeviceScheduler::feed(bool closing, bool stopping, const std::optional<Slice>& slice) {
  if (lane_.ended()) {
    return;
  }
  if (stopping) {
    stop();
    return;
  }
  left_s_ = slice ? std::optional(slice->left_s) : std::nullopt;
  if (task_ == nullptr && !closing) {
    take_task(slice);
  }
  if (task_ == nullptr || stage_ == Stage::finals) {
    return;
  }
  if (stage_ == Stage::gathering) {
    send_finals();
    return;
  }
  if (lane_.starting() && !ran_) {  // that is no problem's share of the time
    slice_start_ = Clock::now();
  }
  const bool search_over = task_->search.spent() && task_->search.open() == 0;
  if (!search_over && !closing && !slice_over(slice)) {
    feed_trials(slice);
  } else if (lane_.trials_left() == 0) {
    if (!search_over && !closing && !ran_ && slice_trials() < kMinTrialsOfSlice) {
      put_off();
      return;
    }
    task_->looked_at = task_->looked_at || !closing;
    finals_shared_ = slice && !closing && slice->others_untried;
    begin_finals(search_over, !slice    ? std::nullopt
                              : closing ? std::optional(slice->left_s)
                                        : std::optional(slice->finals_s));
  }
}

// What is being measured is measured to its end, unless that could take long: the card is being waited for, or a
// problem's inputs are being made.
void DeviceScheduler::stop() {
  if (task_ == nullptr) {
    return;
  }
  const bool measuring = view_.governor.empty() || view_.governor == name_of(GovernorState::measuring);
  if (!measuring || (problem_set_ && !prepared_)) {
    lane_.interrupt();
    drop_finals();
  }
  take_back();
  if (quiet()) {
    release_task(false);
  }
}

void DeviceScheduler::drop_finals() {
  recorder_.persist([&](Store& store) {
    for (const Config& config : in_finals_) {
      store.end_attempt(session_, task_->context, config);
    }
  });
  in_finals_.clear();
  task_->decided_on.clear();
}

void DeviceScheduler::take_task(const std::optional<Slice>& slice) {
  task_ = group_.next_task(slice ? std::optional(slice->left_s) : std::nullopt);
  if (task_ == nullptr) {
    return;
  }
  stage_ = Stage::searching;
  problem_set_ = false;
  prepared_ = false;
  slice_start_ = Clock::now();
  done_at_start_ = task_->search.done();
  ran_ = false;
  if (recorder_.events().problem) {
    recorder_.events().problem(
        view_.device, task_->search.wanted(),
        static_cast<std::size_t>(task_->search.done()) + static_cast<std::size_t>(task_->search.reused()));
  }
}

// It took its share of the time and nothing ran: others that were not looked at come first.
void DeviceScheduler::put_off() {
  task_->put_off_s = std::chrono::duration<double>(Clock::now() - slice_start_).count();
  leave_preparing();
  lane_.warm_up();
  release_task(false);
}

// A worker cannot be told to leave off making inputs and references.
void DeviceScheduler::leave_preparing() {
  if (lane_.preparing()) {
    lane_.interrupt();
  }
}

void DeviceScheduler::release_task(bool over) {
  task_->over = task_->over || over;
  if (over && !task_->decided) {
    task_->decided = true;
    ++recorder_.summary().problems_done;
  }
  task_->owned = false;
  task_ = nullptr;
}

bool DeviceScheduler::slice_over(const std::optional<Slice>& slice) const {
  const double spent_s = std::chrono::duration<double>(Clock::now() - slice_start_).count();
  // Nothing gets many trials before all have had a few.
  return slice && ((slice_trials() >= kMinTrialsOfSlice && (slice->others_untried || spent_s > slice->wanted_s)) ||
                   ((slice_trials() > 0 || slice->others_untried) && spent_s > slice->longest_s));
}

// Finals for which there was too little time: with what is left when all problems were looked at there may be more.
void DeviceScheduler::release_for_later() {
  task_->decided_on.clear();
  release_task(over_after_finals_ && !finals_shared_);
}

// Of a file in which nothing compiles, the trials tell more than the reference kernel's failure would: it is a fault
// only once something is to be compared with it.
bool DeviceScheduler::set_problem() {
  if (problem_set_) {
    return prepared_;
  }
  if (task_->reference == SweepTask::Reference::unusable && (stage_ != Stage::searching || task_->search.ready() > 0)) {
    throw Error(task_->no_reference);
  }
  if (task_->reference == SweepTask::Reference::none || task_->reference == SweepTask::Reference::ready) {
    LaneProblem problem{&task_->search.bound().space(), task_->search.wanted().problem, std::nullopt, options_.seed};
    if (task_->reference == SweepTask::Reference::ready) {
      problem.reference = task_->reference_binary;
    }
    lane_.set_problem(std::move(problem));
    problem_set_ = true;
  }
  return false;
}

void DeviceScheduler::feed_trials(const std::optional<Slice>& slice) {
  if (!set_problem()) {
    return;
  }
  const double finals_s = left_s_ ? std::min(least_finals_s(), *left_s_ / 2) : 0;
  double leave_s = finals_s;
  if (slice && slice->others_untried) {  // theirs
    const double spent_s = std::chrono::duration<double>(Clock::now() - slice_start_).count();
    leave_s = std::max(leave_s, slice->left_s - std::max(0.0, slice->longest_s - spent_s));
  }
  // Close to the end none waits behind another: what is sent is measured before the finals begin.
  const bool close = left_s_ && *left_s_ < finals_s + 4 * trial_s();
  while (lane_.trials_left() < (close ? 1 : kTrialsAhead)) {
    auto candidate = task_->search.take_ready();
    if (!candidate) {
      return;
    }
    TrialJob job;
    job.id = next_job_++;
    job.blank = blank_trial(task_->search.bound(), candidate->config, candidate->binary);
    job.best_us = task_->search.best_us();
    job.leave_s = leave_s;
    recorder_.persist([&](Store& store) {
      store.begin_attempt(session_, task_->context, candidate->config, TrialStage::search, job.blank.is_default);
    });
    on_device_.emplace(job.id, OnDevice{candidate->config, candidate->run_key});
    job.binary = std::move(candidate->binary);
    lane_.submit(std::move(job));
  }
}

void DeviceScheduler::begin_finals(bool over_after, std::optional<double> allowed_s) {
  over_after_finals_ = over_after;
  finals_cut_ = false;
  finals_allowed_s_ = allowed_s;
  const std::string key = task_->search.finalists_key();
  if (key.empty() || key == task_->decided_on) {
    leave_preparing();
    release_task(over_after);
    return;
  }
  task_->decided_on = key;
  stage_ = Stage::gathering;
  group_.gather_finalists(*task_);
  send_finals();
}

void DeviceScheduler::send_finals() {
  if (task_->gathering || !set_problem()) {
    return;
  }
  FinalsJob job;
  job.id = next_job_++;
  job.options = options_.finals;
  job.best_us = task_->search.best_us();
  job.allowed_s = finals_allowed_s_;
  const std::optional<Config> baseline = task_->search.baseline();
  job.options.stand_in = baseline ? baseline->text() : "";
  std::size_t most = task_->search.finalist_configs().size();
  if (finals_allowed_s_) {
    const double allowed_s = std::min(*finals_allowed_s_, left_s_.value_or(*finals_allowed_s_)) - kAnswerSeconds;
    const FinalsNeed need = finals_need();
    const auto fit = fit_finals(need, allowed_s);
    if (!fit) {
      decide_without_finals();
      release_for_later();
      return;
    }
    finals_cut_ = fit->finalists < need.launch_s.size() || fit->rounds < std::min(need.rounds, need.fewest_wanted);
    job.allowed_s = allowed_s;
    job.options.rounds = fit->rounds;
    most = fit->finalists;
  }
  for (const Config& config : task_->search.finalist_configs()) {
    const auto binary = task_->finalists.find(config.text());
    const bool wanted = job.finalists.size() < most || config == baseline;
    if (wanted && binary != task_->finalists.end() && binary->second) {
      Trial blank = blank_trial(task_->search.bound(), config, *binary->second);
      blank.stage = TrialStage::finals;
      recorder_.persist([&](Store& store) {
        store.begin_attempt(session_, task_->context, config, TrialStage::finals, blank.is_default);
      });
      in_finals_.push_back(config);
      job.finalists.emplace_back(std::move(blank), std::move(*binary->second));
    }
  }
  task_->finalists.clear();
  if (job.finalists.empty()) {
    release_task(over_after_finals_);
    return;
  }
  stage_ = Stage::finals;
  lane_.submit(std::move(job));
}

// Trials that the worker has not begun go back to the search, as if they had never been asked for.
void DeviceScheduler::take_back() {
  for (TrialJob& job : lane_.take_back()) {
    const auto found = on_device_.find(job.id);
    recorder_.persist([&](Store& store) { store.end_attempt(session_, task_->context, found->second.config); });
    task_->search.put_back({found->second.config, std::move(job.binary), found->second.run_key});
    on_device_.erase(found);
  }
}

void DeviceScheduler::pump() {
  std::vector<LaneEvent> events;
  lane_.pump(events);
  for (const LaneEvent& event : events) {
    std::visit(
        Overloaded{[&](const TrialDone& done) { on_trial(done); }, [&](const TrialCut& cut) { on_cut(cut); },
                   [&](const FinalsDone& done) { on_finals(done); },
                   [&](const FinalistFailed& failed) { on_finalist_failed(failed); },
                   [&](const ProblemPrepared&) { prepared_ = true; },
                   [&](const ProblemRefused& refused) { on_refused(refused.reason); },
                   [&](const LaneTelemetry& telemetry) { on_telemetry(telemetry); },
                   [&](const LaneRestarted& restarted) {
                     ++recorder_.summary().restarts;
                     if (!restarted.reason.empty()) {
                       recorder_.note(fmt::format("{}: {}; its process is replaced", view_.device, restarted.reason));
                     }
                   },
                   [&](const LaneEnded& ended) { on_ended(ended); }},
        event);
  }
}

void DeviceScheduler::store_trial(SweepTask& task, const Trial& trial, const std::string& run_key) {
  const std::int64_t id =
      recorder_.persist([&](Store& store) { return store.add_trial(session_, task.context, trial); });
  SweepSummary& summary = recorder_.summary();
  ++summary.trials;
  summary.ok += trial.status == TrialStatus::ok ? 1 : 0;
  summary.duplicates += trial.shared_trial != 0 ? 1 : 0;
  summary.rejected += trial.status == TrialStatus::rejected ? 1 : 0;
  std::vector<ProblemSearch::ResolvedTrial> same = task.search.observe(trial, id, run_key);
  if (recorder_.events().trial) {
    recorder_.events().trial(trial, task.search.done(), options_.trials, task.search.best_us(),
                             task.search.default_us());
  }
  for (const ProblemSearch::ResolvedTrial& settled : same) {
    store_settled(task, settled);
  }
}

void DeviceScheduler::store_settled(SweepTask& task, const ProblemSearch::ResolvedTrial& settled) {
  store_trial(task, settled.trial, {});
}

std::vector<TelemetryRow> DeviceScheduler::take_telemetry() { return std::exchange(telemetry_, {}); }

}  // namespace pascaline
