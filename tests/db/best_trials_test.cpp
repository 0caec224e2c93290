#include "db/best_trials.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

class BestTrialsTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = begin_example_session(store_, context_);

  std::int64_t add(std::int64_t tile, double median_us, TrialStage stage = TrialStage::search,
                   std::int64_t started_unix_ms = 0) {
    Trial trial = example_trial(tile);
    trial.stage = stage;
    trial.time = TimeSummary{median_us, median_us - 1, median_us + 1, 28};
    trial.started_unix_ms = started_unix_ms;
    return store_.add_trial(session_, context_, trial);
  }
  [[nodiscard]] BestTrial only(const BestFilter& filter = {}) const {
    const std::vector<BestTrial> trials = store_.best_trials(filter);
    EXPECT_EQ(trials.size(), 1U);
    return trials.empty() ? BestTrial{} : trials.front();
  }
};

TEST_F(BestTrialsTest, NothingThatRanIsNoTrial) {
  EXPECT_TRUE(store_.best_trials({}).empty());
  store_.add_trial(session_, context_, failed_trial(1, TrialStatus::crashed, "fell over"));
  EXPECT_TRUE(store_.best_trials({}).empty());
}

TEST_F(BestTrialsTest, UndecidedIsTheFastestOfTheSearchWithTheLatestDefault) {
  add(1, 200);
  add(1, 190);
  const std::int64_t fastest = add(4, 80);
  add(5, 80);
  add(6, 90);
  const BestTrial best = only();
  EXPECT_EQ(best.stored.id, fastest);
  EXPECT_EQ(best.stored.session_id, session_);
  EXPECT_EQ(best.stored.trial.config, example_config(4));
  EXPECT_EQ(best.stored.trial.samples.size(), 30U);
  EXPECT_EQ(best.stored.kernel.source_hash, "source-a");
  EXPECT_FALSE(best.decided);
  EXPECT_EQ(best.baseline->median_us, 190);
}

TEST_F(BestTrialsTest, DecisionGoesBeforeEveryTime) {
  add(4, 80);
  const std::int64_t winner = add(8, 100, TrialStage::finals);
  add(9, 95, TrialStage::finals);
  store_.set_winner(context_, winner, TimeSummary{210, 200, 220, 30}, 0.9);
  const BestTrial best = only();
  EXPECT_EQ(best.stored.id, winner);
  EXPECT_TRUE(best.decided);
  EXPECT_EQ(best.baseline->median_us, 210);
}

TEST_F(BestTrialsTest, WinnerFromTheSearchWasNotDecidedInFinals) {
  add(4, 80);
  const std::int64_t winner = add(8, 100);
  store_.set_winner(context_, winner, TimeSummary{210, 200, 220, 30}, 0.9);
  const BestTrial best = only();
  EXPECT_EQ(best.stored.id, winner);
  EXPECT_FALSE(best.decided);
  EXPECT_EQ(best.baseline->median_us, 210);
}

TEST_F(BestTrialsTest, UndecidedIsOfTheNewestSourceAndToolkit) {
  add(4, 80, TrialStage::search, 1000);
  context_.kernel = store_.kernel_id({"matmul", "source-b"});
  add(4, 90, TrialStage::search, 3000);
  context_.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  add(4, 70, TrialStage::search, 2000);
  const BestTrial best = only();
  EXPECT_EQ(best.stored.kernel.source_hash, "source-b");
  EXPECT_EQ(best.stored.toolkit.version, "12.9") << "merged trials may have later ids";
  EXPECT_EQ(best.stored.trial.time->median_us, 90);
}

TEST_F(BestTrialsTest, LastDecisionCountsWhateverItsSource) {
  store_.set_winner(context_, add(4, 80, TrialStage::finals), std::nullopt, 0.9);
  context_.kernel = store_.kernel_id({"matmul", "source-b"});
  const std::int64_t last = add(4, 90, TrialStage::finals);
  store_.set_winner(context_, last, std::nullopt, 0.9);
  context_.kernel = store_.kernel_id({"matmul", "source-c"});
  add(4, 60);
  EXPECT_EQ(only().stored.id, last);
}

