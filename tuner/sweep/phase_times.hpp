#pragma once

#include <optional>
#include <vector>

#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline {

/// Results of a plan on its kind of device, those of earlier runs under the same key among them.
struct PlanTimes {
  int decided = 0;                     ///< problems with a result
  std::vector<PhaseTime> phases{};     ///< in the order prompt, token, image, others; empty if there are none
  std::optional<ModelResult> model{};  ///< nothing without phases
};
/// `end_s`: since the run began.
[[nodiscard]] PlanTimes plan_times(const DevicePlan& plan, SweepRecorder& recorder, double end_s);

/// How far the time from now on reaches in a plan that `devices` work on; nothing if it suffices.
[[nodiscard]] std::optional<Forecast> forecast_of(const DevicePlan& plan, double devices, double left_s);

}  // namespace pascaline
