#include "tuner/sweep/device_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/util/counted.hpp"
#include "runtime/device/compilers.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

// One on the device and one in the worker's hands, so that the device does not wait for the database.
constexpr std::size_t kTrialsAhead = 2;
constexpr double kShareOfPreheat = 0.2;  // of the time there is
constexpr double kShareOfTrial = 0.1;
constexpr double kPatienceWithExpected = 2;
constexpr double kPreparationsOfTurn = 10;  // that its trials take at least as long as, if nothing else is better
// Times its share of the time, for which a site of a model may be made ready and its kernels compiled before it makes
// way for others.
constexpr double kPatienceWithSites = 3;

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

MeasureClientOptions client_options(const SweepOptions& options, const DeviceInfo& device, const Deadline& deadline) {
  MeasureClientOptions client;
  client.device = device.id;
  client.target = options.compile.target;
  client.kernels.database = options.database;
  client.kernels.kernels = options.files.kernels;
  client.kernels.spaces = options.files.spaces;
  client.kernels.cache = options.files.cache;
  client.kernels.nvrtc =
      asks_for_compilers(options.compile.nvrtc) ? "" : options.compile.nvrtc;  // each winner is built by its own
  client.program = options.files.program.empty() ? "/proc/self/exe" : options.files.program;
  client.sensors = options.files.sensors;
  client.measure = options.measure;
  client.governor = options.governor;
  client.kernel_timeout_s = options.waits.kernel_timeout_s;
  client.patience = options.waits.patience;
  client.deadline = deadline;
  if (const auto left_s = deadline.left_s()) {
    client.governor.preheat_limit_s = std::min(client.governor.preheat_limit_s, kShareOfPreheat * *left_s);
  }
  // The host's clock is everybody's: what else runs on the machine is no reason to wait.
  client.governor.passive =
      client.governor.passive || (device.kind == DeviceKind::emulator && options.files.sensors.empty());
  return client;
}

}  // namespace

DeviceScheduler::DeviceScheduler(DevicePlan& plan, SweepRecorder& recorder, const SweepOptions& options,
                                 const SweepServices& services, const DeviceInfo& device, std::int64_t session,
                                 const Deadline& deadline)
    : plan_(plan),
      recorder_(recorder),
      options_(options),
      clock_(*services.clock),
      lab_(services.lab(client_options(options, device, deadline))),
      session_(session),
      status_(device),
      finals_(plan, recorder, options, *lab_, status_) {}

void DeviceScheduler::feed(bool closing, bool stopping, const std::optional<Slice>& slice) {
  if (lab_->ended()) {
    return;
  }
  if (stopping) {
    stop();
    return;
  }
  left_s_ = slice ? std::optional(slice->left_s) : std::nullopt;
  if (!pause_.reason.empty()) {
    take_back();
    return;
  }
  if (task_ == nullptr && !closing) {
    take_task();
  }
  if (task_ == nullptr || task_->state.stage() == TaskStage::finals) {
    return;
  }
  if (!task_->fault.empty()) {
    leave_out(task_->fault);
    return;
  }
  if (task_->state.stage() == TaskStage::gathering) {
    end_turn(std::nullopt);
    return;
  }
  if (lab_->starting() && !turn_.ran) {  // that is no problem's share of the time
    turn_.start = clock_.now();
  }
  const bool search_over = only_compares(task_->deepening.what) || task_->search_over();
  if (!search_over && !closing && !turn_over(slice)) {
    feed_trials(slice);
  } else if (lab_->trials_left() == 0) {
    end_search(search_over, closing, slice);
  }
}

void DeviceScheduler::pause(const std::string& reason) {
  const SweepClock::TimePoint now = clock_.now();
  if (!pause_.reason.empty()) {
    turn_.start += now - pause_.looked_at;
  }
  pause_.looked_at = now;
  pause_.reason = reason;
}

// The turn's trials are over: finals follow, unless nothing was tried and others wait for their first look.
void DeviceScheduler::end_search(bool search_over, bool closing, const std::optional<Slice>& slice) {
  if (!search_over && !closing && !turn_.ran && turn_trials() < kTrialsOfAction) {
    put_off();
    return;
  }
  task_->look.had = task_->look.had || !closing;
  const bool shared = slice && !closing && slice->others_untried;
  std::optional<double> finals_s;
  if (slice && closing) {
    finals_s = slice->left_s;
  } else if (slice && task_->deepening.what == Deepening::finals) {
    // What is held again was shared out already, and ends by its rounds.
    finals_s = std::max(slice->finals_s, slice->left_s / 2);
  } else if (slice) {
    finals_s = finals_.budget().wanted_s(*task_, slice->finals_s, slice->left_s,
                                         !shared && finals_.decider().by_objective().lacks(*task_));
    if (search_over && !shared) {  // no later turn has more time
      const double least_s = finals_.budget().min_s(*task_) + FinalsBudget::kAnswerSeconds;
      finals_s = std::max(*finals_s, std::min(slice->left_s, least_s));
    }
  }
  const auto end = finals_.begin(*task_, search_over, shared, finals_s);
  if (end) {
    leave_preparing();
  }
  end_turn(end);
}

