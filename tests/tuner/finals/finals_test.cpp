#include "tuner/finals/finals.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tuner/finals/made_samples.hpp"

namespace pascaline::testing {
namespace {

using End = RoundSamples::End;
using Turns = std::vector<std::size_t>;

Finals finals_by(Objective objective, std::size_t count, const FinalsOptions& options) {
  return {made_trials(count, count - 1), objective_of(objective), options};
}
Finals finals_of(std::size_t count, const FinalsOptions& options = {}) {
  return finals_by(Objective::time, count, options);
}

RoundSamples broken(End end, std::string why_not = "it broke") {
  RoundSamples samples;
  samples.end = end;
  samples.why_not = std::move(why_not);
  return samples;
}

TEST(FinalsTest, AClearDifferenceSettlesThemAtTheFirstLook) {
  Finals finals = finals_of(2, {.energy_window_ms = 0});
  MadeSamples samples({{5}, {10}}, kScatter);
  EXPECT_FALSE(finals.decided()) << "they are not over";
  const auto result = samples.run(finals);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 10);
  EXPECT_EQ(samples.rounds.size(), 10U);
  EXPECT_EQ(samples.rounds[0].turns, (Turns{0, 1}));
  EXPECT_EQ(samples.rounds[1].turns, (Turns{1, 0})) << "each round begins with another";
  EXPECT_EQ(result->winner, 0U);
  EXPECT_EQ(result->baseline_trial, 1U);
  EXPECT_GT(result->confidence, 0.999);
  EXPECT_FALSE(result->tie);
  EXPECT_FALSE(result->by_objective);
  EXPECT_EQ(result->trials[0].stage, TrialStage::finals);
  EXPECT_EQ(result->trials[0].samples.size(), 30U);
}

TEST(FinalsTest, TimesThatScatterTakeAllRoundsAndTieToTheDefault) {
  FinalsOptions options{.energy_window_ms = 0};
  options.tie_width = 1e-6;
  Finals finals = finals_of(3, options);
  MadeSamples samples({{10}, {10}, {10}}, 0.01);
  const auto result = samples.run(finals);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 40);
  EXPECT_TRUE(result->tie);
  EXPECT_EQ(result->winner, 2U);
  EXPECT_EQ(result->confidence, 0.5);
}

TEST(FinalsTest, TheSameTimesAreATieAtTheFirstLook) {
  Finals finals = finals_of(2, {.energy_window_ms = 0});
  MadeSamples samples({{10}, {10}}, 0);
  const auto result = samples.run(finals);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 10);
  EXPECT_TRUE(result->tie);
}

TEST(FinalsTest, ADisturbedRoundIsRepeated) {
  Finals finals = finals_of(2, {.energy_window_ms = 0});
  MadeSamples samples({{5}, {10}}, kScatter);
  RoundSamples disturbed = samples.measure(finals.next());
  disturbed.turns[1].launches[2].mark = SampleMark::thermal_throttle;
  finals.add(std::move(disturbed));
  const auto result = samples.run(finals);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 10);
  EXPECT_EQ(samples.rounds.size(), 10U);
  EXPECT_EQ(result->trials[0].time->count, 33) << "what was not disturbed counts";
  EXPECT_EQ(result->trials[1].samples.size(), 33U);
  EXPECT_EQ(result->trials[1].time->count, 32);
}

TEST(FinalsTest, WhereEveryRoundIsDisturbedTheyGiveUp) {
  Finals finals = finals_of(2);
  MadeSamples samples({{5}, {10}}, kScatter);
  int passes = 0;
  for (Round round = finals.next(); !round.over(); round = finals.next()) {
    RoundSamples disturbed = samples.measure(round);
    for (Turn& turn : disturbed.turns) {
      for (Sample& sample : turn.launches) {
        sample.mark = SampleMark::canary_drift;
      }
    }
    finals.add(std::move(disturbed));
    ++passes;
  }
  EXPECT_EQ(passes, 80) << "twice as often as there are rounds";
  ASSERT_TRUE(finals.decided());
  EXPECT_TRUE(finals.decided()->gave_up);
  EXPECT_FALSE(finals.decided()->out_of_time);
}

