#include <gtest/gtest.h>

#include <random>

#include "core/util/statistics.hpp"
#include "tests/tuner/finals/made_samples.hpp"

namespace pascaline::testing {
namespace {

Trial trial_of(bool is_default, const std::vector<double>& times, std::int64_t name = 0) {
  Trial trial;
  trial.is_default = is_default;
  trial.config = Config({{"NAME", name}});
  for (const double time_us : times) {
    trial.samples.emplace_back().time_us = time_us;
  }
  trial.time = summarize(trial.samples);
  return trial;
}

std::vector<double> around(double center_us, double step_us = 0.01) {
  std::vector<double> times;
  for (int i = -10; i <= 10; ++i) {
    times.push_back(center_us + i * step_us);
  }
  return times;
}

FinalsResult undecided(std::vector<Trial> trials) {
  FinalsResult result;
  result.trials = std::move(trials);
  return result;
}

FinalsResult decided(std::vector<Trial> trials) {
  FinalsResult result = undecided(std::move(trials));
  decide_finals(result, FinalsOptions());
  return result;
}

bool settled(const std::vector<Trial>& trials) {
  const FinalsOptions options;
  return time_objective().compare({}, trials, options)->settled();
}

TEST(DecideFinals, LooksEveryFiveRoundsFromTheTenth) {
  std::vector<int> looks;
  for (int round = 1; round <= 40; ++round) {
    if (FinalsOptions().looks().due_after(round)) {
      looks.push_back(round);
    }
  }
  EXPECT_EQ(looks, (std::vector<int>{10, 15, 20, 25, 30, 35, 40}));
  EXPECT_TRUE(FinalsOptions{.rounds = 3}.looks().due_after(3));
  EXPECT_FALSE(FinalsOptions{.rounds = 3}.looks().due_after(2));
  EXPECT_TRUE(FinalsOptions{.rounds = 13}.looks().due_after(13));
  EXPECT_EQ(FinalsOptions().looks().count(), 7);
  EXPECT_EQ(FinalsOptions{.rounds = 13}.looks().count(), 2);
  EXPECT_EQ(FinalsOptions{.rounds = 3}.looks().count(), 1);
}

TEST(DecideFinals, TiesGoToTheDefault) {
  const FinalsResult result = decided({trial_of(false, around(9.998)), trial_of(true, around(10))});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.confidence, 0.5);
  EXPECT_TRUE(result.tie);
  ASSERT_TRUE(result.baseline);
  EXPECT_EQ(result.baseline->median_us, 10);
}

TEST(DecideFinals, SignificantlyFasterWinsWithItsConfidence) {
  const FinalsResult result =
      decided({trial_of(false, around(9.5)), trial_of(true, around(10)), trial_of(false, around(8))});
  EXPECT_EQ(result.winner, 2U);
  EXPECT_FALSE(result.tie);
  EXPECT_GT(result.confidence, 0.999);
  EXPECT_LE(result.confidence, 1.0);
  EXPECT_EQ(result.baseline->median_us, 10);
}

// p is about 0.005: below what is asked of all looks together, above what each may spend.
TEST(DecideFinals, ThePValueIsSplitOverTheLooks) {
  const std::vector<Trial> close{trial_of(false, around(9.94)), trial_of(true, around(10))};
  const double p = mann_whitney_p(around(9.94), around(10));
  ASSERT_LT(p, 0.01);
  ASSERT_GT(p, 0.01 / 7);
  EXPECT_EQ(decided(close).winner, 1U);
  FinalsResult once = undecided(close);
  decide_finals(once, {.rounds = 10});
  EXPECT_EQ(once.winner, 0U) << "a single look";
  EXPECT_DOUBLE_EQ(once.confidence, 1 - p / 2);
}

TEST(DecideFinals, FastestDefaultStays) {
  const FinalsResult result = decided({trial_of(false, around(12)), trial_of(true, around(10))});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.confidence, 0.5);
  EXPECT_FALSE(result.tie);
}