void DeviceScheduler::end_turn(std::optional<FinalsTurn::End> end) {
  if (end) {
    release_task(end->over);
  } else if (task_->state.stage() == TaskStage::gathering && !task_->finals.misses_binaries() && set_problem()) {
    end_turn(finals_.send(*task_, left_s_));
  }
}

// What is being measured is measured to its end, unless that could take long: the card is being waited for, or a
// problem's inputs are being made.
void DeviceScheduler::stop() {
  if (task_ == nullptr) {
    return;
  }
  if (!status_.measuring() || turn_.preparation == Preparation::sent) {
    lab_->interrupt();
    finals_.drop(*task_);
  }
  take_back();
  if (quiet()) {
    finals_.decider().decide_without_finals(*task_);
    release_task(false);
  }
}

void DeviceScheduler::take_task() {
  task_ = plan_.next_task(left_s_);
  if (task_ == nullptr) {
    return;
  }
  task_->rows.session = session_;
  task_->look.finals_put_off = false;
  turn_ = {
      clock_.now(),     task_->search.done(), false, task_->search.little_left(), plan_.agenda().expected_s(*task_),
      Preparation::none};
  if (recorder_.events().problem) {
    recorder_.events().problem(
        status_.device(), task_->search.wanted(),
        static_cast<std::size_t>(task_->search.done()) + static_cast<std::size_t>(task_->search.reused().all));
  }
  report_deepening();
}

void DeviceScheduler::report_deepening() const {
  DeepeningCounts& counts = recorder_.summary().deepening;
  const SweepTask& task = *task_;
  const std::string expected = expected_text(task.deepening.expected_share);
  const auto report = [&](const std::string& what) {
    recorder_.note(fmt::format("{}: time left: {}", status_.device(), what));
  };
  switch (task.deepening.what) {
    case Deepening::none:
      return;
    case Deepening::comparison:
      report("compared again, as kernels that it launches have other winners");
      return;
    case Deepening::finals:
      report(fmt::format("finals again, with up to {} rounds: {} near the winner, {}",
                         options_.finals.rounds * rounds_factor(task.finals.again),
                         counted(task.finals.open.close, "finalist"), expected));
      return;
    case Deepening::neighbours:
      report(fmt::format("{} near the winners, not tried yet: {} by each",
                         counted(task.deepening.trying, "configuration"), expected));
      return;
    case Deepening::between:
      ++counts.shapes;
      report(fmt::format("a shape {}: {} than with the winner of the nearest",
                         task.search.wanted().label.empty() ? "in between" : task.search.wanted().label, expected));
      return;
  }
}

void DeviceScheduler::end_deepening() {
  DeepeningCounts& counts = recorder_.summary().deepening;
  SweepTask& task = *task_;
  counts.spent_s += task.deepening.what == Deepening::none ? 0 : turn_s();
  if (task.deepening.what == Deepening::neighbours) {
    const int tried = turn_trials();
    counts.neighbours += tried;
    task.deepening.near_winner.tried += tried;
    task.deepening.near_winner.none_left = task.deepening.near_winner.none_left || tried == 0;
    if (task.search.best_us() < task.deepening.best_before_us) {
      ++counts.neighbours_faster;
      task.deepening.near_winner.gained += 1 - task.search.best_us() / task.deepening.best_before_us;
    }
    task.search.search_on();
  }
  task.deepening.what = Deepening::none;
}

// It took its share of the time and nothing ran: others that were not looked at come first.
void DeviceScheduler::put_off() {
  task_->look.put_off(turn_s());
  recorder_.note(fmt::format("{}: {}: {}, its share of the time; others come first, and it again after them",
                             status_.device(), task_->search.wanted().problem.text(), task_->look.no_time));
  leave_preparing();
  lab_->warm_up();
  release_task(false);
}

// A worker cannot be told to leave off making inputs and references.
void DeviceScheduler::leave_preparing() {
  if (lab_->preparing()) {
    lab_->interrupt();
  }
}

void DeviceScheduler::release_task(bool over) {
  if ((turn_.ran || task_->finals.begun) && task_->costs.first_look_s == 0) {
    task_->costs.first_look_s = turn_s();
  }
  if (over) {
    recorder_.count_decided(*task_);
  }
  end_deepening();
  task_->costs.done = task_->search.done();
  if (over && !plan_.agenda().keeps(*task_)) {
    task_->state.finish();
  } else {
    task_->state.release();
  }
  task_ = nullptr;
}