TEST_F(BestTrialsTest, SessionKeepsItsFinalsWhereALaterOneDecided) {
  add(4, 50);
  add(8, 90, TrialStage::finals);
  const std::int64_t best_of_last_finals = add(9, 100, TrialStage::finals);
  add(8, 110, TrialStage::finals);
  add(1, 200, TrialStage::finals);
  const std::int64_t first = session_;
  session_ = begin_example_session(store_, context_);
  const std::int64_t winner = add(5, 70, TrialStage::finals);
  store_.set_winner(context_, winner, std::nullopt, 0.9);
  const BestTrial before = only({.sessions = {first}});
  EXPECT_EQ(before.stored.id, best_of_last_finals);
  EXPECT_TRUE(before.decided);
  EXPECT_EQ(before.baseline->median_us, 200);
  EXPECT_EQ(only({.sessions = {session_}}).stored.id, winner);
  EXPECT_EQ(only({.sessions = {first, session_}}).stored.id, winner);
  EXPECT_TRUE(store_.best_trials({.sessions = {99}}).empty());
}

TEST_F(BestTrialsTest, DevicesTargetsAndProblemsApart) {
  const ContextIds first = context_;
  add(1, 100);
  context_.device = store_.device_id({"host", "Some \"CPU\" '%'", "", 8, 0, "{}"});
  add(1, 101);
  context_ = first;
  context_.toolkit = store_.toolkit_id({"nvrtc", "12.9", "compute_61", "12.9"});
  add(1, 102);
  EXPECT_EQ(store_.best_trials({}).size(), 3U);
  EXPECT_EQ(only({.device = "Some \"CPU\" '%'"}).stored.trial.time->median_us, 101);
  EXPECT_TRUE(store_.best_trials({.kernel = "softmax"}).empty());
  EXPECT_EQ(store_.best_trials({.kernel = "matmul"}).size(), 3U);
}

TEST_F(BestTrialsTest, SharedResultBringsTheSamplesOfItsTrial) {
  const std::int64_t original = add(4, 80);
  Trial twin = example_trial(5);
  twin.samples.clear();
  twin.time = TimeSummary{70, 69, 71, 28};
  twin.shared_trial = original;
  const std::int64_t id = store_.add_trial(session_, context_, twin);
  const BestTrial best = only();
  EXPECT_EQ(best.stored.id, id);
  EXPECT_EQ(best.stored.trial.samples.size(), 30U);
}

TEST_F(BestTrialsTest, WriterIsNeitherWaitedForNorHeldUp) {
  add(4, 80);
  Store reader(folder_ / "tuned.db", OpenMode::read_only);
  SQLite::Database writer((folder_ / "tuned.db").string(), SQLite::OPEN_READWRITE);
  writer.exec("BEGIN IMMEDIATE");
  EXPECT_EQ(reader.best_trials({}).size(), 1U);
  writer.exec("UPDATE trials SET median_us = 60, low_us = 60, high_us = 60; COMMIT");
  EXPECT_EQ(reader.best_trials({}).at(0).stored.trial.time->median_us, 60) << "no snapshot was left open";
}

TEST_F(BestTrialsTest, RowThatCannotBeReadIsAFaultNamingTheFile) {
  add(4, 80);
  SQLite::Database(folder_ / "tuned.db", SQLite::OPEN_READWRITE).exec("UPDATE trials SET config = '[1]'");
  const std::string message = store_error([&] { std::ignore = store_.best_trials({}); });
  EXPECT_NE(message.find("tuned.db"), std::string::npos) << message;
  SQLite::Database(folder_ / "tuned.db", SQLite::OPEN_READWRITE).exec("UPDATE trials SET config = '{\"A\": 1}'");
  EXPECT_EQ(store_.best_trials({}).size(), 1U) << "usable again";
}

}  // namespace
}  // namespace pascaline::testing
