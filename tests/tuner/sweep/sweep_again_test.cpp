#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/tuner/simulation/simulated_fixture.hpp"

// Finals of a later sweep, where the database has a decision for the same key.
namespace pascaline::testing {
namespace {

class SweepAgainTest : public SimulatedSweepTest {
 protected:
  // Launches so long that finals of few are seen.
  const std::vector<std::string> kLongLaunch{"40000000"};
  std::optional<FinalsResult> decided_;

  // Five configurations that differ in a number of their code alone: their times are alike.
  SweepAgainTest() {
    std::vector<Fault> alike;
    for (int i = 0; i < 5; ++i) {
      alike.push_back(static_cast<Fault>(kAlike + i));
    }
    nlohmann::json json = toy_json(alike);
    json["parameters"][0].update({{"values", {640}}, {"default", 640}});
    write_toys(folder_.path(), {json});
    space_ = Space::load(folder_ / "toy.json");
    events_.winner = [this](const std::string&, const SweepProblem&, const FinalsResult& result, int) {
      decided_ = result;
    };
  }
  // Four samples of each show no configuration to be slower than another, as thousands would.
  void few_samples() {
    options_.finals.rounds = options_.finals.min_rounds = 4;
    options_.finals.launches = 1;
  }
  [[nodiscard]] Winner winner() const { return Store(database_, OpenMode::read_only).winners("toy", nullptr).at(0); }
  [[nodiscard]] StoredTrial slowest_but_the_default() const {
    std::vector<StoredTrial> trials = stored(TrialStage::search);
    std::erase_if(trials, [](const StoredTrial& trial) { return trial.trial.is_default || !trial.trial.time; });
    return *std::ranges::max_element(trials, {}, [](const StoredTrial& trial) { return trial.trial.time->median_us; });
  }
  // As if finals in a quiet night had told that it takes that share of the default's time.
  std::int64_t plant_decision(Trial finalist, double share) {
    Store store(database_, OpenMode::read_write);
    SQLite::Database raw(database_.string());
    const auto id = [&](const std::string& column) {
      return raw.execAndGet("SELECT " + column + " FROM trials LIMIT 1").getInt64();
    };
    const ContextIds context{id("device_id"), id("toolkit_id"), id("kernel_id"), id("space_id"), id("problem_id")};
    const std::int64_t session = store.sessions().at(0).id;
    finalist.stage = TrialStage::finals;
    finalist.shared_trial = 0;
    const auto add = [&](Config config, bool is_default, double time_us) {
      finalist.config = std::move(config);
      finalist.is_default = is_default;
      finalist.time = TimeSummary{time_us, 0.9999 * time_us, 1.0001 * time_us, 120};
      return store.add_trial(session, context, finalist);
    };
    const double default_us = finalist.time->median_us;
    const std::int64_t winner = add(finalist.config, false, share * default_us);
    add(toy_config(640, kAlike), true, default_us);
    store.set_winner(context, winner, finalist.time, 1.0);
    return winner;
  }
};

TEST_F(SweepAgainTest, ANoisierTieLeavesTheDecisionAsItIs) {
  options_.finalists = 1;
  std::ignore = sweep();
  const StoredTrial slowest = slowest_but_the_default();
  const std::int64_t planted = plant_decision(slowest.trial, 0.5);
  const Winner before = winner();
  std::ignore = sweep();
  const Winner after = winner();
  EXPECT_EQ(after.trial_id, planted);
  EXPECT_EQ(after.trial.config, slowest.trial.config);
  EXPECT_EQ(after.confidence, 1.0);
  EXPECT_EQ(after.baseline->median_us, before.baseline->median_us);
  EXPECT_GT(after.decided_unix_ms, before.decided_unix_ms) << "decided for once more";
  ASSERT_TRUE(decided_);
  EXPECT_TRUE(decided_->stays);
  ASSERT_TRUE(decided_->shown.standing);
  EXPECT_EQ(decided_->shown.standing->confidence, 1.0);
  const Trial& compared = decided_->trials.at(decided_->winner);
  EXPECT_EQ(compared.config, slowest.trial.config) << "though it is not the fastest that the search found";
  const Store store(database_, OpenMode::read_only);
  EXPECT_TRUE(std::ranges::any_of(store.trials({}), [&](const StoredTrial& trial) {
    return trial.session_id == store.sessions().at(0).id && trial.trial.stage == TrialStage::finals &&
           trial.trial.config == slowest.trial.config;
  })) << "the new finals are stored, too";
  expect_sound();
}

// Another process decides while finals run: the later ones weigh it as any earlier decision, or leave it.
TEST_F(SweepAgainTest, WhatAnotherSweepDecidesMeanwhileIsNotOverwritten) {
  few_samples();
  for (const int finalists : {5, 1}) {
    options_.finalists = finalists;
    std::ignore = sweep(kLongLaunch);
    const StoredTrial slowest = slowest_but_the_default();
    SQLite::Database(database_.string(), SQLite::OPEN_READWRITE).exec("DELETE FROM winners; DELETE FROM decisions");
    std::int64_t planted = 0;
    events_.view = [&](const SweepView& view) {
      if (planted == 0 && view.devices.at(0).stage == "finals") {
        planted = plant_decision(slowest.trial, 0.5);
      }
    };
    std::ignore = sweep(kLongLaunch);
    events_.view = nullptr;
    ASSERT_NE(planted, 0) << "finals were not seen";
    EXPECT_EQ(winner().trial.config, slowest.trial.config) << finalists << " finalists";
    EXPECT_EQ(winner().trial_id, planted);
  }
}

// Which decision it is does not hang on when it was made: another one of the same millisecond, as merging may bring it,
// is another one.
TEST_F(SweepAgainTest, AnotherDecisionOfTheSameMillisecondIsNoticed) {
  few_samples();
  std::ignore = sweep(kLongLaunch);
  const std::int64_t before_ms = winner().decided_unix_ms;
  const StoredTrial slowest = slowest_but_the_default();
  std::int64_t planted = 0;
  events_.view = [&](const SweepView& view) {
    if (planted == 0 && view.devices.at(0).stage == "finals") {
      planted = plant_decision(slowest.trial, 0.5);
      const std::string of_before = " SET decided_unix_ms = " + std::to_string(before_ms);
      SQLite::Database(database_.string(), SQLite::OPEN_READWRITE)
          .exec("UPDATE winners" + of_before + "; UPDATE decisions" + of_before + " WHERE superseded = 0");
    }
  };
  std::ignore = sweep(kLongLaunch);
  ASSERT_NE(planted, 0) << "finals were not seen";
  EXPECT_EQ(winner().trial_id, planted);
}

// What is told of a decision is told when it is stored: who decides in between is not overwritten.
TEST_F(SweepAgainTest, NobodyDecidesBetweenTheLookAtADecisionAndTheStoringOfAnother) {
  few_samples();
  std::ignore = sweep(kLongLaunch);
  const StoredTrial slowest = slowest_but_the_default();
  SQLite::Database(database_.string(), SQLite::OPEN_READWRITE).exec("DELETE FROM winners; DELETE FROM decisions");
  std::int64_t first = 0;
  std::int64_t second = 0;
  events_.view = [&](const SweepView& view) {
    if (first == 0 && view.devices.at(0).stage == "finals") {
      Trial standard = slowest.trial;
      standard.config = toy_config(640, kAlike);
      first = plant_decision(standard, 1);
    }
  };
  events_.note = [&](const std::string& note) {
    if (second == 0 && note.find("another sweep decided it meanwhile") != std::string::npos) {
      second = plant_decision(slowest.trial, 0.5);
    }
  };
  std::ignore = sweep(kLongLaunch);
  ASSERT_NE(first, 0) << "finals were not seen";
  ASSERT_NE(second, 0) << "the first decision was not noticed";
  EXPECT_EQ(winner().trial_id, second);
  expect_sound();
}

// An interrupted run comes back to nothing that it has decided, though the winner is of an earlier run.
TEST_F(SweepAgainTest, AConfirmedDecisionIsOneOfTheRunThatConfirmedIt) {
  std::ignore = sweep();
  std::ignore = plant_decision(slowest_but_the_default().trial, 0.5);
  std::ignore = sweep();
  ASSERT_TRUE(decided_ && decided_->stays);
  const Store store(database_, OpenMode::read_only);
  const std::vector<SessionRow> sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  SQLite::Database raw(database_.string());
  const auto id = [&](const std::string& column) {
    return raw.execAndGet("SELECT " + column + " FROM trials LIMIT 1").getInt64();
  };
  const ContextIds context{id("device_id"), id("toolkit_id"), id("kernel_id"), id("space_id"), id("problem_id")};
  EXPECT_TRUE(store.decided_in_run(context, sessions[0].run_uuid));
}

// Fewer samples than tell anything are no evidence.
TEST_F(SweepAgainTest, ADecisionByAFewSamplesIsMadeAnew) {
  std::ignore = sweep();
  const std::int64_t planted = plant_decision(slowest_but_the_default().trial, 0.5);
  SQLite::Database(database_.string(), SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE winners SET baseline_count = 5; UPDATE decisions SET baseline_count = 5; UPDATE trials SET "
          "sample_count = 5 WHERE sample_count = 120");
  std::ignore = sweep();
  EXPECT_NE(winner().trial_id, planted);
  EXPECT_FALSE(decided_->stays);
}

}  // namespace
}  // namespace pascaline::testing
