#include "tuner/sweep/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

namespace pascaline::testing {
namespace {

TEST_F(SimulatedSweepTest, StoresEveryTrialAndDecides) {
  int events = 0;
  events_.trial = [&](const Trial&, int done, int planned, double, double) {
    EXPECT_EQ(done, ++events);
    EXPECT_EQ(planned, 100);
  };
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 9);
  EXPECT_EQ(events, 9);
  EXPECT_EQ(summary.ok, 3);
  EXPECT_EQ(summary.reused, 0);
  EXPECT_EQ(summary.problems.done, 1);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(tried().size(), 9U);
  const std::vector<StoredTrial> search = stored(TrialStage::search);
  const auto ended = [&](Fault fault, TrialStatus status) {
    return std::count_if(search.begin(), search.end(), [&](const StoredTrial& stored) {
      return stored.trial.config.integer("FAULT") == fault && stored.trial.status == status;
    });
  };
  EXPECT_EQ(ended(kRight, TrialStatus::ok) + ended(kRight, TrialStatus::dropped), 3);
  EXPECT_EQ(ended(kNotANumber, TrialStatus::wrong_result), 3);
  EXPECT_EQ(ended(kDoesNotCompile, TrialStatus::compile_failed), 3);
  const Store store(database_, OpenMode::read_only);
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0].state, "finished");
  EXPECT_EQ(sessions[0].command_line, "a test");
  EXPECT_TRUE(sessions[0].finished_unix_ms);
  expect_sound();
}

TEST_F(SimulatedSweepTest, DefaultIsMeasuredFirstAndIsAFinalist) {
  options_.trials = 4;
  options_.finalists = 1;
  std::ignore = sweep();
  const auto search = stored(TrialStage::search);
  EXPECT_TRUE(std::any_of(search.begin(), search.end(), [](const auto& trial) { return trial.trial.is_default; }));
  EXPECT_EQ(search.size(), 4U);
  const auto finals = stored(TrialStage::finals);
  EXPECT_LE(finals.size(), 2U);
  EXPECT_EQ(std::count_if(finals.begin(), finals.end(), [](const auto& trial) { return trial.trial.is_default; }), 1);
  const auto winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_EQ(winners[0].trial.problem.text(), "toy N=1000");
  ASSERT_TRUE(winners[0].baseline);
  EXPECT_LE(winners[0].trial.time->median_us, winners[0].baseline->median_us);
  EXPECT_GE(winners[0].confidence, 0.5);
}

TEST_F(SimulatedSweepTest, SecondRunMeasuresOnlyWhatIsNew) {
  options_.trials = 4;
  EXPECT_EQ(sweep().trials, 4);
  options_.search.seed = 99;
  const SweepSummary second = sweep();
  EXPECT_EQ(second.reused, 4);
  EXPECT_EQ(second.trials, 4);
  const SweepSummary third = sweep();
  EXPECT_EQ(third.trials, 1);
  EXPECT_EQ(tried().size(), 9U);
  const SweepSummary fourth = sweep();
  EXPECT_EQ(fourth.trials, 0);
  EXPECT_EQ(fourth.reused, 9);
  EXPECT_EQ(fourth.reused_ok, 3);
  EXPECT_EQ(fourth.problems.done, 1) << "the finals are run again";
  EXPECT_EQ(tried().size(), 9U);
}

TEST_F(SimulatedSweepTest, ChangedSourceIsMeasuredAfresh) {
  EXPECT_EQ(sweep().trials, 9);
  write_bytes(folder_ / "toy.cu", bytes_of(folder_ / "toy.cu") + "// changed\n");
  const SweepSummary second = sweep();
  EXPECT_EQ(second.reused, 0);
  EXPECT_EQ(second.trials, 9);
}

TEST_F(SimulatedSweepTest, ValuesTheSpaceLostAreLeftOut) {
  EXPECT_EQ(sweep().trials, 9);
  nlohmann::json json = toy_json({kRight, kNotANumber});
  json["parameters"][0]["values"] = {64, 128, 256};
  space_ = Space::parse(json.dump(), "toy.json");
  const SweepSummary second = sweep();
  EXPECT_EQ(second.reused, 4);
  EXPECT_EQ(second.trials, 2);
}

TEST_F(SimulatedSweepTest, StoppedSweepIsInterruptedAndContinuesLater) {
  events_.trial = [&](const Trial&, int done, int, double, double) { stop_ = stop_ || done == 3; };
  const SweepSummary first = sweep({"1000", "500"});
  EXPECT_TRUE(first.interrupted);
  EXPECT_GE(first.trials, 3);
  EXPECT_EQ(first.problems.done, 1) << "provisional";
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
  stop_ = false;
  events_ = {};
  const SweepSummary second = sweep({"1000"});
  EXPECT_FALSE(second.interrupted);
  EXPECT_EQ(second.reused, first.trials);
  EXPECT_EQ(second.trials, 9 - first.trials);
  EXPECT_EQ(last_state(), "finished");
  EXPECT_EQ(tried().size(), 9U);
}

TEST_F(SimulatedSweepTest, StoppedBeforeTheFirstTrialIsInterrupted) {
  stop_ = true;
  EXPECT_TRUE(sweep().interrupted);
  EXPECT_EQ(last_state(), "interrupted");
}

