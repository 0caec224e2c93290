#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/tuner/finals/made_samples.hpp"

namespace pascaline::testing {
namespace {

/// Finalists with a median and windows each; the last is the default.
struct MadeFinals {
  std::vector<Trial> trials;
  ObjectiveDecision decision;

  explicit MadeFinals(Objective objective) { decision.objective = objective; }
  void add(double time_us, std::vector<double> values, double half_width_us = 0.01) {
    Trial trial;
    trial.config = Config({{"NAME", static_cast<std::int64_t>(trials.size())}});
    trial.time = TimeSummary{time_us, time_us - half_width_us, time_us + half_width_us, 30};
    decision.contenders.push_back({trials.size(), std::move(values)});
    trials.push_back(std::move(trial));
  }
  const ObjectiveDecision& decide(std::optional<std::size_t> baseline,
                                  std::optional<std::size_t> by_time = std::nullopt) {
    decide_objective(decision, trials, baseline, options_by(decision.objective), by_time);
    return decision;
  }
  [[nodiscard]] bool settled() const {
    const FinalsOptions options = options_by(decision.objective);
    return objective_of(decision.objective).compare(decision.contenders, trials, options)->settled();
  }
};

TEST(ObjectiveDecisionTest, TheThriftiestWinsThoughItIsNotTheFastest) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {50, 50.2, 49.9, 50.1});
  finals.add(11, {40, 40.1, 39.9, 40.1});
  finals.add(12, {52, 52.1, 51.9, 52.2});
  const ObjectiveDecision& decision = finals.decide(2);
  EXPECT_EQ(decision.undecided, "");
  EXPECT_EQ(decision.winner, 1U);
  EXPECT_NEAR(decision.score, 40.02, 0.01);
  EXPECT_NEAR(decision.baseline_score.value(), 52.05, 0.01);
  EXPECT_GT(decision.confidence, 0.999);
  EXPECT_FALSE(decision.tie);
  EXPECT_TRUE(finals.settled());
}

TEST(ObjectiveDecisionTest, ADefaultThatIsNotSignificantlyWorseStays) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {50, 46, 53, 49});
  finals.add(12, {51, 50, 49, 52});
  const ObjectiveDecision& decision = finals.decide(1);
  EXPECT_EQ(decision.winner, 1U);
  EXPECT_TRUE(decision.tie);
  EXPECT_EQ(decision.confidence, 0.5);
  EXPECT_EQ(decision.score, decision.baseline_score);
  EXPECT_FALSE(finals.settled());
}

TEST(ObjectiveDecisionTest, WhereNothingIsSignificantTheWinnerByTimeIsTaken) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {50, 46, 53, 49});
  finals.add(11, {49, 47, 52, 48});
  finals.add(16, {51, 50, 49, 52});
  EXPECT_EQ(finals.decide(2, 0).winner, 0U) << "the default is slower, and perhaps no thriftier";
  EXPECT_EQ(finals.decide(2, 0).confidence, 0.5);
  MadeFinals wasteful(Objective::energy);
  wasteful.add(10, {90, 90.1, 89.9, 90});
  wasteful.add(16, {50, 50.1, 49.9, 50});
  EXPECT_EQ(wasteful.decide(1, 0).winner, 1U) << "the winner by time takes more";
}

TEST(ObjectiveDecisionTest, WhatDriftsForAllAlikeHidesNoDifference) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {40, 50, 60, 70});
  finals.add(10, {44.1, 55, 65.9, 77});
  EXPECT_EQ(finals.decide(1).winner, 0U) << "of each round a tenth less";
}

TEST(ObjectiveDecisionTest, AWindowFarOffNeitherHidesADifferenceNorMakesOne) {
  const auto windows = [](double energy, double odd) {
    std::vector<double> values;
    for (int round = 0; round < 12; ++round) {
      values.push_back(round == 5 ? odd : energy + 0.1 * (round % 3));
    }
    return values;
  };
  MadeFinals finals(Objective::energy);
  finals.add(10, windows(50, 95));
  finals.add(10.2, windows(48, 48));
  finals.add(12, windows(52, 52));
  EXPECT_EQ(finals.decide(2, 0).winner, 1U);
  EXPECT_NEAR(finals.decision.score, 48.1, 0.05);
  MadeFinals alike(Objective::energy);
  alike.add(10, windows(50, 95));
  alike.add(10.2, windows(50, 50));
  alike.add(12, windows(52, 52));
  EXPECT_EQ(alike.decide(2, 0).winner, 0U);
  EXPECT_NEAR(alike.decision.score, 50.1, 0.05);
}

