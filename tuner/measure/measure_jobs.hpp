#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/space/space.hpp"
#include "core/trial.hpp"
#include "core/util/deadline.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tuner/finals/finals_decision.hpp"
#include "tuner/measure/given_data.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/measure/reference_run.hpp"
#include "tuner/monitor/governor.hpp"

namespace pascaline {

/// How a device is measured on.
struct MeasureClientOptions {
  std::string device = "emulator";
  std::string target;             ///< empty: the device's own architecture
  std::filesystem::path program;  ///< the pascaline executable
  std::filesystem::path sensors;  ///< a trace that stands for the card's sensors; empty: the card's own
  DispatcherOptions kernels{};    ///< of sites of models
  MeasureOptions measure;
  GovernorOptions governor;
  double kernel_timeout_s = 60;  ///< of a launch while nothing is known of how long they take
  double patience = 1;           ///< factor on the time that everything but launches may take
  Deadline deadline{};           ///< the worker stops measuring and waiting by itself then
};

/// The problem that configurations are measured of.
struct MeasureProblem {
  const Space* space = nullptr;
  Problem problem;
  std::optional<ReferenceRun> reference;
  std::uint64_t seed = 1;
  GivenFiles given{};  ///< with the contents that the problem's `data` is the hash of
};

/// A configuration to measure.
struct TrialJob {
  std::uint64_t id = 0;
  Binary binary;
  Trial blank;         ///< what is known before it runs
  double best_us = 0;  ///< best time so far, 0 if none
  double leave_s = 0;  ///< of the time that is left, what is needed behind it
};

/// Configurations to compare.
struct FinalsJob {
  std::uint64_t id = 0;
  std::vector<std::pair<Trial, Binary>> finalists;  ///< each with what is known before it runs
  FinalsOptions options;
  double best_us = 0;
  std::optional<double> allowed_s{};  ///< for all of it, less than what is left
};

// What a measurement client tells.
struct TrialDone {
  std::uint64_t id = 0;
  Trial trial;
  std::string agrees_with{};  ///< the first configuration with the same wrong result; empty: none is known
};
struct TrialCut {  ///< the time was up before there was a result
  TrialJob job;
};
struct FinalsDone {
  std::uint64_t id = 0;
  std::optional<FinalsResult> result;  ///< nothing if no finalist ran to the end
};
struct FinalistFailed {  ///< the finals go on without it
  Trial trial;
};
struct ProblemPrepared {
  std::vector<std::string> weak_checks{};  ///< TrialRunner::weak_checks
};
struct ProblemRefused {
  std::string reason;
};
struct MeasureTelemetry {
  std::int64_t unix_ms = 0;
  Sensors sensors;
  GovernorState state = GovernorState::measuring;
  std::string reason;
  std::optional<double> canary_us;
};
struct WorkerRestarted {  ///< the worker process was replaced; every job but the one to blame is done again
  std::string reason;     ///< empty if a trial's or finalist's reason says it
};
struct MeasuringEnded {  ///< nothing more can be measured on the device
  std::string reason;
  bool gave_up = false;  ///< by the governor's decision
  std::string remedy{};  ///< then the option that has the device measured as it is (Governor::remedy), possibly empty
};
using MeasureEvent = std::variant<TrialDone, TrialCut, FinalsDone, FinalistFailed, ProblemPrepared, ProblemRefused,
                                  MeasureTelemetry, WorkerRestarted, MeasuringEnded>;

}  // namespace pascaline
