#include "tuner/measure/measure_client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "tuner/measure/measure_messages.hpp"
#include "tuner/measure/measure_requests.hpp"

namespace pascaline {
namespace {

constexpr int kMaxPreparations = 2;

bool readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

using nlohmann::json;

}  // namespace

MeasureClient::MeasureClient(MeasureClientOptions options) : options_(std::move(options)), deadline_(options_) {}

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
  deadline_.allow_start();
  send(setup_request(options_, end_s(0)));
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

void MeasureClient::send(const nlohmann::json& message) { outgoing_ += frame_of(message); }

void MeasureClient::send_problem() { send(problem_request(*problem_)); }

void MeasureClient::send_trial(const TrialJob& job) { send(trial_request(job, end_s(job.leave_s))); }

void MeasureClient::send_finals() { send(finals_request(*finals_, end_s(0, finals_->allowed_s))); }

// When the worker is to stop by itself.
std::optional<double> MeasureClient::end_s(double leave_s, std::optional<double> allowed_s) const {
  const auto left_s = options_.deadline.left_s();
  if (!left_s && !allowed_s) {
    return std::nullopt;
  }
  double span_s = left_s ? std::max(0.0, *left_s - leave_s) : *allowed_s;
  span_s = allowed_s ? std::min(span_s, *allowed_s) : span_s;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count() + span_s;
}

void MeasureClient::warm_up() {
  if (!worker_ && !ended_) {
    start();
  }
}

std::vector<pollfd> MeasureClient::wakeups() const {
  if (!worker_) {
    return {};
  }
  std::vector<pollfd> descriptors{{worker_.output(), POLLIN, 0}};
  if (!outgoing_.empty()) {
    descriptors.push_back({worker_.input(), POLLOUT, 0});
  }
  return descriptors;
}

void MeasureClient::set_problem(MeasureProblem problem) {
  problem_ = std::move(problem);
  preparing_ = true;
  preparations_ = 0;
  if (worker_) {
    deadline_.allow_inputs();
    send_problem();
  }
}

void MeasureClient::submit(TrialJob job) {
  if (worker_) {
    send_trial(job);
    if (!deadline_.running()) {
      deadline_.allow_load();
    }
  }
  trials_.push_back(std::move(job));
}

void MeasureClient::submit(FinalsJob job) {
  finals_ = std::move(job);
  finalist_ = 0;
  if (worker_) {
    send_finals();
    if (!deadline_.running()) {
      deadline_.allow_load();
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
  if (std::exchange(preparing_, false)) {
    problem_.reset();  // the next worker would begin with it again
  }
  deadline_.clear();
}

void MeasureClient::replace_if_idle() {
  if (replace_worker_ && !busy()) {
    worker_.end();
    worker_ = WorkerProcess();
    deadline_.clear();
    replace_worker_ = false;
  }
}

void MeasureClient::pump(std::vector<MeasureEvent>& events) {
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
        end({error.what()}, events);
      }
      start_at_ = Clock::now() + std::chrono::seconds(failures_);
      return;
    }
  }
  deadline_.forgive_absence();
  const bool reads = worker_.write_some(outgoing_);
  read_worker(events);
  if (worker_ && !ended_) {
    if (!reads && !readable(worker_.output())) {
      lose_worker(false, events);
    } else if (deadline_.passed()) {
      lose_worker(true, events);
    }
  }
}