TEST(ObjectiveDecisionTest, LessThanATieIsNoDifferenceHoweverClear) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {100, 100, 100, 100, 100, 100, 100, 100});
  finals.add(10, {100.3, 100.3, 100.3, 100.3, 100.3, 100.3, 100.3, 100.3});
  EXPECT_EQ(finals.decide(1).winner, 1U);
  EXPECT_TRUE(finals.settled()) << "more windows would not make it one";
}

TEST(ObjectiveDecisionTest, ReadingsOfACoarseSensorAreNotKnownExactly) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {99, 99, 99});
  finals.add(10, {100, 100, 100});
  EXPECT_EQ(finals.decide(1).winner, 1U) << "three windows that agree by chance";
}

TEST(ObjectiveDecisionTest, EdpIsEnergyTimesTimeAndAsUncertainAsBoth) {
  MadeFinals finals(Objective::edp);
  finals.add(10, {50, 50.1, 49.9, 50});  // 500
  finals.add(14, {40, 40.1, 39.9, 40});  // 560
  finals.add(12, {50, 50.1, 49.9, 50});  // 600
  const ObjectiveDecision& decision = finals.decide(2);
  EXPECT_EQ(decision.winner, 0U) << "the thriftiest takes too long";
  EXPECT_NEAR(decision.score, 500, 0.01);
  EXPECT_NEAR(decision.baseline_score.value(), 600, 0.01);

  MadeFinals vague(Objective::edp);
  vague.add(10, {50, 50.1, 49.9, 50}, 3);
  vague.add(12, {50, 50.1, 49.9, 50}, 3);
  EXPECT_EQ(vague.decide(1).winner, 1U) << "times that are hardly known decide nothing";
}

TEST(ObjectiveDecisionTest, OfThoseThatCannotBeToldApartTheWinnerByTimeOrElseTheFastestIsTaken) {
  MadeFinals finals(Objective::energy);
  finals.add(12, {50, 51, 49, 50});
  finals.add(11, {51, 50, 50, 49});
  finals.add(10, {50.5, 51, 50, 50});
  finals.add(13, {90, 91, 89, 90});
  EXPECT_EQ(finals.decide(3).winner, 2U);
  EXPECT_EQ(finals.decide(3, 1).winner, 1U);
  EXPECT_EQ(finals.decide(std::nullopt).winner, 2U);
  MadeFinals wasteful(Objective::energy);
  wasteful.add(10, {60, 60.1, 59.9, 60});
  wasteful.add(12, {50, 51, 49, 50});
  wasteful.add(11, {51, 50, 50, 49});
  wasteful.add(13, {90, 91, 89, 90});
  EXPECT_EQ(wasteful.decide(3, 0).winner, 2U) << "the winner by time takes more";
  MadeFinals near(Objective::energy);
  near.add(10, {51, 51.01, 50.99, 51, 51.01, 50.99});
  near.add(11, {50.8, 50.81, 50.79, 50.8, 50.81, 50.79});
  near.add(12, {50.6, 50.61, 50.59, 50.6, 50.61, 50.59});
  near.add(13, {90, 91, 89, 90, 91, 89});
  EXPECT_EQ(near.decide(3, 0).winner, 2U) << "the faster one is no better than the winner by time";
  MadeFinals vague(Objective::energy);
  vague.add(10, {50.1, 52, 48.4, 50});
  vague.add(11, {50, 50.1, 49.9, 50});
  vague.add(13, {51.5, 51.6, 51.4, 51.5});
  EXPECT_EQ(vague.decide(2, 0).winner, 0U) << "nothing is known to be thriftier than the winner by time";
}

TEST(ObjectiveDecisionTest, WithoutADefaultTheFirstOfTheBestWins) {
  MadeFinals finals(Objective::sustained);
  finals.add(10, {10, 10, 10});
  finals.add(10, {10, 10, 10});
  const ObjectiveDecision& decision = finals.decide(std::nullopt);
  EXPECT_EQ(decision.winner, 0U);
  EXPECT_EQ(decision.confidence, 1);
  EXPECT_FALSE(decision.baseline_score);
}

TEST(ObjectiveDecisionTest, WhatWasNotMeasuredDecidesNothing) {
  MadeFinals finals(Objective::energy);
  EXPECT_NE(finals.decide(std::nullopt).undecided, "");
  finals.decision.undecided.clear();
  finals.add(10, {10, 10, 10});
  EXPECT_NE(finals.decide(5).undecided, "") << "the default is none of them";
}