TEST(DecideFinals, TiedVariantsAreTakenInAStableOrder) {
  const Trial a = trial_of(false, around(8.001), 1);
  const Trial b = trial_of(false, around(8), 2);
  const Trial standard = trial_of(true, around(10), 0);
  for (const auto& trials : {std::vector<Trial>{a, b, standard}, std::vector<Trial>{standard, b, a}}) {
    const FinalsResult result = decided(trials);
    EXPECT_EQ(result.trials[result.winner].config, a.config) << "though the other's median is lower";
    EXPECT_TRUE(result.tie);
    EXPECT_GT(result.confidence, 0.999);
  }
  const FinalsResult alone = decided({b, a});
  EXPECT_EQ(alone.winner, 1U);
  EXPECT_EQ(alone.confidence, 1.0);
  EXPECT_FALSE(alone.baseline);
}

// First by its text and tied with the fastest, but too few of its times to be told from the default.
TEST(DecideFinals, AVariantThatMerelyTiesWithTheFastestDoesNotBeatTheDefault) {
  const FinalsResult result =
      decided({trial_of(false, {8, 8.01, 8.02}, 1), trial_of(false, around(8), 2), trial_of(true, around(10), 3)});
  EXPECT_TRUE(result.tie);
  EXPECT_EQ(result.winner, 1U);
}

TEST(DecideFinals, WithoutDefaultTheFastestWins) {
  const FinalsResult result = decided({trial_of(false, around(12)), trial_of(false, around(10))});
  EXPECT_EQ(result.winner, 1U);
  EXPECT_FALSE(result.baseline);
  EXPECT_EQ(result.confidence, 1.0);
}

TEST(DecideFinals, WhatStandsInForTheDefaultIsTheBaseline) {
  FinalsResult result;
  result.trials = {trial_of(false, around(10)), trial_of(false, around(20))};
  result.trials[0].config = Config({{"A", std::int64_t{1}}});
  result.trials[1].config = Config({{"A", std::int64_t{2}}});
  for (Trial& trial : result.trials) {
    trial.time = summarize(trial.samples);
  }
  FinalsOptions options;
  options.stand_in = "A=2";
  decide_finals(result, options);
  EXPECT_EQ(result.winner, 0U);
  EXPECT_EQ(result.baseline_trial, 1U);
  ASSERT_TRUE(result.baseline);
  EXPECT_NEAR(result.baseline->median_us, 20, 1);
  EXPECT_GT(result.confidence, 0.99);
}

Trial searched(double median_us, double half_width_us) {
  Trial trial;
  trial.time = TimeSummary{median_us, median_us - half_width_us, median_us + half_width_us, 10};
  return trial;
}

TEST(DecideFromSearch, ClaimsNoMoreThanItKnows) {
  const FinalsResult clear = decide_from_search({searched(10, 0.1), searched(20, 0.1)}, 1, 10);
  EXPECT_TRUE(clear.from_search);
  EXPECT_EQ(clear.winner, 0U);
  EXPECT_EQ(clear.confidence, 0.95) << "they were not timed in turn";
  EXPECT_EQ(clear.baseline->median_us, 20);
  const FinalsResult close = decide_from_search({searched(10, 0.1), searched(10.1, 0.1)}, 1, 10);
  EXPECT_EQ(close.winner, 1U) << "the baseline stays";
  EXPECT_EQ(close.confidence, 0.5);
  const FinalsResult wide = decide_from_search({searched(10, 8), searched(20, 8)}, 1, 10);
  EXPECT_EQ(wide.winner, 1U);
  // One of many is the fastest by luck where one of two is not.
  const auto of = [](std::size_t measured) {
    return decide_from_search({searched(10, 0.1), searched(10.4, 0.1)}, 1, measured).winner;
  };
  EXPECT_EQ(of(1), 0U);
  EXPECT_EQ(of(1000), 1U);
}