void MeasureClient::read_worker(std::vector<MeasureEvent>& events) {
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

// The trial or finalist on the device, if there was one, is what ended the worker.
bool MeasureClient::blame(TrialStatus status, const std::string& reason, std::vector<MeasureEvent>& events) {
  if (!running_ || phase_ == "preheat") {
    return false;
  }
  if (!trials_.empty() && trials_.front().id == *running_) {
    TrialDone done{*running_, std::move(trials_.front().blank)};
    done.trial.status = status;
    done.trial.reason = reason;
    trials_.pop_front();
    events.emplace_back(std::move(done));
    return true;
  }
  if (finals_ && finals_->id == *running_) {
    auto& finalists = finals_->finalists;
    const std::size_t index = std::min(finalist_, finalists.size() - 1);
    FinalistFailed failed{std::move(finalists[index].first)};
    failed.trial.status = status;
    failed.trial.reason = reason;
    finalists.erase(finalists.begin() + static_cast<std::ptrdiff_t>(index));
    events.emplace_back(std::move(failed));
    if (finalists.empty()) {
      events.emplace_back(FinalsDone{finals_->id, std::nullopt});
      finals_.reset();
    }
    return true;
  }
  return false;
}

// The worker is gone, or is to go: finds out what that costs, and has another one started for the rest.
void MeasureClient::lose_worker(bool overdue, std::vector<MeasureEvent>& events) {
  const int status = worker_.end();
  worker_ = WorkerProcess();
  deadline_.clear();
  const std::string how = overdue ? fmt::format("timed out after {:.3g} s in phase '{}'", deadline_.allowed_s(), phase_)
                          : last_words_.empty() ? "the measuring process ended: " + ending_of(status)
                                                : last_words_;
  ++restarts_;
  const bool lost_after_report = !running_ && !last_words_.empty() && !overdue && failures_ == 0;
  if (blame(overdue ? TrialStatus::timed_out : TrialStatus::crashed, how, events) || lost_after_report) {
    failures_ += lost_after_report ? 1 : 0;
    running_.reset();
    events.emplace_back(WorkerRestarted{});  // the trial says why
    return;
  }
  running_.reset();
  const bool at_the_problem = phase_ != "start" && phase_ != "preheat";
  if (preparing_ && at_the_problem && ++preparations_ >= kMaxPreparations) {
    refuse(how, events);
    return;
  }
  if (++failures_ >= kMaxFailures) {
    end({how}, events);
    return;
  }
  start_at_ = Clock::now() + std::chrono::milliseconds(500 * failures_ * failures_);
  events.emplace_back(WorkerRestarted{how});
}

// Behind a worker that was just ended the device may still hold its memory, so a replacement is believed the second
// time only.
void MeasureClient::refuse(std::string reason, std::vector<MeasureEvent>& events) {
  if (restarts_ > 0 && ++preparations_ < kMaxPreparations) {
    worker_.end();
    worker_ = WorkerProcess();
    start_at_ = Clock::now() + std::chrono::seconds(1);
    events.emplace_back(WorkerRestarted{std::move(reason)});
    return;
  }
  if (running_) {  // a file with contents changed in a trial, after which the worker ends itself
    worker_.end();
    worker_ = WorkerProcess();
    running_.reset();
  }
  preparing_ = false;
  problem_.reset();
  finals_.reset();
  for (TrialJob& job : trials_) {
    events.emplace_back(TrialCut{std::move(job)});
  }
  trials_.clear();
  events.emplace_back(ProblemRefused{std::move(reason)});
}

void MeasureClient::end(MeasuringEnded ended, std::vector<MeasureEvent>& events) {
  interrupt();
  ended_ = true;
  events.emplace_back(std::move(ended));
}

void MeasureClient::handle(const json& message, std::vector<MeasureEvent>& events) {
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
    times_.opening_ms += message.at("busy_ms").get<double>();
    waited_ms_ += message.at("waited_ms").get<double>();
    phase_ = preparing_ ? "inputs" : "load";
    if (preparing_) {
      deadline_.allow_inputs();
    } else {
      deadline_.allow_load();
    }
  } else if (what == "prepared") {
    preparing_ = false;
    failures_ = 0;
    preparations_ = 0;
    times_.preparing_ms += message.at("busy_ms").get<double>();
    deadline_.allow_load();
    events.emplace_back(ProblemPrepared{message.at("weak").get<std::vector<std::string>>()});
  } else if (what == "refused") {
    refuse(message.at("reason").get<std::string>(), events);
  } else if (what == "gave_up") {
    end({message.at("reason").get<std::string>(), true, message.at("remedy").get<std::string>()}, events);
  } else {
    last_words_ = message.at("reason").get<std::string>();  // lost or fault: the process ends now
  }
  if (!busy()) {
    deadline_.clear();
  }
}

void MeasureClient::enter_phase(const json& message) {
  running_ = message.at("id").get<std::uint64_t>();
  phase_ = message.at("phase").get<std::string>();
  const bool of_finals = finals_ && *running_ == finals_->id;
  const double best_us = of_finals ? finals_->best_us : trials_.empty() ? 0 : trials_.front().best_us;
  if (!deadline_.allow_phase(phase_, best_us)) {
    finalist_ = std::stoul(phase_);  // whose turn it is
    deadline_.allow_finalist(best_us);
  }
}

void MeasureClient::hear_telemetry(const json& message, std::vector<MeasureEvent>& events) {
  MeasureTelemetry telemetry;
  message.at("unix_ms").get_to(telemetry.unix_ms);
  message.at("sensors").get_to(telemetry.sensors);
  telemetry.state = static_cast<GovernorState>(message.at("state").get<int>());
  message.at("reason").get_to(telemetry.reason);
  if (!message.at("canary_us").is_null()) {
    telemetry.canary_us = message.at("canary_us").get<double>();
  }
  const bool waits = telemetry.state == GovernorState::settling || telemetry.state == GovernorState::cooling;
  if (waits) {
    deadline_.wait_for_card();
  }
  events.emplace_back(std::move(telemetry));
}

// The job it was at is done.
void MeasureClient::note_answer(const json& message) {
  running_.reset();
  failures_ = 0;
  const bool of_finals = message.at("is") == "finals";
  (of_finals ? times_.finals_ms : times_.trials_ms) += message.at("busy_ms").get<double>();
  waited_ms_ += message.at("waited_ms").get<double>();
}

void MeasureClient::expect_trial(const json& message) const {
  if (trials_.empty() || trials_.front().id != message.at("id").get<std::uint64_t>()) {
    throw Error("a trial that was not requested");
  }
}

void MeasureClient::cut_trial(const json& message, std::vector<MeasureEvent>& events) {
  expect_trial(message);
  events.emplace_back(TrialCut{std::move(trials_.front())});
  trials_.pop_front();
  note_answer(message);
  deadline_.allow_load();
  replace_if_idle();
}

void MeasureClient::finish_trial(const json& message, std::vector<MeasureEvent>& events) {
  expect_trial(message);
  const auto id = message.at("id").get<std::uint64_t>();
  TrialDone done{id, message.at("trial").get<Trial>(), message.at("agrees_with").get<std::string>()};
  done.trial.problem = trials_.front().blank.problem;
  trials_.pop_front();
  note_answer(message);
  deadline_.allow_load();
  events.emplace_back(std::move(done));
  replace_if_idle();
}

void MeasureClient::finish_finals(const json& message, std::vector<MeasureEvent>& events) {
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