TEST(FinalsTest, ACardThatIsNotFitEndsThem) {
  Finals finals = finals_of(2);
  MadeSamples samples({{5}, {10}}, kScatter);
  finals.add(samples.measure(finals.next()));
  ASSERT_FALSE(finals.next().over());
  finals.add(broken(End::failed));
  EXPECT_TRUE(finals.next().over());
  ASSERT_TRUE(finals.decided());
  EXPECT_TRUE(finals.decided()->gave_up);
}

// A round takes six milliseconds.
TEST(FinalsTest, TheyEndInTimeAndDecideByTheRoundsThereWere) {
  Finals finals = finals_of(2);
  MadeSamples samples({{5}, {10}}, kScatter);
  const auto result = samples.run(finals, 0.027);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 4);
  EXPECT_FALSE(result->out_of_time);
  EXPECT_EQ(result->winner, 0U);
  EXPECT_EQ(samples.rounds.size(), 4U) << "nor was there time for energies";
}

TEST(FinalsTest, OfARoundThatTheTimeCutNothingCounts) {
  for (const int whole : {1, 2}) {
    Finals finals = finals_of(2);
    MadeSamples samples({{5}, {10}}, kScatter);
    for (int round = 0; round < whole; ++round) {
      finals.add(samples.measure(finals.next()));
    }
    RoundSamples cut = samples.measure(finals.next());
    cut.end = End::out_of_time;
    finals.add(std::move(cut));
    EXPECT_TRUE(finals.next(0).over());
    const auto result = finals.decided();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->rounds, whole);
    EXPECT_EQ(result->out_of_time, whole < kMinFinalsRounds);
    EXPECT_FALSE(result->gave_up);
    EXPECT_EQ(result->trials[0].samples.size(), 3U * static_cast<std::size_t>(whole));
  }
}

TEST(FinalsTest, AContenderThatFailsIsLeftOutAndTheOthersBeginAgain) {
  Finals finals = finals_of(3, {.energy_window_ms = 0});
  MadeSamples samples({{5}, {7}, {10}}, kScatter);
  finals.add(samples.measure(finals.next()));
  std::ignore = finals.next();
  finals.fail(0, "illegal address");
  samples.leave_out(0);
  ASSERT_EQ(finals.contenders().size(), 2U);
  EXPECT_TRUE(finals.contenders()[0].samples.empty());
  EXPECT_FALSE(finals.decided());
  const auto result = samples.run(finals);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 10);
  EXPECT_EQ(result->winner, 0U);
  EXPECT_EQ(result->trials[0].config.text(), "NAME=1");
  EXPECT_EQ(result->trials[0].samples.size(), 30U);
  ASSERT_EQ(result->failed.size(), 1U);
  EXPECT_EQ(result->failed[0].config.text(), "NAME=0");
  EXPECT_EQ(result->failed[0].status, TrialStatus::launch_failed);
  EXPECT_EQ(result->failed[0].stage, TrialStage::finals);
  EXPECT_EQ(result->failed[0].reason, "illegal address");
}

TEST(FinalsTest, WhereAllFailThereIsNoDecision) {
  Finals finals = finals_of(1);
  ASSERT_FALSE(finals.next().over());
  finals.fail(0, "illegal address");
  EXPECT_TRUE(finals.next().over());
  EXPECT_FALSE(finals.decided());
  Finals none({}, objective_of(Objective::time), FinalsOptions());
  EXPECT_TRUE(none.next().over());
  EXPECT_FALSE(none.decided());
}

TEST(FinalsTest, TimesAreScaledByTheMedianCanary) {
  FinalsOptions options{.energy_window_ms = 0};
  Finals finals(made_trials(2, 1), objective_of(Objective::time), options,
                [](double canary_us) { return 100 / canary_us; });
  MadeSamples samples({{5}, {10}}, 0);
  double canary_us = 110;
  for (Round round = finals.next(); !round.over(); round = finals.next()) {
    RoundSamples measured = samples.measure(round);
    measured.canaries_us = {canary_us};
    canary_us = 125;
    finals.add(std::move(measured));
  }
  const auto result = finals.decided();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->trials[0].canary_us, 125);
  EXPECT_DOUBLE_EQ(result->trials[0].clock_scale, 0.8);
  EXPECT_DOUBLE_EQ(result->trials[0].time->median_us, 4);
}