TEST(DecideFromSearch, TheBaselineAloneStaysAndWithoutOneNothingIsClaimed) {
  const FinalsResult alone = decide_from_search({searched(10, 0.1)}, 0, 1);
  EXPECT_EQ(alone.winner, 0U);
  EXPECT_EQ(alone.confidence, 0.5);
  EXPECT_TRUE(alone.baseline);
  const FinalsResult none = decide_from_search({searched(10, 0.1)}, std::nullopt, 5);
  EXPECT_EQ(none.winner, 0U);
  EXPECT_FALSE(none.baseline);
  EXPECT_EQ(none.confidence, 0.5);
}

// Its median is lower, yet it is slower far more often: a two-sided test alone would take it.
TEST(DecideFinals, LowerMedianButSlowerAsARuleDoesNotWin) {
  std::vector<double> torn(301, 9.9);
  std::fill(torn.begin(), torn.begin() + 150, 50.0);
  std::vector<double> steady(301, 10.0);
  std::fill(steady.begin(), steady.begin() + 149, 9.0);
  const FinalsResult result = decided({trial_of(false, torn), trial_of(true, steady)});
  ASSERT_LT(result.trials[0].time->median_us, result.trials[1].time->median_us);
  ASSERT_LT(mann_whitney_p(torn, steady), 0.01 / 7);
  EXPECT_EQ(result.winner, 1U);
}

// Oftener faster by ranks, its median is higher: "0.87 times as fast" is no gain, whatever the confidence.
TEST(DecideFinals, OftenerFasterButWithAHigherMedianIsNoWinner) {
  std::vector<double> torn(301, 8.0);
  std::fill(torn.begin(), torn.begin() + 151, 12.0);
  std::vector<double> standard(301, 10.0);
  std::fill(standard.begin(), standard.begin() + 140, 60.0);
  const Trial slower = trial_of(false, torn, 1);
  const Trial fastest = trial_of(false, around(9, 0.001), 2);  // before and behind the torn one equally often
  const Trial other = trial_of(true, standard, 3);
  ASSERT_GT(slower.time->median_us, other.time->median_us);
  ASSERT_LT(mann_whitney_p(torn, standard), 0.01 / 7);
  ASSERT_GT(probability_faster(torn, standard), 0.5);
  const FinalsResult result = decided({slower, fastest, other});
  EXPECT_EQ(result.winner, 1U) << "though the other is the first by its text";
  EXPECT_TRUE(result.tie);
}

TEST(DecideFinals, SamplesThatDoNotCountDecideNothing) {
  Trial fast = trial_of(false, around(10));
  for (int i = 0; i < 100; ++i) {
    Sample& sample = fast.samples.emplace_back();
    sample.time_us = 1.0;
    sample.mark = SampleMark::clock_drift;
  }
  fast.time = summarize(fast.samples);
  EXPECT_EQ(decided({fast, trial_of(true, around(10))}).winner, 1U);
}

TEST(DecideFinals, SettledWhenOneIsLeftOrAllAreTheSame) {
  EXPECT_TRUE(settled({trial_of(false, around(8)), trial_of(true, around(10))}));
  EXPECT_TRUE(
      settled({trial_of(false, around(8, 0.004)), trial_of(false, around(8.002, 0.004)), trial_of(true, around(10))}));
  EXPECT_FALSE(settled({trial_of(false, around(8, 0.1)), trial_of(true, around(8.01, 0.1))})) << "not known well";
  EXPECT_FALSE(settled({trial_of(false, {8, 8.01, 8.02}), trial_of(true, {8.1, 8.1, 8.1})})) << "1 % apart, too few";
}

// What the p-value promises: of variants no faster than the default hardly any wins.
TEST(DecideFinals, EqualVariantsHardlyEverWin) {
  int wins = 0;
  for (std::uint32_t repeat = 0; repeat < 300; ++repeat) {
    Finals finals(made_trials(2, 1), objective_of(Objective::time), FinalsOptions());
    MadeSamples samples({{}, {}}, 0.01, repeat);
    wins += samples.run(finals).value().winner == 0 ? 1 : 0;
  }
  EXPECT_LE(wins, 5) << "1.5 are allowed on average";
}

