#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tuner/measure/measure_client.hpp"

// What becomes of a lane whose worker is gone, or has to go.
namespace pascaline {
namespace {

constexpr int kMaxPreparations = 2;

}  // namespace

// The trial or finalist on the device, if there was one, is what ended the worker.
bool MeasureClient::blame(TrialStatus status, const std::string& reason, std::vector<LaneEvent>& events) {
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
void MeasureClient::lose_worker(bool overdue, std::vector<LaneEvent>& events) {
  const int status = worker_.end();
  worker_ = WorkerProcess();
  deadline_ = Clock::time_point::max();
  const std::string how = overdue ? fmt::format("timed out after {:.3g} s in phase '{}'", allowed_s_, phase_)
                          : last_words_.empty() ? "the measuring process ended: " + ending_of(status)
                                                : last_words_;
  ++restarts_;
  const bool lost_after_report = !running_ && !last_words_.empty() && !overdue && failures_ == 0;
  if (blame(overdue ? TrialStatus::timed_out : TrialStatus::crashed, how, events) || lost_after_report) {
    failures_ += lost_after_report ? 1 : 0;
    running_.reset();
    events.emplace_back(LaneRestarted{});  // the trial says why
    return;
  }
  running_.reset();
  const bool at_the_problem = phase_ != "start" && phase_ != "preheat";
  if (preparing_ && at_the_problem && ++preparations_ >= kMaxPreparations) {
    refuse(how, events);
    return;
  }
  if (++failures_ >= kMaxFailures) {
    end(how, false, events);
    return;
  }
  start_at_ = Clock::now() + std::chrono::milliseconds(500 * failures_ * failures_);
  events.emplace_back(LaneRestarted{how});
}

// Behind a worker that was just ended the device may still hold its memory, so a replacement is believed the second
// time only.
void MeasureClient::refuse(std::string reason, std::vector<LaneEvent>& events) {
  if (restarts_ > 0 && ++preparations_ < kMaxPreparations) {
    worker_.end();
    worker_ = WorkerProcess();
    start_at_ = Clock::now() + std::chrono::seconds(1);
    events.emplace_back(LaneRestarted{std::move(reason)});
    return;
  }
  preparing_ = false;
  problem_.reset();
  finals_.reset();
  events.emplace_back(ProblemRefused{std::move(reason)});
}

void MeasureClient::end(std::string reason, bool gave_up, std::vector<LaneEvent>& events) {
  interrupt();
  ended_ = true;
  events.emplace_back(LaneEnded{std::move(reason), gave_up});
}

}  // namespace pascaline
