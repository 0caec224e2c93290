#include "tuner/measure/measure_client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "tuner/ipc/messages.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

constexpr double kStartLimitSeconds = 180;    // the driver's start-up, with a cold disk
constexpr double kLoadLimitSeconds = 180;     // the driver translating PTX
constexpr double kInputsLimitSeconds = 1800;  // a float64 reference on a card with few float64 units
constexpr double kCheckLimitSeconds = 300;
constexpr double kGraceSeconds = 10;
constexpr double kMinLaunchLimitSeconds = 2;
constexpr double kLaunchFactor = 1000;  // a launch that takes that many times the best is of no interest
constexpr double kAbsenceSeconds = 2;

std::chrono::steady_clock::duration seconds(double value) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(value));
}

bool readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

json values_of(const Problem& problem) {
  json values = json::array();
  for (const auto& [name, value] : problem.dimensions) {
    values.push_back({name, std::to_string(value)});
  }
  for (const auto& [name, type] : problem.types) {
    values.push_back({name, name_of(type)});
  }
  return values;
}

}  // namespace

MeasureClient::MeasureClient(LaneOptions options) : options_(std::move(options)) {}

void MeasureClient::allow(double limit_s) {
  allowed_s_ = limit_s;
  deadline_ = Clock::now() + seconds(limit_s);
  paused_until_ = deadline_ + seconds(1.5 * options_.governor.pause_limit_s);
}

double MeasureClient::launch_limit_s(double best_us) const {
  if (!(best_us > 0)) {
    return options_.kernel_timeout_s;
  }
  return std::min(options_.kernel_timeout_s, std::max(kMinLaunchLimitSeconds, kLaunchFactor * best_us * 1e-6));
}

void MeasureClient::start() {
  worker_ = WorkerProcess({options_.program.string(), "measure-worker"});
  reader_ = FrameReader();
  outgoing_.clear();
  running_.reset();
  finalist_ = 0;
  phase_ = "start";
  ready_ = false;
  last_words_.clear();
  replace_worker_ = false;
  allow(options_.patience * kStartLimitSeconds);
  send({{"do", "setup"},
        {"device", options_.device},
        {"target", options_.target},
        {"measure", options_.measure},
        {"governor", options_.governor},
        {"sensors", options_.sensors.string()},
        {"ends_at_s", end_s(0)}});
  if (problem_) {
    preparing_ = true;
    send_problem();
  }
  for (const TrialJob& job : trials_) {
    send_trial(job);
  }
  if (finals_) {
    send_finals();
  }
}

void MeasureClient::send(const json& message) { outgoing_ += frame_of(message); }

// When the worker is to stop by itself, by the steady clock, which all processes share; null: never.
json MeasureClient::end_s(double leave_s, std::optional<double> allowed_s) const {
  const auto left_s = options_.deadline.left_s();
  if (!left_s && !allowed_s) {
    return nullptr;
  }
  double span_s = left_s ? std::max(0.0, *left_s - leave_s) : *allowed_s;
  span_s = allowed_s ? std::min(span_s, *allowed_s) : span_s;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count() + span_s;
}

void MeasureClient::send_problem() {
  send({{"do", "problem"},
        {"space", problem_->space->json},
        {"name", problem_->space->file},
        {"values", values_of(problem_->problem)},
        {"reference", problem_->reference ? json(*problem_->reference) : json(nullptr)},
        {"seed", problem_->seed}});
}

void MeasureClient::send_trial(const TrialJob& job) {
  send({{"do", "trial"},
        {"id", job.id},
        {"config", job.blank.config.json()},
        {"binary", job.binary},
        {"best_us", job.best_us},
        {"ends_at_s", end_s(job.leave_s)}});
}

void MeasureClient::send_finals() {
  json finalists = json::array();
  for (const auto& [blank, binary] : finals_->finalists) {
    finalists.push_back({{"config", blank.config.json()}, {"binary", binary}});
  }
  send({{"do", "finals"},
        {"id", finals_->id},
        {"finalists", finalists},
        {"options", finals_->options},
        {"ends_at_s", end_s(0, finals_->allowed_s)}});
}

void MeasureClient::warm_up() {
  if (!worker_ && !ended_) {
    start();
  }
}

void MeasureClient::set_problem(LaneProblem problem) {
  problem_ = std::move(problem);
  preparing_ = true;
  preparations_ = 0;
  if (worker_) {
    allow(options_.patience * kInputsLimitSeconds);
    send_problem();
  }
}