// What finals decided before: NAME=1 against the default, NAME=0, both known to 0.02 %.
FinalsOptions after(double winner_us, double default_us) {
  FinalsOptions options;
  const auto known = [](double time_us) { return TimeSummary{time_us, 0.9998 * time_us, 1.0002 * time_us, 120}; };
  options.standing = StandingDecision{"NAME=1", known(winner_us), known(default_us), "NAME=0", 50.0, 1.0};
  return options;
}

FinalsResult decided_after(const FinalsOptions& options, std::vector<Trial> trials) {
  FinalsResult result = undecided(std::move(trials));
  for (Trial& trial : result.trials) {
    trial.canary_us = 50.0;
  }
  decide_finals(result, options);
  return result;
}

std::vector<Trial> standing_and_default(const std::vector<double>& standing, const std::vector<double>& baseline) {
  return {trial_of(false, standing, 1), trial_of(true, baseline, 0)};
}

TEST(DecideFinalsAgain, NoisierOnesInWhichTheDefaultTiesLeaveTheDecision) {
  const auto trials = standing_and_default(around(9.95, 0.3), around(10, 0.3));
  ASSERT_EQ(decided(trials).winner, 1U) << "by these alone";
  const FinalsResult result = decided_after(after(9.5, 10), trials);
  EXPECT_EQ(result.winner, 0U);
  EXPECT_TRUE(result.stays);
  EXPECT_GT(result.confidence, 0.995);
  EXPECT_LE(result.confidence, 1);
}

TEST(DecideFinalsAgain, BetterOnesDecideAnew) {
  const auto tie = standing_and_default(around(9.9999, 0.0003), around(10, 0.0003));
  FinalsOptions noisy = after(9.5, 10);
  noisy.standing->time = {9.8, 9.5, 10.1, 30};  // 21 samples come now
  noisy.standing->baseline = TimeSummary{10, 9.7, 10.3, 30};
  const FinalsResult lost = decided_after(noisy, tie);
  EXPECT_EQ(lost.winner, 1U) << "the earlier ones knew it too little to weigh against these";
  EXPECT_EQ(lost.confidence, 0.5);
  EXPECT_FALSE(lost.stays);
  const FinalsResult won = decided_after(noisy, standing_and_default(around(9.5), around(10)));
  EXPECT_EQ(won.winner, 0U);
  EXPECT_FALSE(won.stays) << "these tell better by how much";
  EXPECT_GT(won.confidence, 0.999);
}

TEST(DecideFinalsAgain, WhatIsSignificantlyFasterSideBySideTakesTheWinnersPlace) {
  std::vector<Trial> trials = standing_and_default(around(9.5), around(10));
  trials.push_back(trial_of(false, around(9), 2));
  const FinalsResult faster = decided_after(after(9.5, 10), trials);
  EXPECT_EQ(faster.winner, 2U);
  EXPECT_FALSE(faster.stays);
  const FinalsResult slower = decided_after(after(9.5, 10), standing_and_default(around(10.2), around(10)));
  EXPECT_EQ(slower.winner, 1U) << "the default is, whatever was known before";
  EXPECT_FALSE(slower.stays);
}

// First by its text and tied with the fastest, but not told from the standing winner, which is not in the tie.
TEST(DecideFinalsAgain, WhatMerelyTiesWithTheFastestDoesNot) {
  std::vector<Trial> trials{trial_of(false, around(9.45, 0.03), 15), trial_of(false, around(9.4), 2),
                            trial_of(false, around(9.5), 1), trial_of(true, around(12), 0)};
  ASSERT_EQ(decided(trials).winner, 0U) << "NAME=15 comes before NAME=2";
  EXPECT_EQ(decided_after(after(9.5, 12), trials).winner, 1U);
}

