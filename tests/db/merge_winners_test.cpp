#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class MergeWinnersTest : public MergeTest {
 protected:
  static Config winner_of(const fs::path& file) {
    return Store(file, OpenMode::read_only).winners("", nullptr).at(0).trial.config;
  }
};

TEST_F(MergeWinnersTest, MoreConfidentWinnerStaysWhicheverComesFirst) {
  decide_in(mine_, 1, 0.8);
  decide_in(other_, 2, 0.9);
  const fs::path copy = folder_ / "copy.db";
  merge(mine_, copy);
  EXPECT_EQ(merge().winners_replaced, 1);
  EXPECT_EQ(merge(copy, other_).winners_kept, 1);
  for (const fs::path& file : {mine_, other_}) {
    const auto winners = Store(file, OpenMode::read_only).winners("", nullptr);
    ASSERT_EQ(winners.size(), 1U);
    EXPECT_EQ(winners[0].trial.config, example_config(2));
    EXPECT_EQ(winners[0].confidence, 0.9);
    expect_equal(winners[0].baseline, TimeSummary{200, 190, 210, 31});
  }
  EXPECT_EQ(content_of(mine_), content_of(other_));
}

// The default is among all finals: what beat it by more, side by side, is faster on whatever night and card.
TEST_F(MergeWinnersTest, WinnerIsWhatCertainlyBeatTheDefaultByMore) {
  decide_in(mine_, 1, 1.0, 1);
  decide_in(other_, 2, 0.99, 1);
  // The other's card is slower on the whole, and its winner faster than that card's default by more.
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE decisions SET baseline_median_us = 300, baseline_low_us = 295, baseline_high_us = 305; "
          "UPDATE trials SET median_us = 110, low_us = 109, high_us = 111");
  EXPECT_EQ(merge().winners_replaced, 1);
  EXPECT_EQ(winner_of(mine_), example_config(2));
  EXPECT_EQ(Store(mine_, OpenMode::read_only).winners("", nullptr).at(0).decisions, 2) << "chosen among two";
}

TEST_F(MergeWinnersTest, LaterDecisionOfOneDatabaseCountsWhateverItsCopySays) {
  decide_in(mine_, 1, 0.99);
  fs::copy_file(mine_, other_);
  decide_in(mine_, 2, 0.6, 5);
  EXPECT_FALSE(merge().changed()) << "an earlier state of mine";
  EXPECT_EQ(winner_of(mine_), example_config(2));
  EXPECT_EQ(merge(mine_, other_).winners_replaced, 1);
  EXPECT_EQ(winner_of(other_), example_config(2));
  EXPECT_EQ(content_of(mine_), content_of(other_));
}

TEST_F(MergeWinnersTest, WinnerThatGaveAWrongResultElsewhereComesAfterAllOthers) {
  decide_in(mine_, 1, 1.0, 1);
  decide_in(other_, 2, 0.6, 5);
  EXPECT_EQ(merge().winners_kept, 1);
  const fs::path third = folder_ / "third.db";
  {
    Store store(third, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(store);
    store.add_trial(begin_example_session(store, context), context,
                    failed_trial(1, TrialStatus::wrong_result, "3 is not 4"));
  }
  EXPECT_EQ(merge(third, mine_).winners_replaced, 1);
  EXPECT_EQ(winner_of(mine_), example_config(2)) << "a decision that had not counted";
}

TEST_F(MergeWinnersTest, DecisionInFinalsStaysWhateverTheSearchClaims) {
  decide_in(mine_, 1, 0.5, 3);
  decide_in(other_, 2, 0.95, 1, 30, TrialStage::search);
  const fs::path copy = folder_ / "copy.db";
  merge(mine_, copy);
  EXPECT_EQ(merge().winners_kept, 1);
  EXPECT_EQ(merge(copy, other_).winners_replaced, 1);
  for (const fs::path& file : {mine_, other_}) {
    const auto winners = Store(file, OpenMode::read_only).winners("", nullptr);
    ASSERT_EQ(winners.size(), 1U);
    EXPECT_EQ(winners[0].trial.config, example_config(1));
    EXPECT_EQ(winners[0].trial.stage, TrialStage::finals);
    EXPECT_EQ(winners[0].confidence, 0.5);
    expect_equal(winners[0].baseline, TimeSummary{200, 190, 210, 31});
  }
  EXPECT_EQ(content_of(mine_), content_of(other_));
}

TEST_F(MergeWinnersTest, OfEqualConfidencesTheNarrowerIntervalStays) {
  decide_in(mine_, 1, 0.9, 3);
  decide_in(other_, 2, 0.9, 2);
  EXPECT_EQ(merge().winners_replaced, 1);
  EXPECT_EQ(winner_of(mine_), example_config(2));
  const fs::path wide = folder_ / "wide.db";
  decide_in(wide, 3, 0.9, 4);
  EXPECT_EQ(merge(wide, mine_).winners_kept, 1);
  const fs::path few = folder_ / "few.db";
  decide_in(few, 4, 0.9, 0, 2);
  EXPECT_EQ(merge(few, mine_).winners_kept, 1) << "two samples bound nothing";
  EXPECT_EQ(winner_of(mine_), example_config(2));
}

TEST_F(MergeWinnersTest, EachObjectiveIsMergedByItself) {
  decide_in(mine_, 1, 0.99);
  decide_in(mine_, 2, 0.7, 1, 30, TrialStage::finals, Objective::energy);
  decide_in(other_, 3, 0.9);
  decide_in(other_, 4, 0.8, 1, 30, TrialStage::finals, Objective::energy);
  decide_in(other_, 5, 0.6, 1, 30, TrialStage::finals, Objective::sustained);
  const MergeCounts counts = merge();
  EXPECT_EQ(counts.winners_kept, 1);
  EXPECT_EQ(counts.winners_replaced, 1);
  EXPECT_EQ(counts.winners_added, 1);
  const Store store(mine_, OpenMode::read_only);
  EXPECT_EQ(winner_of(mine_), example_config(1));
  const auto by_energy = store.winners("", nullptr, Objective::energy);
  ASSERT_EQ(by_energy.size(), 1U);
  EXPECT_EQ(by_energy[0].trial.config, example_config(4));
  EXPECT_EQ(by_energy[0].baseline_score, 40.5);
  EXPECT_EQ(store.winners("", nullptr, Objective::sustained).at(0).trial.config, example_config(5));
  EXPECT_EQ(merge().winners_known, 2) << "and the third is kept again";
}

TEST_F(MergeWinnersTest, AnObjectiveThatIsNotKnownIsDamage) {
  decide_in(mine_, 1, 0.9);
  decide_in(other_, 2, 0.9);
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA ignore_check_constraints = 1; UPDATE decisions SET objective = 'beauty'");
  EXPECT_NE(store_error([&] { std::ignore = merge(); }).find("objective"), std::string::npos);
  EXPECT_EQ(winner_of(mine_), example_config(1));
}

TEST_F(MergeWinnersTest, OfEqualsInBothTheNewerStays) {
  decide_in(mine_, 1, 0.9);
  decide_in(other_, 2, 0.9);
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE).exec("UPDATE decisions SET decided_unix_ms = 5");
  EXPECT_EQ(merge().winners_kept, 1);
  EXPECT_EQ(winner_of(mine_), example_config(1));
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE decisions SET decided_unix_ms = 5000000000000");
  const MergeCounts counts = merge();
  EXPECT_EQ(counts.winners_replaced, 1);
  EXPECT_TRUE(counts.changed());
  EXPECT_EQ(winner_of(mine_), example_config(2));
}

}  // namespace
}  // namespace pascaline::testing
