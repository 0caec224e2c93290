#include <utility>

#include "core/error.hpp"
#include "tuner/measure/measure_client.hpp"
#include "tuner/measure/measure_messages.hpp"

// What a measurement worker answers, and what that means for its jobs.
namespace pascaline {
namespace {

using nlohmann::json;

}  // namespace

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
