#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "db/best_trials.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

class StoreWinnersTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = begin_example_session(store_, context_);
};

TEST_F(StoreWinnersTest, WinnerIsReplacedAndComesBackWithItsBaseline) {
  const std::int64_t first = store_.add_trial(session_, context_, example_trial(8));
  const std::int64_t second = store_.add_trial(session_, context_, example_trial(16));
  store_.set_winner(context_, first, std::nullopt, 0.5);
  EXPECT_FALSE(store_.winners("matmul", nullptr).at(0).baseline);
  store_.set_winner(context_, second, TimeSummary{200, 190, 210, 31}, 0.99);

  const DeviceRow device = example_device();
  const auto winners = store_.winners("", &device);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_EQ(winners[0].trial_id, second);
  expect_equal(winners[0].trial, example_trial(16));
  expect_equal(winners[0].baseline, TimeSummary{200, 190, 210, 31});
  EXPECT_EQ(winners[0].confidence, 0.99);
  EXPECT_EQ(winners[0].kernel, (KernelRow{"matmul", "source-a"}));
  EXPECT_EQ(winners[0].toolkit, example_toolkit());
  EXPECT_EQ(winners[0].device, device);
  EXPECT_EQ(winners[0].space_hash, "space-a");
  EXPECT_GT(winners[0].decided_unix_ms, 0);

  DeviceRow other = device;
  other.sm_count = 20;
  EXPECT_TRUE(store_.winners("matmul", &other).empty());
  EXPECT_TRUE(store_.winners("softmax", nullptr).empty());
}