// What cannot be tuned here costs this problem, not the sweep.
void DeviceScheduler::leave_out(const std::string& reason) {
  const std::string problem = task_->search.wanted().problem.text();
  recorder_.note(fmt::format("{} is left out: {}", problem, reason));
  recorder_.summary().problems.left_out.push_back(fmt::format("{}: {}", problem, reason));
  take_back();
  finals_.drop(*task_);
  task_->state.leave_out(reason);
  task_ = nullptr;
}

// The expectation may be off by a factor.
double DeviceScheduler::longest_turn_s(const Slice& slice) const {
  return std::max(slice.longest_s, std::min(kPatienceWithExpected * turn_.expected_s, slice.left_s / 2));
}

bool DeviceScheduler::turn_over(const std::optional<Slice>& slice) const {
  if (slice && task_->search.little_left() && !turn_.had_little_left) {
    return true;
  }
  if (!slice) {
    return false;
  }
  if (task_->lacks_alternatives()) {  // until all were tried what there is of them is worth nothing
    return slice->others_untried && !turn_.ran && turn_s() > kPatienceWithSites * longest_turn_s(*slice);
  }
  // Nothing gets many trials before all have had a few.
  return (turn_trials() >= kTrialsOfAction &&
          (turn_s() > std::max(slice->wanted_s, kPreparationsOfTurn * task_->costs.preparation_s.value_or(0)) ||
           plan_.agenda().prefers_another(*task_, left_s_))) ||
         ((turn_trials() > 0 || slice->others_untried) && turn_s() > longest_turn_s(*slice));
}

double DeviceScheduler::trial_s() const {
  return task_->search.done() > 0 ? task_->costs.spent_s / task_->search.done() : 0;
}

double DeviceScheduler::reserve_s(double limit_s) const {
  const double finals_s = task_ != nullptr ? finals_.budget().reserve_s(*task_, limit_s) : 0;
  return finals_s > 0 ? finals_s + std::min(trial_s(), kShareOfTrial * limit_s) : 0;
}

// Of a file in which nothing compiles, the trials tell more than the reference kernel's failure would: it is a fault
// only once something is to be compared with it.
bool DeviceScheduler::set_problem() {
  if (turn_.preparation != Preparation::none) {
    return turn_.preparation == Preparation::ready;
  }
  const TaskReference& reference = task_->reference;
  if (reference.stage == TaskReference::Stage::unusable &&
      (task_->state.stage() != TaskStage::searching || task_->search.ready() > 0)) {
    task_->fault = reference.why_unusable;
    leave_out(task_->fault);
    return false;
  }
  if (reference.stage == TaskReference::Stage::none || reference.stage == TaskReference::Stage::ready) {
    MeasureProblem problem{&task_->search.bound().space(), task_->search.wanted().problem, std::nullopt,
                           options_.search.seed};
    problem.given = task_->search.wanted().given;
    if (reference.stage == TaskReference::Stage::ready) {
      problem.reference = reference.run;
      tell_other_reference();
    }
    lab_->set_problem(std::move(problem));
    turn_.preparation = Preparation::sent;
  }
  return false;
}

void DeviceScheduler::tell_other_reference() const {
  TaskReference& reference = task_->reference;
  if (!reference.failed.empty() && !std::exchange(reference.told, true)) {
    recorder_.note(fmt::format("{}: {}; results are compared with those of {} instead",
                               task_->search.wanted().problem.text(), reference.why_unusable,
                               reference.run.config.text()));
  }
}

void DeviceScheduler::feed_trials(const std::optional<Slice>& slice) {
  if (!set_problem()) {
    return;
  }
  const double finals_s = left_s_ ? std::min(finals_.budget().min_s(*task_), *left_s_ / 2) : 0;
  double leave_s = finals_s;
  if (slice && slice->others_untried && !task_->tunable.compares_all()) {  // theirs
    leave_s = std::max(leave_s, slice->left_s - std::max(0.0, longest_turn_s(*slice) - turn_s()));
  }
  // Close to the end none waits behind another: what is sent is measured before the finals begin.
  const bool close = left_s_ && *left_s_ < finals_s + 4 * trial_s();
  while (lab_->trials_left() < (close ? 1 : kTrialsAhead)) {
    const Candidate* candidate = task_->search.take_ready();
    if (candidate == nullptr) {
      return;
    }
    TrialJob job;
    job.id = sent_.next++;
    job.blank = blank_trial(task_->search.bound(), candidate->config, *candidate->binary);
    job.best_us = task_->search.best_us();
    job.leave_s = leave_s;
    recorder_.begin_attempt(*task_, candidate->config, TrialStage::search);
    sent_.configs.emplace(job.id, candidate->config);
    job.binary = *candidate->binary;
    lab_->submit(std::move(job));
  }
}

