#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "db/stored_probe.hpp"
#include "db/sweep_plan.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 5 of the schema left it, with rows in every table that changed since.
class Version5Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_5.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 5);
  }
};

TEST_F(Version5Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

TEST_F(Version5Test, PartsOfATrialsTimeAreNotKnown) {
  const Store store(file_, OpenMode::read_write);
  const auto trials = store.trials({});
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[0].trial.verify_ms, 3.5);
  EXPECT_EQ(trials[0].trial.measure_ms, 41.25);
  EXPECT_EQ(trials[0].trial.load_ms, 0);
  EXPECT_EQ(trials[0].trial.sample_ms, 0);
  EXPECT_EQ(store.measured_rates(store.devices().at(0)).of(ProbeQuantity::copy_gbps), 400);
}

TEST_F(Version5Test, AMultipleOfTheBestBecomesAChanceOfError) {
  const Store store(file_, OpenMode::read_write);
  EXPECT_EQ(store.plan("run-8")->race_error, 0.01);
  EXPECT_EQ(store.plan("run-7")->race_error, 0) << "such a plan dropped none";
}

TEST_F(Version5Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  EXPECT_EQ(Store(file_, OpenMode::read_only).plan("run-8")->race_error, 0.01);
  EXPECT_EQ(bytes_of(file_), before);
}

}  // namespace
}  // namespace pascaline::testing
