#include "tuner/sweep/agenda.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pascaline::testing {
namespace {

constexpr AttainedRates kRates{1e6, 1e5, 0};

// Far from the rates above, after as many trials as tell something.
Outlook example_outlook() {
  Outlook problem;
  problem.calls = 10;
  problem.flops = 1e7;
  problem.bytes = 1e6;
  problem.time_us = 100;
  problem.measured = true;
  problem.last_doubling = 0.3;
  problem.trials = 64;
  problem.trial_s = 0.1;
  return problem;
}

double rate(const Outlook& problem) { return next_search(problem, kRates).rate(); }

TEST(AgendaTest, AttainedRatesAreTheHighestOfAnyBest) {
  Outlook compute = example_outlook();
  compute.flops = 1e9;
  compute.bytes = 1e3;
  Outlook memory = example_outlook();
  memory.flops = 1e3;
  memory.bytes = 1e8;
  Outlook unusable = example_outlook();
  unusable.time_us = 0;
  unusable.flops = 1e30;
  Outlook untried = example_outlook();
  untried.measured = false;
  untried.flops = 1e30;
  const AttainedRates rates = attained_rates(std::vector{compute, memory, unusable, untried});
  EXPECT_DOUBLE_EQ(rates.flops_per_us, 1e7);
  EXPECT_DOUBLE_EQ(rates.bytes_per_us, 1e6);
  EXPECT_EQ(rates.launch_us, 0) << "100 us are more than launching takes";
  EXPECT_EQ(attained_rates({}).flops_per_us, 0);
  Outlook shortest = example_outlook();
  shortest.time_us = 3.4;
  EXPECT_DOUBLE_EQ(attained_rates(std::vector{example_outlook(), shortest}).launch_us, 3.4);
  DeviceRates device;
  device.memory_gbps = 1e3;
  EXPECT_DOUBLE_EQ(attained_rates(std::vector{compute}, device).bytes_per_us, 1e6)
      << "memory was not what limited this problem";
  EXPECT_DOUBLE_EQ(attained_rates(std::vector{compute, memory}, device).flops_per_us, 1e7);
}

TEST(AgendaTest, OfUntriedProblemsTheOneWithTheLargestShareOfTheModelComesFirst) {
  Outlook small;
  small.time_us = 3;
  small.trial_s = 0.03;
  Outlook large = small;
  large.time_us = 3000;
  large.trial_s = 0.12;
  EXPECT_GT(rate(large), 100 * rate(small));
  Outlook often = small;
  often.calls = 1000;
  EXPECT_NEAR(rate(often), 1000 * rate(small), 1e-6 * rate(often));
  Outlook tuned = example_outlook();
  tuned.calls = 1e6;
  EXPECT_GT(rate(tuned), rate(small)) << "a second look at what the model spends its time on";
}

TEST(AgendaTest, WhatTakesLongToPrepareOrBuildWaits) {
  const Outlook problem = example_outlook();
  Outlook large_inputs = problem;
  large_inputs.preparation_s = 60;
  EXPECT_LT(rate(large_inputs), 0.5 * rate(problem));
  Outlook slow_build = problem;
  slow_build.build_s = 1;
  EXPECT_NEAR(rate(slow_build), rate(problem) / 10, 1e-6 * rate(problem));
  Outlook built_beside = problem;
  built_beside.build_s = 0.05;
  EXPECT_DOUBLE_EQ(rate(built_beside), rate(problem)) << "compilers work while the device measures";
}

TEST(AgendaTest, CompilersWithOtherWorkDelayOnlyWhatIsNotCompiled) {
  Outlook waiting = example_outlook();
  waiting.build_s = 0.1;
  waiting.wait_s = 3.2;
  EXPECT_NEAR(rate(waiting), rate(example_outlook()) / 2, 1e-6 * rate(waiting)) << "32 trials of a tenth of a second";
  Outlook compiled = waiting;
  compiled.ready = 32;
  EXPECT_DOUBLE_EQ(rate(compiled), rate(example_outlook()));
  compiled.ready = 16;
  EXPECT_NEAR(rate(compiled), rate(example_outlook()) / 1.5, 1e-6 * rate(compiled));
}

TEST(AgendaTest, LeastTimeIsThatOfArithmeticOrMemoryWithALaunch) {
  DeviceRates rates;
  rates.launch_us = 3;
  const double peak_flops_per_us = 1e3 * rates.peak_gflops();
  EXPECT_DOUBLE_EQ(least_time_us(7 * peak_flops_per_us, 1, rates), 10);
  EXPECT_DOUBLE_EQ(least_time_us(1, 5e3 * rates.memory_gbps, rates), 8);
  EXPECT_GT(least_time_us(1e6, 1, std::nullopt), least_time_us(1e6, 1, rates)) << "the emulated device";
}

TEST(AgendaTest, StagnationMovesOn) {
  const Outlook improving = example_outlook();
  Outlook stagnant = improving;
  stagnant.last_doubling = 0;
  EXPECT_LT(rate(stagnant), 0.5 * rate(improving));
  Outlook long_stagnant = stagnant;
  long_stagnant.trials *= 10;
  EXPECT_LT(rate(long_stagnant), 0.5 * rate(stagnant)) << "what is usual counts less with every trial";
  EXPECT_GT(rate(long_stagnant), 0);
}

TEST(AgendaTest, DoublingRecordLearnsFromSearches) {
  const int kind = 0;
  const int other = 1;
  DoublingRecord record;
  const double look = record.usual(&kind, 0);
  const double later = record.usual(&kind, kTrialsOfAction);
  EXPECT_GT(look, later) << "the portfolio is worth more than what comes after it";
  record.add(&kind, 100, 20, 20, 4 * kTrialsOfAction);
  EXPECT_GT(record.usual(&kind, 0), look);
  EXPECT_LT(record.usual(&kind, kTrialsOfAction), later);
  EXPECT_GT(record.usual(&other, 0), look);
  EXPECT_LT(record.usual(&other, 0), record.usual(&kind, 0)) << "other kinds count less";
  for (int i = 0; i < 100; ++i) {
    record.add(&kind, 100, 20, 10, 2 * kTrialsOfAction);
  }
  EXPECT_NEAR(record.usual(&kind, kTrialsOfAction), 0.5, 0.03);
  const double before = record.usual(&kind, kTrialsOfAction);
  record.add(&kind, 100, 60, 0, 40);
  EXPECT_EQ(record.usual(&kind, kTrialsOfAction), before) << "nothing usable is left";
  DoublingRecord slower;
  slower.add(&kind, 100, 50, 100, 40);
  EXPECT_GE(slower.usual(&kind, kTrialsOfAction), 0) << "the fastest failed in finals";
  Outlook expected = example_outlook();
  Outlook usual = expected;
  usual.usual_doubling = 0.5;
  EXPECT_GT(rate(usual), rate(expected));
}

TEST(AgendaTest, AtTheRooflineLittleIsExpected) {
  Outlook memory_bound = example_outlook();
  memory_bound.bytes = 1e7;  // 100 us at the attained rate
  EXPECT_LE(next_search(memory_bound, kRates).saved_us, memory_bound.calls * memory_bound.time_us * 0.1);
  Outlook known = memory_bound;
  known.trials = 0;
  EXPECT_LE(next_search(known, kRates).saved_us, known.calls * known.time_us * 0.1) << "from an earlier sweep";
  Outlook estimated = memory_bound;
  estimated.measured = false;
  EXPECT_GT(next_search(estimated, kRates).saved_us, next_search(known, kRates).saved_us);
  Outlook beyond = memory_bound;
  beyond.bytes = 2e7;
  EXPECT_EQ(rate(beyond), 0) << "never negative";
  EXPECT_LT(next_search(example_outlook(), {1e6, 1e5, 105}).saved_us, next_search(example_outlook(), kRates).saved_us)
      << "a launch takes its time";
}

TEST(AgendaTest, NothingUsableWaitsAndNothingKnownOfRatesIsNoLimit) {
  Outlook hopeless = example_outlook();
  hopeless.time_us = 0;
  EXPECT_EQ(rate(hopeless), 0);
  EXPECT_GT(next_search(example_outlook(), {}).rate(), 0);
}

}  // namespace
}  // namespace pascaline::testing
