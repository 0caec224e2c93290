#include "tuner/measure/measure_client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "tuner/measure/measure_requests.hpp"

namespace pascaline {
namespace {

constexpr int kMaxPreparations = 2;

bool readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

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

}  // namespace pascaline