TEST_F(StoreWinnersTest, AWinnerIsDecidedLaterThanThoseOfOtherToolkitsWhateverTheClockSays) {
  ContextIds other = context_;
  other.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  const std::int64_t first = store_.add_trial(session_, context_, example_trial(8));
  const std::int64_t second = store_.add_trial(session_, other, example_trial(8));
  store_.set_winner(other, second, std::nullopt, 0.5);
  SQLite::Database(store_.file().string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE winners SET decided_unix_ms = 9000000000000");
  store_.set_winner(context_, first, std::nullopt, 0.5);
  const auto winners = store_.winners("matmul", nullptr);
  ASSERT_EQ(winners.size(), 2U);
  EXPECT_EQ(winners[0].trial_id, first);
  EXPECT_EQ(winners[0].decided_unix_ms, 9000000000001);
  EXPECT_EQ(store_.best_trials({}).at(0).stored.id, first);
}

TEST_F(StoreWinnersTest, EachObjectiveHasAWinnerOfItsOwnAndOnlyTheAskedOnesAreSeen) {
  const std::int64_t fast = store_.add_trial(session_, context_, example_trial(8));
  Trial compared = example_trial(16);
  compared.stage = TrialStage::finals;
  const std::int64_t economical = store_.add_trial(session_, context_, compared);
  const TimeSummary baseline{200, 190, 210, 31};
  store_.set_winner(context_, economical, baseline, 0.75, Objective::energy, 31.5);
  EXPECT_TRUE(store_.winners("", nullptr).empty()) << "by time nothing is decided";
  EXPECT_FALSE(store_.decision(context_));
  store_.set_winner(context_, fast, baseline, 0.99);

  ASSERT_EQ(store_.winners("matmul", nullptr).size(), 1U);
  EXPECT_EQ(store_.winners("matmul", nullptr)[0].trial_id, fast);
  EXPECT_EQ(store_.winners("matmul", nullptr)[0].objective, Objective::time);
  EXPECT_FALSE(store_.winners("matmul", nullptr)[0].baseline_score);
  const DeviceRow device = example_device();
  const auto by_energy = store_.winners("matmul", &device, Objective::energy);
  ASSERT_EQ(by_energy.size(), 1U);
  EXPECT_EQ(by_energy[0].trial_id, economical);
  EXPECT_EQ(by_energy[0].objective, Objective::energy);
  EXPECT_EQ(by_energy[0].baseline_score, 31.5);
  EXPECT_EQ(by_energy[0].confidence, 0.75);
  expect_equal(by_energy[0].baseline, baseline);
  EXPECT_EQ(store_.winners("", nullptr, std::nullopt).size(), 2U);
  EXPECT_TRUE(store_.winners("", nullptr, Objective::edp).empty());

  EXPECT_TRUE(store_.decision(context_, Objective::energy));
  EXPECT_FALSE(store_.decision(context_, Objective::sustained));
  const std::string run = store_.sessions().at(0).run_uuid;
  EXPECT_TRUE(store_.decided_in_run(context_, run, Objective::energy));
  EXPECT_FALSE(store_.decided_in_run(context_, run, Objective::edp));
  EXPECT_FALSE(store_.decided_in_run(context_, "another", Objective::energy));
  EXPECT_EQ(store_.best_trials({}).at(0).stored.id, fast) << "the best by time";

  store_.set_winner(context_, fast, baseline, 0.5, Objective::energy);
  EXPECT_EQ(store_.winners("", nullptr, Objective::energy).at(0).trial_id, fast) << "replaced";
  EXPECT_EQ(store_.winners("", nullptr, std::nullopt).size(), 2U);
  std::ignore = store_error([&] { store_.set_winner(context_, fast, baseline, 0.5, Objective::time, 3.0); });
}

TEST_F(StoreWinnersTest, AnObjectiveThatIsNotKnownIsNamed) {
  store_.set_winner(context_, store_.add_trial(session_, context_, example_trial(8)), std::nullopt, 0.5);
  SQLite::Database(store_.file().string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA ignore_check_constraints = 1; UPDATE winners SET objective = 'beauty'");
  const std::string message = store_error([&] { std::ignore = store_.winners("", nullptr, std::nullopt); });
  EXPECT_NE(message.find("'beauty'"), std::string::npos) << message;
  EXPECT_TRUE(store_.winners("", nullptr).empty());
}

TEST_F(StoreWinnersTest, WinnersOfOlderSourcesStayBehindTheNewest) {
  store_.set_winner(context_, store_.add_trial(session_, context_, example_trial(8)), std::nullopt, 1);
  ContextIds newer = context_;
  newer.kernel = store_.kernel_id({"matmul", "source-b"});
  store_.set_winner(newer, store_.add_trial(session_, newer, example_trial(16)), std::nullopt, 1);
  const auto winners = store_.winners("matmul", nullptr);
  ASSERT_EQ(winners.size(), 2U);
  EXPECT_EQ(winners[0].kernel.source_hash, "source-b");
  EXPECT_EQ(winners[1].kernel.source_hash, "source-a");
}

TEST_F(StoreWinnersTest, WinnerMustBeAnOkTrialOfItsContext) {
  const std::int64_t ok = store_.add_trial(session_, context_, example_trial(8));
  const std::int64_t bad = store_.add_trial(session_, context_, failed_trial(8, TrialStatus::crashed, "x"));
  std::ignore = store_error([&] { store_.set_winner(context_, bad, std::nullopt, 1); });
  std::ignore = store_error([&] { store_.set_winner(example_context(store_, 7), ok, std::nullopt, 1); });
  std::ignore = store_error([&] { store_.set_winner(context_, ok, std::nullopt, 1.5); });
  std::ignore = store_error([&] { store_.set_winner(context_, ok, std::nullopt, std::nan("")); });
  EXPECT_TRUE(store_.winners("", nullptr).empty());
}

TEST_F(StoreWinnersTest, ADecisionTellsWhatTheWinnerWasComparedWith) {
  Trial standard = example_trial(2);
  standard.is_default = true;
  standard.time = TimeSummary{200, 190, 210, 31};
  store_.add_trial(session_, context_, standard);
  Trial best = example_trial(8);
  best.stage = TrialStage::finals;
  best.canary_us = 51.5;
  store_.set_winner(context_, store_.add_trial(session_, context_, best), standard.time, 0.99);
  const auto decided = store_.decision(context_);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->stage, TrialStage::finals);
  EXPECT_EQ(decided->config, example_config(8));
  expect_equal(decided->time, best.time);
  expect_equal(decided->baseline, standard.time);
  EXPECT_EQ(decided->baseline_config, example_config(2));
  EXPECT_EQ(decided->canary_us, 51.5);
  EXPECT_EQ(decided->confidence, 0.99);
  store_.set_winner(context_, store_.add_trial(session_, context_, best), TimeSummary{200, 190, 210, 32}, 0.99);
  EXPECT_FALSE(store_.decision(context_)->baseline_config) << "no trial has these times";
}

TEST_F(StoreWinnersTest, AConfirmedWinnerStaysAsItIsAndCountsAsDecidedLast) {
  ContextIds other = context_;
  other.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  Trial finalist = example_trial(8);
  finalist.stage = TrialStage::finals;
  const std::int64_t first = store_.add_trial(session_, context_, finalist);
  store_.set_winner(context_, first, TimeSummary{200, 190, 210, 31}, 0.99);
  store_.set_winner(other, store_.add_trial(session_, other, finalist), std::nullopt, 0.5);
  store_.set_winner(context_, first, TimeSummary{200, 190, 210, 31}, 0.75, Objective::energy, 31.5);

  const std::int64_t later = begin_example_session(store_, context_);
  std::string run;
  for (const SessionRow& session : store_.sessions()) {
    run = session.id == later ? session.run_uuid : run;
  }
  EXPECT_FALSE(store_.decided_in_run(context_, run));
  finalist.started_unix_ms = 8'000'000'000'000;  // after what was decided so far
  store_.add_trial(later, context_, finalist);
  EXPECT_FALSE(store_.decided_in_run(context_, run)) << "finals that decided nothing yet";
  ASSERT_NE(store_.winners("", nullptr).at(0).trial_id, first);
  SQLite::Database(store_.file().string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE winners SET decided_unix_ms = 9000000000000 WHERE objective = 'time' AND toolkit_id <> " +
            std::to_string(context_.toolkit));
  store_.confirm_winner(context_);
  EXPECT_TRUE(store_.decided_in_run(context_, run));
  EXPECT_FALSE(store_.decided_in_run(context_, run, Objective::energy));
  const auto winners = store_.winners("", nullptr);
  ASSERT_EQ(winners.size(), 2U);
  EXPECT_EQ(winners[0].trial_id, first);
  EXPECT_EQ(winners[0].decided_unix_ms, 9000000000001);
  EXPECT_EQ(winners[0].confidence, 0.99);
  EXPECT_EQ(winners[0].decisions, 1) << "what it confirms is superseded";
  expect_equal(winners[0].baseline, TimeSummary{200, 190, 210, 31});
  EXPECT_EQ(store_.winners("", nullptr, Objective::energy).at(0).baseline_score, 31.5);

  other.toolkit = store_.toolkit_id({"nvrtc", "13.0", "sm_61", "12.9"});
  const std::string message = store_error([&] { store_.confirm_winner(other); });
  EXPECT_NE(message.find("confirm a winner"), std::string::npos) << message;
}

TEST_F(StoreWinnersTest, NobodyStoresBetweenWhatATransactionReadsAndWrites) {
  const std::int64_t first = store_.add_trial(session_, context_, example_trial(8));
  const std::int64_t second = store_.add_trial(session_, context_, example_trial(16));
  Store other(store_.file(), OpenMode::read_write);
  other.set_busy_timeout(std::chrono::milliseconds(0));
  store_.in_one_transaction([&] {
    EXPECT_FALSE(store_.decision(context_));
    EXPECT_THROW(other.set_winner(context_, second, std::nullopt, 0.5), StoreBusyError);
    store_.set_winner(context_, first, std::nullopt, 0.5);
    EXPECT_FALSE(other.decision(context_)) << "nothing is seen of it before its end";
  });
  ASSERT_TRUE(other.decision(context_));
  EXPECT_EQ(other.decision(context_)->id.trial, first);
  store_.set_busy_timeout(std::chrono::milliseconds(0));
  other.in_one_transaction([&] { EXPECT_THROW(store_.in_one_transaction([] {}), StoreBusyError); });
}

TEST_F(StoreWinnersTest, ATransactionThatFailsLeavesNothing) {
  const std::int64_t first = store_.add_trial(session_, context_, example_trial(8));
  const std::string message = store_error([&] {
    store_.in_one_transaction([&] {
      store_.set_winner(context_, first, std::nullopt, 0.5);
      store_.set_winner(context_, first + 1000, std::nullopt, 0.5);
    });
  });
  EXPECT_NE(message.find("store a winner"), std::string::npos) << message;
  EXPECT_FALSE(store_.decision(context_));
  store_.in_one_transaction([&] { store_.set_winner(context_, first, std::nullopt, 0.5); });
  EXPECT_EQ(store_.decision(context_)->id.trial, first);
}

// Twins of the same machine code have the very times of the trial whose result they share, and come after it.
TEST_F(StoreWinnersTest, StandInIsTheTrialThatRanAndNoneThatSharesItsResult) {
  Trial standard = failed_trial(1, TrialStatus::timed_out, "nothing came of it");
  standard.is_default = true;
  store_.add_trial(session_, context_, standard);
  Trial ran = example_trial(2);
  ran.time = TimeSummary{200, 190, 210, 31};
  const std::int64_t stand_in = store_.add_trial(session_, context_, ran);
  for (const std::int64_t tile : {4, 16}) {
    Trial twin = example_trial(tile);
    twin.samples.clear();
    twin.time = ran.time;
    twin.shared_trial = stand_in;
    store_.add_trial(session_, context_, twin);
  }
  const std::int64_t winner = store_.add_trial(session_, context_, example_trial(8));
  store_.set_winner(context_, winner, ran.time, 0.99);
  const auto found = store_.stand_in_of(winner);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->config, example_config(2));
  EXPECT_NE(found->why.find("timed_out"), std::string::npos) << found->why;
}

TEST_F(StoreWinnersTest, StandInThatCannotBeReadIsNamed) {
  const std::int64_t stand_in = store_.add_trial(session_, context_, example_trial(2));
  Trial best = example_trial(8);
  best.time = TimeSummary{50, 49, 51, 28};
  const std::int64_t winner = store_.add_trial(session_, context_, best);
  store_.set_winner(context_, winner, example_trial(2).time, 0.99);
  SQLite::Database((folder_ / "tuned.db").string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE trials SET config = '[1]' WHERE id = " + std::to_string(stand_in));
  const std::string message = store_error([&] { std::ignore = store_.stand_in_of(winner); });
  EXPECT_NE(message.find("config"), std::string::npos) << message;
  EXPECT_EQ(message.find("UTF-8"), std::string::npos) << message;
}

}  // namespace
}  // namespace pascaline::testing