TEST(ObjectiveDecisionTest, FalseAlarmsAreRare) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.01);
  int wrong = 0;
  constexpr int kTimes = 2000;
  for (int i = 0; i < kTimes; ++i) {
    MadeFinals finals(Objective::energy);
    for (int contender = 0; contender < 4; ++contender) {
      std::vector<double> values;
      for (int round = 0; round < 3; ++round) {
        values.push_back(50 * (1 + noise(random)));
      }
      finals.add(10, values);
    }
    // As a sweep does: on from the third round until it is settled.
    while (!finals.settled() && finals.decision.contenders[0].values.size() < 8) {
      for (Contender& contender : finals.decision.contenders) {
        contender.values.push_back(50 * (1 + noise(random)));
      }
    }
    wrong += finals.decide(3).winner != 3 ? 1 : 0;
  }
  EXPECT_LE(wrong, kTimes / 100);
}

TEST(ObjectiveDecisionTest, ADefaultThatTiesWithTheBestStaysWhereTheWinnerByTimeIsWorse) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {51, 51.01, 50.99, 51, 51.01, 50.99});
  finals.add(11, {50, 50.01, 49.99, 50, 50.01, 49.99});
  finals.add(12, {48, 54, 50, 53, 47, 52});
  EXPECT_EQ(finals.decide(2, 0).winner, 2U) << "nothing is known to be better than the default";
  EXPECT_EQ(finals.decision.confidence, 0.5);
}

// A default of another compiler may have been left out of later rounds.
TEST(ObjectiveDecisionTest, ADefaultThatWasLeftOutStaysUnlessSomethingIsBetter) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {50, 58, 43, 50.1});
  finals.add(12, {52, 51, 53});
  EXPECT_EQ(finals.decide(1).winner, 1U);
  MadeFinals better(Objective::energy);
  better.add(10, {50, 50.1, 49.9, 50});
  better.add(12, {70, 70.1, 69.9});
  EXPECT_EQ(better.decide(1).winner, 0U);
}

/// Finals by energy of made windows: `energies` of contenders, the last of which is the default, the one before the
/// winner by time; windows scatter by so much of their value.
struct MadeRounds {
  std::size_t windows = 0;
  ObjectiveDecision decision;

  MadeRounds(const std::vector<double>& energies, double scatter, std::uint32_t seed) {
    std::vector<MadeContender> contenders;
    for (std::size_t i = 0; i < energies.size(); ++i) {
      contenders.push_back({i + 2 == energies.size() ? 10 : 11 + 0.3 * static_cast<double>(i), energies[i], 0});
    }
    Finals finals(made_trials(energies.size(), energies.size() - 1), objective_of(Objective::energy),
                  options_by(Objective::energy));
    MadeSamples samples(std::move(contenders), scatter, seed);
    const auto result = samples.run(finals);
    EXPECT_TRUE(result && result->by_objective && result->winner == energies.size() - 2);
    decision = result->by_objective.value();
    for (const Contender& contender : decision.contenders) {
      windows += contender.values.size();
    }
  }
  [[nodiscard]] std::size_t windows_of(std::size_t trial) const {
    return std::ranges::find(decision.contenders, trial, &Contender::trial)->values.size();
  }
};

TEST(ObjectiveRoundsTest, MostDifferencesAboveTheScatterAreFoundAmongMany) {
  const int runs = 200;
  int found = 0;
  int wrong = 0;
  std::size_t most = 0;
  for (int run = 0; run < runs; ++run) {
    // One needs 2 % less, seven are as the winner by time.
    std::vector<double> energies(10, 50.0);
    energies[3] = 49.0;
    const MadeRounds better(energies, 0.01, static_cast<std::uint32_t>(run));
    found += better.decision.winner == 3 ? 1 : 0;
    most = std::max(most, better.windows);
    const MadeRounds alike(std::vector<double>(10, 50.0), 0.01, static_cast<std::uint32_t>(1000 + run));
    wrong += alike.decision.winner == 8 ? 0 : 1;
  }
  EXPECT_GE(found, runs * 85 / 100);
  EXPECT_LE(wrong, runs * 2 / 100) << "nothing is to be found";
  EXPECT_LE(most, 6U * 10 + 18U * 4) << "few go on";
}

TEST(ObjectiveRoundsTest, WhatIsFarWorseIsMeasuredThreeTimes) {
  const MadeRounds rounds({50, 80, 50.3, 49.9, 90}, 0.003, 1);
  EXPECT_EQ(rounds.windows_of(1), 3U);
  EXPECT_GT(rounds.windows_of(4), 3U) << "the default is compared with in any case";
  EXPECT_EQ(rounds.decision.winner, 3U) << "the winner by time stays where nothing is better";
}

TEST(ObjectiveRoundsTest, WhoIsLeftOutDoesNotWin) {
  MadeFinals finals(Objective::energy);
  finals.add(10, {50, 50.1, 49.9, 50.05});
  finals.add(11, {40, 60, 38});  // lower in the mean of its rounds
  finals.add(12, {52, 52.1, 51.9, 52.05});
  EXPECT_EQ(finals.decide(2, 0).winner, 0U);
}

}  // namespace
}  // namespace pascaline::testing