TEST_F(SimulatedSweepTest, StoppedBetweenProblemsIsInterrupted) {
  events_.winner = [&](const std::string&, const SweepProblem&, const FinalsResult&, int) { stop_ = true; };
  const SweepSummary summary = sweep({"1000", "500"});
  EXPECT_TRUE(summary.interrupted);
  EXPECT_EQ(summary.problems.done, 1);
  EXPECT_EQ(last_state(), "interrupted");
}

TEST_F(SimulatedSweepTest, TimeThatIsOverEndsTheSearch) {
  options_.budget_s = 8;
  options_.trials = kUnlimitedTrials;
  options_.measure.min_samples = 1'000'000;
  options_.measure.max_samples = 1'000'000;
  options_.measure.budget_ms = 1800;  // six such trials are more than there is time for
  options_.measure.race_error = 0;
  const SweepSummary summary = sweep({"100000", "100001"});
  EXPECT_GE(summary.problems.done, 1) << "what was measured is decided on";
  EXPECT_LT(summary.trials, 18);
  EXPECT_LE(summary.times.wall_s, 8.2);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(last_state(), "finished");
}

TEST_F(SimulatedSweepTest, NothingUsableHasNoWinner) {
  space_ = make_space({kDeadlock, kNotANumber});
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 6);
  EXPECT_EQ(summary.ok, 0);
  EXPECT_EQ(summary.problems.done, 1);
  EXPECT_TRUE(Store(database_, OpenMode::read_only).winners("toy", nullptr).empty());
  EXPECT_EQ(sweep().reused_ok, 0);
}

TEST_F(SimulatedSweepTest, FaultsEndTheSessionAndKeepWhatIsStored) {
  EXPECT_EQ(sweep().trials, 9);
  const std::vector<StoredTrial> before = stored(TrialStage::search);
  write_bytes(folder_ / "toy.cu", bytes_of(folder_ / "toy.cu") + "// changed\n");
  broken_references.insert("toy_reference");
  try {
    std::ignore = sweep();
    FAIL() << "there is no reference";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'toy_reference' cannot be used"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("toy.cu"), std::string::npos) << error.what();
  }
  EXPECT_EQ(last_state(), "failed");
  const std::vector<StoredTrial> after = stored(TrialStage::search);
  const auto is_kept = [&](const StoredTrial& trial) {
    return std::any_of(before.begin(), before.end(), [&](const StoredTrial& one) { return one.id == trial.id; });
  };
  EXPECT_EQ(std::count_if(after.begin(), after.end(), is_kept), 9);
  for (const StoredTrial& trial : after) {
    // What the compiler refused before the reference was compiled is a trial, too; nothing was measured.
    EXPECT_TRUE(is_kept(trial) || trial.trial.status == TrialStatus::compile_failed) << trial.trial.config.text();
  }
  expect_sound();
}

// A default that an earlier sweep died on has no time; without one, anything would win unopposed.
TEST_F(SimulatedSweepTest, DefaultAnEarlierSweepDiedOnIsTriedOnceMore) {
  options_.trials = 1;
  EXPECT_EQ(sweep().trials, 1);
  SQLite::Database(database_.string(), SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE trials SET status = 'crashed', median_us = NULL, low_us = NULL, high_us = NULL, "
          "sample_count = NULL WHERE stage = 'search'");
  options_.trials = 3;
  EXPECT_EQ(sweep().reused, 1);
  const auto winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_FALSE(winners.empty());
  EXPECT_TRUE(winners[0].baseline);
}

// The emulated device has the limits of sm_61.
TEST_F(SimulatedSweepTest, TheDefaultIsThatOfTheArchitecture) {
  nlohmann::json text = toy_json({kRight});
  text["defaults"]["sm_61"]["BLOCK"] = 128;
  write_toys(folder_.path(), {text});
  space_ = Space::load(folder_ / "toy.json");
  (void)sweep();
  for (const TrialStage stage : {TrialStage::search, TrialStage::finals}) {
    for (const StoredTrial& trial : stored(stage)) {
      EXPECT_EQ(trial.trial.is_default, trial.trial.config == toy_config(128)) << trial.trial.config.text();
    }
  }
  EXPECT_EQ(stored(TrialStage::search).front().trial.config, toy_config(128)) << "the first that is measured";
}

TEST_F(SimulatedSweepTest, DroppedTrialsOfAResumedRunAreCounted) {
  nlohmann::json json = toy_json({kRight});
  json["parameters"][0].update({{"values", {512, 1, 2}}, {"default", 512}});  // a block of one thread is far slower
  write_toys(folder_.path(), {json});
  space_ = Space::load(folder_ / "toy.json");
  std::int64_t seen = 0;
  events_.view = [&](const SweepView& view) { seen = view.dropped; };
  const SweepSummary summary = sweep({"100000"});
  const auto dropped = [&] {
    const std::vector<StoredTrial> trials = stored(TrialStage::search);
    return std::ranges::count_if(trials, [](const StoredTrial& stored) {
      return stored.trial.status == TrialStatus::dropped && stored.trial.shared_trial == 0;
    });
  };
  EXPECT_GT(summary.dropped, 0);
  EXPECT_EQ(summary.dropped, dropped());
  EXPECT_EQ(summary.times.trials.dropped, dropped());
  EXPECT_EQ(seen, dropped());
  EXPECT_EQ(summary.ok, 3) << "they are usable";
}

}  // namespace
}  // namespace pascaline::testing