// Trials that the worker has not begun go back to the search, as if they had never been asked for.
void DeviceScheduler::take_back() {
  for (TrialJob& job : lab_->take_back()) {
    on_cut(TrialCut{std::move(job)});
  }
}

void DeviceScheduler::run_out(bool at_once) {
  if (task_ == nullptr || lab_->ended()) {
    return;
  }
  if (at_once || !status_.measuring() || lab_->preparing()) {
    lab_->interrupt();
  }
  take_back();
  if (!quiet()) {
    return;
  }
  finals_.drop(*task_);
  finals_.decider().decide_without_finals(*task_);
  release_task(false);
}

void DeviceScheduler::decide_rest() {
  for (const auto& task : plan_.tasks()) {
    if (task->state.stage() == TaskStage::waiting && !task->result.decided) {
      task->rows.session = session_;
      finals_.decider().decide_without_finals(*task);
    }
  }
}

void DeviceScheduler::pump() {
  std::vector<MeasureEvent> events;
  lab_->pump(events);
  for (const MeasureEvent& event : events) {
    std::visit(Overloaded{[&](const TrialDone& done) { on_trial(done); }, [&](const TrialCut& cut) { on_cut(cut); },
                          [&](const FinalsDone& done) { end_turn(finals_.take(*task_, done)); },
                          [&](const FinalistFailed& failed) { finals_.take_failed(*task_, failed); },
                          [&](const ProblemPrepared& prepared) {
                            turn_.preparation = Preparation::ready;
                            task_->costs.preparation_s = turn_s();
                            task_->reference.weak_checks = prepared.weak_checks;
                          },
                          [&](const ProblemRefused& refused) { leave_out(refused.reason); },
                          [&](const MeasureTelemetry& telemetry) {
                            if (const std::string line = status_.hear(telemetry); !line.empty()) {
                              recorder_.note(line);
                            }
                          },
                          [&](const WorkerRestarted& restarted) { on_restarted(restarted); },
                          [&](const MeasuringEnded& ended) { on_ended(ended); }},
               event);
  }
}

void DeviceScheduler::on_trial(const TrialDone& done) {
  sent_.configs.erase(done.id);
  turn_.ran = true;
  task_->look.note_run();
  task_->costs.add(done.trial);
  if (done.trial.status == TrialStatus::timed_out || done.trial.status == TrialStatus::crashed) {
    recorder_.note(fmt::format("{}: {}: {} ({}); its process is replaced", status_.device(), name_of(done.trial.status),
                               done.trial.reason, done.trial.config.text()));
  }
  recorder_.store_trial(*task_, done.trial, done.agrees_with, options_.trials);
}

// As if it had never been asked for.
void DeviceScheduler::on_cut(const TrialCut& cut) {
  const auto found = sent_.configs.find(cut.job.id);
  recorder_.end_attempt(*task_, found->second);
  task_->search.put_back(found->second);
  sent_.configs.erase(found);
}

void DeviceScheduler::on_restarted(const WorkerRestarted& restarted) {
  ++recorder_.summary().restarts;
  if (!restarted.reason.empty()) {
    recorder_.note(fmt::format("{}: {}; its process is replaced", status_.device(), restarted.reason));
  }
}

void DeviceScheduler::on_ended(const MeasuringEnded& ended) {
  end_ = ended;
  recorder_.note(fmt::format("{} is no longer used: {}", status_.device(), ended.reason));
  if (task_ == nullptr) {
    return;
  }
  take_back();
  finals_.drop(*task_);
  release_task(false);
}

DeviceProgress DeviceScheduler::view() const {
  DeviceProgress view = status_.view(task_, plan_.problems(), options_.trials < kUnlimitedTrials);
  view.pause_reason = lab_->ended() ? "" : pause_.reason;
  view.stage = lab_->ended()                                    ? "lost"
               : !pause_.reason.empty() && quiet()              ? "paused"
               : task_ == nullptr                               ? "idle"
               : lab_->restarting()                             ? "restarting"
               : task_->deepening.what == Deepening::finals     ? "finals again"
               : task_->state.stage() != TaskStage::searching   ? "finals"
               : turn_.preparation == Preparation::sent         ? "starting"
               : lab_->trials_left() == 0                       ? "waiting for the compiler"
               : task_->deepening.what == Deepening::neighbours ? "neighbours"
                                                                : "search";
  return view;
}

}  // namespace pascaline
