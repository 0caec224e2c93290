#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/trial.hpp"

namespace pascaline {

/// A problem's part of a model's time.
struct ModelPart {
  double calls = 0;
  TimeSummary with_default{};                ///< of a call
  std::optional<TimeSummary> with_winner{};  ///< nothing: it is not decided and stays at its default
  double confidence = 0.5;                   ///< of a winner that it is not slower, by the test of their samples
};

/// Estimated times of calls whose default was not measured.
struct EstimatedDefaults {
  static constexpr double kMinFactor = 2;

  std::map<std::string, double> us{};  ///< by problem
  double factor = kMinFactor;          ///< 95 % of the true times are within this factor of the estimate

  /// Returns the estimate with its 95 % interval; nothing if the problem has none.
  [[nodiscard]] std::optional<TimeSummary> of(const std::string& problem) const;
  friend bool operator==(const EstimatedDefaults&, const EstimatedDefaults&) = default;
};
/// Written like `{"us": {"problem": 25}, "factor": 2}`. Reading ignores what is not positive and finite; a factor below
/// 2 becomes 2.
void to_json(nlohmann::json& json, const EstimatedDefaults& estimated);
void from_json(const nlohmann::json& json, EstimatedDefaults& estimated);

/// A model's time: calls times times, over all its problems.
struct ModelTime {
  double default_us = 0;  ///< with every problem's default
  double best_us = 0;     ///< with the winners, and the defaults of what has none
  /// The ends of the 95 % interval of `speedup()`. A problem at its default, or whose default won, contributes a ratio
  /// of exactly 1. The ratio of another is as sure as its finals say, which timed both sides in turn
  /// (`standard_error`); one that was decided without finals is at most as sure as its confidence. A winner
  /// that is certainly faster stays so, however uncertain its share of the time is.
  double speedup_low = 1;
  double speedup_high = 1;
  [[nodiscard]] double speedup() const noexcept { return best_us > 0 ? default_us / best_us : 1; }
};
[[nodiscard]] ModelTime model_time(std::span<const ModelPart> parts);

/// The time of a model when a sweep had been at work that long.
struct ModelPoint {
  double elapsed_s = 0;
  double model_us = 0;    ///< with the winners decided until then, and the defaults of what had none
  double default_us = 0;  ///< with every problem's default; the same at all points
  friend bool operator==(const ModelPoint&, const ModelPoint&) = default;
};

/// A decision on a problem at a moment, provisional ones as others.
struct DecisionPoint {
  double elapsed_s = 0;  ///< below 0: before the sweep began
  double ratio = 1;      ///< of the winner's time to that of its baseline
};

/// How a problem came to its result.
struct ProblemHistory {
  double default_us = 0;                   ///< of all its calls
  std::vector<DecisionPoint> decisions{};  ///< in the order of time; the last is the result
};
/// A point for the beginning, one for each moment at which a ratio changed, and one for the end.
[[nodiscard]] std::vector<ModelPoint> model_curve(std::span<const ProblemHistory> problems, double end_s);

}  // namespace pascaline
