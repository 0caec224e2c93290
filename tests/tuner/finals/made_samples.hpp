#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tuner/finals/finals.hpp"

namespace pascaline::testing {

/// A contender's true values.
struct MadeContender {
  double time_us = 10;
  double energy_mj = 50;
  double sustained_us = 10;
};

/// Contenders NAME=0, 1, … of which one is the default.
inline std::vector<Trial> made_trials(std::size_t count, std::size_t standard) {
  std::vector<Trial> trials(count);
  for (std::size_t i = 0; i < count; ++i) {
    trials[i].config = Config({{"NAME", static_cast<std::int64_t>(i)}});
    trials[i].is_default = i == standard;
  }
  return trials;
}

inline constexpr double kScatter = 0.003;

/// Measures rounds without a device: what is drawn scatters by that share of the contender's value.
class MadeSamples {
 public:
  MadeSamples(std::vector<MadeContender> contenders, double scatter, std::uint32_t seed = 1)
      : contenders_(std::move(contenders)), scatter_(scatter), random_(seed) {}

  int launches = 3;
  double launch_s = 0.001;
  double window_s = 1;

  [[nodiscard]] RoundSamples measure(const Round& round) {
    RoundSamples samples;
    for (const std::size_t contender : round.turns) {
      const MadeContender& made = contenders_.at(contender);
      Turn& turn = samples.turns.emplace_back();
      if (round.sampling == SampleKind::launches) {
        for (int launch = 0; launch < launches; ++launch) {
          turn.launches.emplace_back().time_us = drawn(made.time_us);
        }
      } else {
        turn.value = drawn(round.sampling == SampleKind::energy ? made.energy_mj : made.sustained_us);
      }
      samples.seconds += round.sampling == SampleKind::launches ? launches * launch_s : window_s;
    }
    return samples;
  }
  /// Until they are over.
  [[nodiscard]] std::optional<FinalsResult> run(Finals& finals, double left_s = Finals::kUnlimited) {
    for (Round round = finals.next(left_s); !round.over(); round = finals.next(left_s)) {
      rounds.push_back(round);
      RoundSamples samples = measure(round);
      left_s -= samples.seconds;
      finals.add(std::move(samples));
    }
    return finals.decided();
  }
  void leave_out(std::size_t contender) {
    contenders_.erase(contenders_.begin() + static_cast<std::ptrdiff_t>(contender));
  }

  std::vector<Round> rounds;  ///< that `run` measured

 private:
  [[nodiscard]] double drawn(double value) { return value * std::exp(scatter_ * noise_(random_)); }

  std::vector<MadeContender> contenders_;
  double scatter_;
  std::normal_distribution<double> noise_{};
  std::mt19937 random_;
};

/// The options of finals by an objective.
inline FinalsOptions options_by(Objective objective) {
  FinalsOptions options;
  options.objective = objective_of(objective).defaults();
  return options;
}

}  // namespace pascaline::testing