// The standing winner has too few samples to beat the default; what replaces it is faster than it, or the fastest.
TEST(DecideFinalsAgain, WhatIsNotFasterThanTheStandingWinnerDoesNotReplaceIt) {
  const std::vector<Trial> trials{trial_of(false, around(9.45, 0.03), 15), trial_of(false, around(9.4), 2),
                                  trial_of(false, {9.41, 9.42, 9.43}, 1), trial_of(true, around(12), 0)};
  ASSERT_EQ(decided(trials).winner, 0U) << "NAME=15 comes before NAME=2";
  FinalsOptions options = after(9.5, 12);
  options.standing->baseline_config = "NAME=7";
  EXPECT_EQ(decided_after(options, trials).winner, 1U);
}

TEST(DecideFinalsAgain, OfATieTheStandingWinnerIsTaken) {
  std::vector<Trial> trials{trial_of(false, around(9.501), 1), trial_of(false, around(9.5), 0),
                            trial_of(true, around(10), 3)};
  EXPECT_EQ(decided(trials).winner, 1U) << "NAME=0 is the first by its text";
  FinalsOptions options = after(9.5, 10);
  options.standing->baseline_config = "NAME=3";
  EXPECT_EQ(decided_after(options, trials).winner, 0U);
  EXPECT_TRUE(decided_after(options, trials).stays);
  const FinalsResult alone = decided_after(options, {trials[0], trials[1]});
  EXPECT_EQ(alone.winner, 0U) << "there is no default";
  EXPECT_FALSE(alone.stays);
}

TEST(DecideFinalsAgain, EarlierOnesSayNothingOfAnotherClockAnotherBaselineOrAFewSamples) {
  const auto tie = standing_and_default(around(9.95, 0.3), around(10, 0.3));
  FinalsOptions options = after(9.5, 10);
  options.standing->canary_us = 51.5;
  EXPECT_EQ(decided_after(options, tie).winner, 1U) << "the clock was another one";
  options.standing->canary_us = 50.5;
  EXPECT_EQ(decided_after(options, tie).winner, 0U);
  options.standing->canary_us.reset();
  EXPECT_EQ(decided_after(options, tie).winner, 0U) << "a card that has no canary";
  options.standing->baseline_config = "NAME=7";
  EXPECT_EQ(decided_after(options, tie).winner, 1U);
  options.standing->baseline_config = "NAME=0";
  options.standing->time.count = 5;
  EXPECT_EQ(decided_after(options, tie).winner, 1U);
  options.standing->time.count = 6;
  EXPECT_EQ(decided_after(options, tie).winner, 0U);
  options.standing->config = "NAME=8";
  EXPECT_EQ(decided_after(options, tie).winner, 1U) << "what won is no finalist any more";
}

// Seven seconds on a busy machine, at another clock: what was 2.65 times as fast is not lost by it.
TEST(DecideFinalsAgain, AnotherClockWidensWhatWasKnown) {
  FinalsOptions options = after(44.39, 117.6);
  options.standing->time = {44.39, 42.6, 46.2, 120};
  options.standing->baseline = TimeSummary{117.6, 113, 122, 120};
  options.standing->canary_us = 51.2;
  const auto worthless = standing_and_default({40, 60, 91, 400, 1200, 2500}, {45, 70, 110, 420, 1100, 2400});
  ASSERT_EQ(decided(worthless).winner, 1U);
  const FinalsResult result = decided_after(options, worthless);
  EXPECT_EQ(result.winner, 0U);
  EXPECT_TRUE(result.stays);
  EXPECT_GT(result.confidence, 0.995);
  options.standing->canary_us = 100;  // twice the clock: a kernel that waits for memory gains nothing
  options.standing->baseline = TimeSummary{60, 58, 62, 120};
  EXPECT_EQ(decided_after(options, worthless).winner, 1U);
  const auto few = standing_and_default({40, 60, 91}, {45, 70, 110});
  options = after(9.5, 10);
  options.standing->canary_us = 51.5;
  EXPECT_EQ(decided_after(options, few).winner, 1U) << "5 % at a clock 3 % apart, and nothing else to go by";
  EXPECT_EQ(decided_after(after(9.5, 10), few).winner, 0U);
}

