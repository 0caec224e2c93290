#pragma once

#include <cstddef>
#include <optional>
#include <random>
#include <string>

#include "tuner/finals/finals.hpp"
#include "tuner/measure/measure.hpp"
#include "tuner/measure/race.hpp"
#include "tuner/simulation/simulated_card.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline {

/// Measures on the card of a simulated lab, as worker processes do.
class SimulatedBench {
 public:
  /// The world must outlive it.
  SimulatedBench(const MeasureClientOptions& options, const SimulatedWorld& world)
      : options_(options.measure), world_(world), card_(options) {}

  [[nodiscard]] SimulatedCard& card() noexcept { return card_; }

  struct MeasuredTrial {
    std::optional<Trial> trial{};  ///< nothing if the time ran out or the card is unfit
    bool gave_up = false;          ///< the card is unfit
    std::string overdue{};         ///< why the worker must be replaced after the trial; empty if it need not be
  };
  /// Measures a trial as TrialRunner does. A launch longer than `launch_limit_s` counts as hanging.
  [[nodiscard]] MeasuredTrial measure_trial(const TrialJob& job, double launch_limit_s);
  /// Holds finals; returns nothing if no finalist runs.
  [[nodiscard]] std::optional<FinalsResult> hold_finals(const FinalsJob& job);
  /// Draws a number below `count`.
  [[nodiscard]] std::size_t draw(std::size_t count) { return generator_() % count; }

 private:
  void time_trial(MeasuredTrial& into, double best_us, const SimulatedResult& result);
  void take_recorded(MeasuredTrial& into, const SimulatedResult& result);
  [[nodiscard]] TimedWork work_of(const Trial& trial, const SimulatedResult& result);
  [[nodiscard]] double draw_us(const SimulatedResult& result);

  MeasureOptions options_;
  const SimulatedWorld& world_;
  SimulatedCard card_;
  std::mt19937_64 generator_{1};
  NoiseScale noise_{};
  int back_to_back_ = 0;  ///< untimed launches of the present work
};

}  // namespace pascaline