TEST(FinalsTest, ByTimeTheEnergiesOfWinnerAndDefaultAreWantedLast) {
  Finals finals = finals_of(3);
  MadeSamples samples({{5, 30}, {7, 40}, {10, 50}}, 0.0001);
  const auto result = samples.run(finals);
  ASSERT_TRUE(result);
  ASSERT_EQ(samples.rounds.size(), 12U);
  EXPECT_EQ(samples.rounds[10].sampling, SampleKind::energy);
  EXPECT_EQ(samples.rounds[10].turns, Turns{0});
  EXPECT_EQ(samples.rounds[11].turns, Turns{2});
  EXPECT_NEAR(result->trials[0].energy_mj.value(), 30, 0.1);
  EXPECT_FALSE(result->trials[1].energy_mj);
  EXPECT_NEAR(result->trials[2].energy_mj.value(), 50, 0.1);

  Finals without = finals_of(2);
  for (Round round = without.next(); !round.over(); round = without.next()) {
    without.add(round.sampling == SampleKind::energy ? broken(End::failed) : samples.measure(round));
  }
  ASSERT_TRUE(without.decided());
  EXPECT_EQ(without.decided()->winner, 0U) << "what was decided stays";
  EXPECT_FALSE(without.decided()->trials[0].energy_mj);

  FinalsOptions known;
  known.energies = energies_of(result->trials);
  known.energies->canary_us = 100;
  Finals again = finals_of(3, known);
  MadeSamples other({{5, 1}, {7, 1}, {10, 1}}, 0.0001);
  for (Round round = again.next(); !round.over(); round = again.next()) {
    RoundSamples measured = other.measure(round);
    measured.canaries_us = {100};
    again.add(std::move(measured));
  }
  ASSERT_TRUE(again.decided());
  EXPECT_TRUE(again.decided()->energies_again);
  EXPECT_EQ(again.decided()->trials[0].energy_mj, result->trials[0].energy_mj);
}

/// The fastest, the one that needs least, the one with the lowest product, the one that stays fast, and the default.
const std::vector<MadeContender> kSpecialists{
    {10, 60, 14}, {13, 40, 13.2}, {10.4, 48, 13.6}, {11, 58, 11.2}, {14, 70, 14.5}};

TEST(FinalsTest, EachObjectiveHasItsWinner) {
  const std::vector<std::pair<Objective, std::size_t>> expected{
      {Objective::energy, 1U}, {Objective::edp, 2U}, {Objective::sustained, 3U}};
  for (const auto& [objective, winner] : expected) {
    FinalsOptions options = options_by(objective);
    options.objective.contender_factor = 1.5;
    Finals finals = finals_by(objective, kSpecialists.size(), options);
    MadeSamples samples(kSpecialists, kScatter);
    const auto result = samples.run(finals);
    ASSERT_TRUE(result && result->by_objective) << name_of(objective);
    EXPECT_EQ(result->winner, 0U) << "by time";
    const ObjectiveDecision& decision = *result->by_objective;
    EXPECT_EQ(decision.objective, objective);
    EXPECT_EQ(decision.undecided, "");
    EXPECT_EQ(decision.winner, winner) << name_of(objective);
    EXPECT_GT(decision.confidence, 0.99);
    const MadeContender& best = kSpecialists[winner];
    const double score = objective == Objective::energy ? best.energy_mj
                         : objective == Objective::edp  ? best.energy_mj * best.time_us
                                                        : best.sustained_us;
    EXPECT_NEAR(decision.score, score, 0.01 * score);
    EXPECT_LT(decision.score, decision.baseline_score.value());
    EXPECT_EQ(result->trials[winner].sustained_us.has_value(), objective == Objective::sustained);
    EXPECT_EQ(result->trials[winner].energy_mj.has_value(), objective != Objective::sustained);
    const auto first = std::ranges::find(samples.rounds, objective_of(objective).sampling(), &Round::sampling);
    ASSERT_NE(first, samples.rounds.end());
    EXPECT_TRUE(first->first);
    EXPECT_FALSE(std::next(first)->first);
    EXPECT_EQ(first->window_s, objective_of(objective).window_s(options));
  }
}