// Two finals that contradict each other by more than their errors explain: nobody knows, and the default stays.
TEST(DecideFinalsAgain, TwoThatContradictEachOtherMakeNoConfidence) {
  const LogSpeedup yes{0.05, 0.001, 8};
  const LogSpeedup no{0, 0.001, 0};
  EXPECT_LT(confidence_of_both(yes, no), 0.995);
  EXPECT_GT(confidence_of_both(yes, no), 0.5);
  EXPECT_GT(confidence_of_both(yes, {0.04, 0.02, 2}), 0.999999);
  EXPECT_NEAR(confidence_of_both({0.01, 0.01, 1}, {0.01, 0.01, 1}), 0.9214, 0.001) << "z is the square root of two";
  EXPECT_NEAR(confidence_of_both({0.01, 0.01, 1}, {-0.01, 0.01, -1}), 0.5, 1e-9);
  EXPECT_NEAR(normal_deviate(0.975), 1.96, 0.001);
  EXPECT_NEAR(normal_deviate(0.5), 0, 1e-9);
  EXPECT_NEAR(normal_deviate(0.025), -1.96, 0.001);
  EXPECT_NEAR(normal_deviate(1), 8, 1e-6);
}

// By luck a few samples lie close together.
TEST(DecideFinalsAgain, AFewSamplesDoNotTakeThePlaceOfMany) {
  FinalsOptions options = after(9.5, 10);
  options.standing->time = {9.5, 9.4, 9.6, 120};
  options.standing->baseline = TimeSummary{10, 9.9, 10.1, 120};
  std::vector<double> few{9.49, 9.5, 9.5, 9.5, 9.5, 9.51};
  const std::vector<double> standard{9.99, 10, 10, 10, 10, 10.01};
  options.rounds = 2;
  EXPECT_TRUE(decided_after(options, standing_and_default(few, standard)).stays);
  EXPECT_EQ(decided_after(options, standing_and_default(few, standard)).winner, 0U);
  const FinalsResult many = decided_after(options, standing_and_default(around(9.5, 0.001), around(10, 0.001)));
  EXPECT_TRUE(many.stays) << "21 of 120";
  options.standing->time.count = 84;
  EXPECT_FALSE(decided_after(options, standing_and_default(around(9.5, 0.001), around(10, 0.001))).stays);
}

// Times that scatter by a third, as on a machine that others use: ranks tell the two apart at once, medians hardly.
TEST(DecideFinalsAgain, WhatRanksToldCountsThoughMediansAreKnownLittle) {
  FinalsOptions options = after(3.5, 6.4);
  options.standing->time = {3.5, 2.5, 4.9, 120};
  options.standing->baseline = TimeSummary{6.4, 4.6, 8.1, 120};
  const FinalsResult result =
      decided_after(options, standing_and_default({3, 4, 5, 6, 7, 8}, {3.1, 4.1, 5.2, 6.3, 7.4, 8.5}));
  EXPECT_EQ(result.winner, 0U);
  EXPECT_TRUE(result.stays);
  EXPECT_EQ(options.standing->confidence, 1.0);
}

// Nights that are noisier than the first, in which the winner is 3 % faster as before.
TEST(DecideFinalsAgain, ManyNoisyNightsDoNotLoseTheWinner) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.5);
  int alone = 0;
  int kept = 0;
  constexpr int kNights = 200;
  for (int night = 0; night < kNights; ++night) {
    std::vector<double> winner;
    std::vector<double> standard;
    for (int i = 0; i < 60; ++i) {
      winner.push_back(9.7 + noise(random));
      standard.push_back(10 + noise(random));
    }
    const auto trials = standing_and_default(winner, standard);
    alone += decided(trials).winner == 0 ? 1 : 0;
    kept += decided_after(after(9.7, 10), trials).winner == 0 ? 1 : 0;
  }
  EXPECT_LT(alone, kNights * 3 / 4) << "the noise matters";
  EXPECT_EQ(kept, kNights);
}

}  // namespace
}  // namespace pascaline::testing