void MeasureClient::submit(TrialJob job) {
  if (worker_) {
    send_trial(job);
    if (deadline_ == Clock::time_point::max()) {
      allow(options_.patience * kLoadLimitSeconds);
    }
  }
  trials_.push_back(std::move(job));
}

void MeasureClient::submit(FinalsJob job) {
  finals_ = std::move(job);
  finalist_ = 0;
  if (worker_) {
    send_finals();
    if (deadline_ == Clock::time_point::max()) {
      allow(options_.patience * kLoadLimitSeconds);
    }
  }
}

std::vector<TrialJob> MeasureClient::take_back() {
  std::vector<TrialJob> back;
  while (!trials_.empty() && trials_.back().id != running_) {
    back.push_back(std::move(trials_.back()));
    trials_.pop_back();
  }
  replace_worker_ = replace_worker_ || !back.empty();  // it has them in its pipe
  replace_if_idle();
  return back;
}

void MeasureClient::interrupt() {
  worker_.end();
  worker_ = WorkerProcess();
  running_.reset();
  finals_.reset();
  preparing_ = false;
  deadline_ = Clock::time_point::max();
}

void MeasureClient::replace_if_idle() {
  if (replace_worker_ && !busy()) {
    worker_.end();
    worker_ = WorkerProcess();
    deadline_ = Clock::time_point::max();
    replace_worker_ = false;
  }
}

void MeasureClient::pump(std::vector<LaneEvent>& events) {
  if (ended_) {
    return;
  }
  if (!worker_) {
    if (!busy() || Clock::now() < start_at_) {
      return;
    }
    try {
      start();
    } catch (const Error& error) {  // of processes or descriptors there may be enough again soon
      if (!may_start_later(error)) {
        throw;
      }
      if (++failures_ >= kMaxFailures) {
        end(error.what(), false, events);
      }
      start_at_ = Clock::now() + seconds(failures_);
      return;
    }
  }
  forgive_absence();
  const bool reads = worker_.write_some(outgoing_);
  read_worker(events);
  if (worker_ && !ended_) {
    if (!reads && !readable(worker_.output())) {
      lose_worker(false, events);
    } else if (Clock::now() >= deadline_) {
      lose_worker(true, events);
    }
  }
}

// While this process was stopped or waited for a disk, so may the worker have been: that time counts for nobody.
void MeasureClient::forgive_absence() {
  const auto now = Clock::now();
  const auto absence = now - std::exchange(pumped_, now);
  if (absence > seconds(kAbsenceSeconds) && deadline_ != Clock::time_point::max()) {
    deadline_ += absence;
    paused_until_ += absence;
  }
}

void MeasureClient::read_worker(std::vector<LaneEvent>& events) {
  std::string bytes;
  while (worker_ && readable(worker_.output())) {
    bytes.clear();
    const bool open = worker_.read(bytes);
    reader_.append(bytes);
    try {
      while (const auto message = reader_.next()) {
        handle(*message, events);
        if (!worker_) {
          return;
        }
      }
    } catch (const std::exception& error) {
      last_words_ = fmt::format("the measurement worker sent an unreadable message ({})", error.what());
      lose_worker(false, events);
      return;
    }
    if (!open) {
      lose_worker(false, events);
      return;
    }
  }
}

void MeasureClient::handle(const json& message, std::vector<LaneEvent>& events) {
  const std::string what = message.at("is").get<std::string>();
  if (what == "phase") {
    enter_phase(message);
  } else if (what == "trial") {
    finish_trial(message, events);
  } else if (what == "finals") {
    finish_finals(message, events);
  } else if (what == "cut") {
    cut_trial(message, events);
  } else if (what == "telemetry") {
    hear_telemetry(message, events);
  } else if (what == "ready") {
    ready_ = true;
    running_.reset();
    busy_ms_ += message.at("busy_ms").get<double>();
    waited_ms_ += message.at("waited_ms").get<double>();
    phase_ = preparing_ ? "inputs" : "load";
    allow(options_.patience * (preparing_ ? kInputsLimitSeconds : kLoadLimitSeconds));
  } else if (what == "prepared") {
    preparing_ = false;
    failures_ = 0;
    preparations_ = 0;
    busy_ms_ += message.at("busy_ms").get<double>();
    allow(options_.patience * kLoadLimitSeconds);
    events.emplace_back(ProblemPrepared{});
  } else if (what == "refused") {
    refuse(message.at("reason").get<std::string>(), events);
  } else if (what == "gave_up") {
    end(message.at("reason").get<std::string>(), true, events);
  } else {
    last_words_ = message.at("reason").get<std::string>();  // lost or fault: the process ends now
  }
  if (!busy()) {
    deadline_ = Clock::time_point::max();
  }
}

