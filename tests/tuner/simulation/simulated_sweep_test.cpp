#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tuner/simulation/simulated_fixture.hpp"

namespace pascaline::testing {
namespace {

TEST_F(SimulatedSweepTest, DoesWhatASweepDoes) {
  const SweepSummary summary = sweep({"1000", "2000"});
  EXPECT_EQ(summary.trials, 18);
  EXPECT_EQ(summary.ok, 6);
  EXPECT_EQ(summary.problems.done, 2);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(last_state(), "finished");
  const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_EQ(winners.size(), 2U);
  EXPECT_EQ(winners[0].trial.config, toy_config(128));
  expect_sound();
}

TEST_F(SimulatedSweepTest, TheSameAgainIsTheSame) {
  const double first_s = sweep().times.wall_s;
  std::filesystem::remove(database_);
  EXPECT_NEAR(sweep().times.wall_s, first_s, 1e-6);
}

TEST_F(SimulatedSweepTest, AnInterruptEndsItAfterTheTrialOnTheDevice) {
  simulation_.clock().at(2, [this] { stop_ = true; });
  const SweepSummary summary = sweep();
  EXPECT_TRUE(summary.interrupted);
  EXPECT_NEAR(summary.times.wall_s, 2, 0.6);
  EXPECT_GT(summary.trials, 0);
  EXPECT_LT(summary.trials, 9);
  EXPECT_EQ(stage_of_winner("1000"), TrialStage::search) << "provisional";
  stop_ = false;
  options_.record.resume_run = summary.run;
  EXPECT_EQ(sweep().trials, 9);
  EXPECT_EQ(tried().size(), 9U);
  EXPECT_EQ(stage_of_winner("1000"), TrialStage::finals);
  expect_sound();
}

TEST_F(SimulatedSweepTest, AResumeTurnsFirstToWhatTheInterruptLeft) {
  const std::vector<std::string> sizes{"400000", "399999", "399998", "399997"};
  options_.budget_s = 1000;
  events_.trial = [&](const Trial&, int done, int, double, double) { stop_ = stop_ || done == 8; };
  const SweepSummary summary = sweep(sizes);
  EXPECT_EQ(stage_of_winner("400000"), TrialStage::search);
  stop_ = false;
  std::vector<std::string> turns;
  events_ = {};
  events_.problem = [&](const std::string&, const SweepProblem& wanted, std::size_t) {
    turns.push_back(wanted.problem.text());
  };
  options_.record.resume_run = summary.run;
  EXPECT_GT(sweep(sizes).trials, summary.trials);
  ASSERT_FALSE(turns.empty());
  EXPECT_EQ(turns.front(), "toy N=400000");
  EXPECT_EQ(stage_of_winner("400000"), TrialStage::finals);
}

TEST_F(SimulatedSweepTest, AnInterruptWaitsForAKernelThatHangsUntilItsDeadline) {
  space_ = make_space({kEndless, kRight});
  options_.waits.kernel_timeout_s = 100;
  double stopped_s = 0;
  simulation_.clock().at(30, [&] {
    stop_ = true;
    stopped_s = 30;
  });
  const SweepSummary summary = sweep();
  EXPECT_TRUE(summary.interrupted);
  EXPECT_GT(summary.times.wall_s, stopped_s + 50);
  EXPECT_LT(summary.times.wall_s, 105);
  EXPECT_EQ(summary.trials, 1);
  EXPECT_EQ(summary.crashed, 1);
  EXPECT_TRUE(noted("stopping after this trial, at most 1 min"));
  expect_sound();
}

TEST_F(SimulatedSweepTest, ADeviceThatIsLostEndsItWithAReason) {
  simulation_.clock().at(2, [this] { simulation_.labs().back()->lose_device(); });
  const SweepSummary summary = sweep();
  EXPECT_LT(summary.trials, 9);
  EXPECT_EQ(summary.end.reason, "emulator: the device was lost");
  expect_sound();
}

TEST_F(SimulatedSweepTest, WhatIsProposedFirstIsBuiltFirst) {
  use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  options_.search.searcher = "exhaustive";
  options_.search.min_gain = 0;
  const auto order = [&](std::size_t jobs) {
    options_.compile.jobs = jobs;
    options_.database = database_ = folder_ / fmt::format("{}.db", jobs);
    EXPECT_EQ(sweep().trials, 8);
    std::vector<std::string> configs;
    for (const StoredTrial& trial : stored(TrialStage::search)) {
      configs.push_back(trial.trial.config.text());
    }
    return configs;
  };
  EXPECT_EQ(order(3), order(1));
}

TEST_F(SimulatedSweepTest, CompilersWorkForTheNextTurnsWhileADeviceIsBusy) {
  std::vector<int> blocks;
  for (int block = 32; block <= 1024; block += 8) {
    blocks.push_back(block);
  }
  std::vector<std::string> sizes;
  for (int size = 1000; size < 4000; size += 100) {
    sizes.push_back(std::to_string(size));
  }
  use_space({kRight}, blocks);
  options_.trials = kUnlimitedTrials;
  options_.compile.jobs = 16;
  options_.budget_s = 120;
  compile_seconds = 4;
  verify_seconds = 0.05;
  const SweepSummary summary = sweep(sizes);
  EXPECT_GT(summary.trials, 0.7 * 16 * 120 / compile_seconds) << "most compiled configurations are tried";
}

TEST_F(SimulatedSweepTest, ABudgetIsKept) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 600;
  const SweepSummary summary = sweep({"1000", "2000", "4000"});
  EXPECT_LE(summary.times.wall_s, 601);
  EXPECT_EQ(summary.problems.done, 3);
  EXPECT_FALSE(summary.interrupted);
}

}  // namespace
}  // namespace pascaline::testing