TEST(FinalsTest, SlowContendersAreNotMeasuredNorThoseThereIsNoTimeFor) {
  const auto contenders = [](double left_s) {
    std::vector<MadeContender> made = kSpecialists;
    made[3].time_us = 20;
    Finals finals = finals_by(Objective::energy, made.size(), options_by(Objective::energy));
    MadeSamples samples(made, kScatter);
    samples.window_s = 2.5;
    const auto result = samples.run(finals, left_s);
    EXPECT_TRUE(result && result->by_objective && result->winner == 0);
    EXPECT_EQ(result->by_objective->out_of_time, result->by_objective->contenders.empty());
    Turns trials;
    for (const Contender& contender : result->by_objective->contenders) {
      trials.push_back(contender.trial);
    }
    return trials;
  };
  EXPECT_EQ(contenders(Finals::kUnlimited), (Turns{0, 2, 1, 4})) << "one is twice as slow as the fastest";
  EXPECT_EQ(contenders(1 + 3 * 3 * 2.5), (Turns{0, 2, 4}));
  EXPECT_EQ(contenders(1 + 2 * 3 * 2.5), (Turns{0, 4})) << "the winner by time and the default always";
  EXPECT_EQ(contenders(5), Turns{});
}

TEST(FinalsTest, ABrokenWindowLeavesTheObjectiveUndecidedUnlessEarlierRoundsAreEnough) {
  const auto decided = [](int whole, End end) {
    Finals finals = finals_by(Objective::energy, kSpecialists.size(), options_by(Objective::energy));
    MadeSamples samples(kSpecialists, 0.02);
    int windows = 0;
    for (Round round = finals.next(); !round.over(); round = finals.next()) {
      const bool breaks = round.sampling == SampleKind::energy && windows++ >= whole;
      finals.add(breaks ? broken(end) : samples.measure(round));
    }
    EXPECT_TRUE(finals.decided() && finals.decided()->by_objective && finals.decided()->winner == 0);
    return *finals.decided()->by_objective;
  };
  EXPECT_EQ(decided(4, End::failed).undecided, "it broke");
  EXPECT_FALSE(decided(4, End::failed).out_of_time);
  EXPECT_EQ(decided(2, End::out_of_time).undecided, "it broke");
  EXPECT_TRUE(decided(2, End::out_of_time).out_of_time);
  EXPECT_EQ(decided(4, End::out_of_time).undecided, "");
  EXPECT_FALSE(decided(4, End::out_of_time).out_of_time);
  EXPECT_EQ(decided(4, End::out_of_time).contenders[0].values.size(), 4U);
}

TEST(FinalsTest, ANoteOfASampleIsInTheTrial) {
  Finals finals = finals_by(Objective::sustained, 2, options_by(Objective::sustained));
  MadeSamples samples({{10, 50, 10}, {11, 50, 11}}, kScatter);
  for (Round round = finals.next(); !round.over(); round = finals.next()) {
    RoundSamples measured = samples.measure(round);
    measured.turns[0].note = round.first ? "it still moved" : "";
    finals.add(std::move(measured));
  }
  ASSERT_TRUE(finals.decided());
  EXPECT_EQ(finals.decided()->trials[0].reason, "it still moved");
  EXPECT_EQ(finals.decided()->trials[1].reason, "");
}

TEST(FinalsObjectiveTest, EachSaysWhatADeviceHasToReport) {
  const DeviceReports all{50, true, true};
  const DeviceReports nothing;
  const DeviceReports wrong{50'000, false, false};
  for (const Objective objective : kObjectives) {
    EXPECT_EQ(objective_of(objective).id(), objective);
    EXPECT_EQ(objective_of(objective).defaults().objective, objective);
    EXPECT_EQ(objective_of(objective).by_time_alone(), objective == Objective::time);
    EXPECT_EQ(objective_of(objective).refusal(all), "");
  }
  EXPECT_EQ(objective_of(Objective::time).refusal(nothing), "");
  for (const Objective objective : {Objective::energy, Objective::edp}) {
    EXPECT_TRUE(objective_of(objective).wants_low_energy());
    EXPECT_EQ(objective_of(objective).refusal(nothing), "does not report its power, so its energy cannot be measured");
    EXPECT_EQ(objective_of(objective).refusal(wrong),
              "reports a power that cannot be, 5e+04 W, so its energy cannot be measured");
  }
  EXPECT_FALSE(objective_of(Objective::sustained).wants_low_energy());
  EXPECT_EQ(objective_of(Objective::sustained).refusal({50, true, false}),
            "reports neither its temperature nor its clock, so nothing shows when it is steady");
}

}  // namespace
}  // namespace pascaline::testing