void MeasureClient::enter_phase(const json& message) {
  running_ = message.at("id").get<std::uint64_t>();
  phase_ = message.at("phase").get<std::string>();
  const bool of_finals = finals_ && *running_ == finals_->id;
  const double best_us = of_finals ? finals_->best_us : trials_.empty() ? 0 : trials_.front().best_us;
  const double launch_s = launch_limit_s(best_us);
  if (phase_ == "preheat") {
    allow(options_.governor.preheat_limit_s + 60);
  } else if (phase_ == "load") {
    allow(options_.patience * kLoadLimitSeconds);
  } else if (phase_ == "inputs") {
    allow(options_.patience * kInputsLimitSeconds);
  } else if (phase_ == "launch") {
    allow(launch_s);
  } else if (phase_ == "check") {
    allow(options_.patience * kCheckLimitSeconds);
  } else if (phase_ == "measure") {
    allow(options_.patience * kGraceSeconds + 2 * options_.measure.budget_ms / 1000 + 5 * launch_s);
  } else {  // a finalist's turn
    finalist_ = std::stoul(phase_);
    allow(options_.patience * kGraceSeconds + 5 * launch_s);
  }
}

// While the governor waits, so does the deadline, but not for ever: the thread that reads the sensors goes on talking
// even if the other one hangs.
void MeasureClient::hear_telemetry(const json& message, std::vector<LaneEvent>& events) {
  LaneTelemetry telemetry;
  message.at("unix_ms").get_to(telemetry.unix_ms);
  message.at("sensors").get_to(telemetry.sensors);
  telemetry.state = static_cast<GovernorState>(message.at("state").get<int>());
  message.at("reason").get_to(telemetry.reason);
  if (!message.at("canary_us").is_null()) {
    telemetry.canary_us = message.at("canary_us").get<double>();
  }
  const bool waits = telemetry.state == GovernorState::settling || telemetry.state == GovernorState::cooling;
  if (waits && deadline_ != Clock::time_point::max()) {
    deadline_ = std::min(paused_until_, std::max(deadline_, Clock::now() + seconds(allowed_s_)));
  }
  events.emplace_back(std::move(telemetry));
}

// The job it was at is done.
void MeasureClient::note_answer(const json& message) {
  running_.reset();
  failures_ = 0;
  busy_ms_ += message.at("busy_ms").get<double>();
  waited_ms_ += message.at("waited_ms").get<double>();
}

void MeasureClient::expect_trial(const json& message) const {
  if (trials_.empty() || trials_.front().id != message.at("id").get<std::uint64_t>()) {
    throw Error("a trial that was not requested");
  }
}

void MeasureClient::cut_trial(const json& message, std::vector<LaneEvent>& events) {
  expect_trial(message);
  events.emplace_back(TrialCut{std::move(trials_.front())});
  trials_.pop_front();
  note_answer(message);
  allow(options_.patience * kLoadLimitSeconds);
  replace_if_idle();
}

void MeasureClient::finish_trial(const json& message, std::vector<LaneEvent>& events) {
  expect_trial(message);
  const auto id = message.at("id").get<std::uint64_t>();
  TrialDone done{id, message.at("trial").get<Trial>()};
  done.trial.problem = trials_.front().blank.problem;
  trials_.pop_front();
  note_answer(message);
  allow(options_.patience * kLoadLimitSeconds);
  events.emplace_back(std::move(done));
  replace_if_idle();
}

void MeasureClient::finish_finals(const json& message, std::vector<LaneEvent>& events) {
  FinalsDone done;
  done.id = finals_->id;
  if (!message.at("result").is_null()) {
    done.result = message.at("result").get<FinalsResult>();
    for (std::vector<Trial>* trials : {&done.result->trials, &done.result->failed}) {
      for (Trial& trial : *trials) {
        trial.problem = finals_->finalists.front().first.problem;
      }
    }
  }
  finals_.reset();
  note_answer(message);
  events.emplace_back(std::move(done));
}

}  // namespace pascaline
