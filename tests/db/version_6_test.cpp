#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "db/sweep_plan.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 6 of the schema left it, with rows in every table that changed since.
class Version6Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_6.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 6);
  }
};

TEST_F(Version6Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

TEST_F(Version6Test, DecisionsWereByTime) {
  const Store store(file_, OpenMode::read_write);
  const auto winners = store.winners("", nullptr, std::nullopt);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_EQ(winners[0].objective, Objective::time);
  EXPECT_EQ(winners[0].trial_id, 10);
  EXPECT_EQ(winners[0].confidence, 0.99);
  EXPECT_EQ(winners[0].decided_unix_ms, 1900);
  ASSERT_TRUE(winners[0].baseline);
  EXPECT_EQ(winners[0].baseline->count, 31);
  EXPECT_FALSE(winners[0].baseline_score);
  EXPECT_FALSE(winners[0].trial.sustained_us);
  EXPECT_EQ(winners[0].trial.energy_mj, 18.25);
  EXPECT_EQ(winners[0].trial.wait_ms, 1.25);
}

TEST_F(Version6Test, RunsThatWereBegunTunedForTime) {
  const Store store(file_, OpenMode::read_write);
  EXPECT_EQ(store.plan("run-7")->objective, Objective::time);
  EXPECT_EQ(store.plan("run-8")->race_error, 0.01);
}

TEST_F(Version6Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  EXPECT_EQ(Store(file_, OpenMode::read_only).winners("", nullptr).size(), 1U);
  EXPECT_EQ(bytes_of(file_), before);
}

}  // namespace
}  // namespace pascaline::testing
