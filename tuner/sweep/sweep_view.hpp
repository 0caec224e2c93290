#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/model_time.hpp"
#include "core/trial_counts.hpp"

namespace pascaline {

/// A problem's place among those of a plan.
struct PlaceInPlan {
  std::size_t index = 0;  ///< from 1; 0: none
  std::size_t count = 0;
  friend bool operator==(const PlaceInPlan&, const PlaceInPlan&) = default;
};

/// The last readings of a card's sensors.
struct CardReadings {
  std::optional<double> temperature_c{};
  std::optional<double> sm_clock_mhz{};
  std::optional<double> power_w{};
  friend bool operator==(const CardReadings&, const CardReadings&) = default;
};

struct GovernorProgress {
  std::string state{};   ///< "preheating", "measuring", "settling", "cooling" or "gave_up"; may be empty
  std::string reason{};  ///< why it waits or gave up; empty while it measures
  friend bool operator==(const GovernorProgress&, const GovernorProgress&) = default;
};

/// What one device of a running sweep is doing.
struct DeviceProgress {
  std::string device{};   ///< "cuda:0"
  std::string name{};     ///< "NVIDIA H200"
  std::string problem{};  ///< its dimensions; empty: none at the moment
  std::string label{};    ///< where the problem comes from, e.g. "prefill: q_proj"; may be empty
  PlaceInPlan place{};
  /// "starting", "search", "finals", "waiting for the compiler", "restarting", "paused", "idle" or "lost"
  std::string stage = "starting";
  int done = 0;           ///< trials of the stage
  int planned = 0;        ///< 0: no limit
  double best_us = 0;     ///< 0: none yet
  double default_us = 0;  ///< 0: none
  CardReadings card{};
  GovernorProgress governor{};
  std::string pause_reason{};     ///< why it is left to who uses the machine; empty while it is not
  EstimatedDefaults estimated{};  ///< once the sweep has ended: ModelResult::estimated
  friend bool operator==(const DeviceProgress&, const DeviceProgress&) = default;
};

/// A running sweep as people look at it.
struct SweepView : TrialCounts {
  std::vector<DeviceProgress> devices{};
  std::size_t compiling = 0;  ///< compile workers at work
  std::size_t compile_workers = 0;
  std::size_t problems_done = 0;
  std::size_t problems = 0;
  double elapsed_s = 0;
  std::optional<double> eta_s{};           ///< time left, as far as can be told
  std::optional<double> budget_left_s{};   ///< time after which it ends whatever is left to do
  std::size_t problems_untried = 0;        ///< without a trial of this run
  std::vector<std::string> not_reached{};  ///< those, once the sweep has ended
  std::vector<std::string> no_time{};      ///< "problem: what there was no time for", so far
  std::vector<std::string> provisional{};  ///< problems with a result of the search's trials only, without finals
  friend bool operator==(const SweepView&, const SweepView&) = default;
};

// A key that is missing, null or of another type leaves the member as it was made, and unknown keys are passed over:
// the text comes from a database that anybody may have written.
void to_json(nlohmann::json& json, const DeviceProgress& device);
void from_json(const nlohmann::json& json, DeviceProgress& device);
void to_json(nlohmann::json& json, const SweepView& sweep);
void from_json(const nlohmann::json& json, SweepView& sweep);

/// What a session stores of its sweep: {"device": its own device, "sweep": the whole without devices}. Bytes that are
/// not UTF-8 are replaced.
[[nodiscard]] std::string session_progress_text(const DeviceProgress& device, const SweepView& sweep);
/// The reverse: a sweep with that one device; none if the text holds neither.
[[nodiscard]] std::optional<SweepView> read_session_progress(const std::string& text);

}  // namespace pascaline
