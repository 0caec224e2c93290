#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 2 of the schema left it, with rows in every table.
class Version2Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_2.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 2);
  }
};

void expect_version_2_rows(const Store& store) {
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[1].uuid, "uuid-7");
  EXPECT_EQ(sessions[1].run_uuid, "run-7");
  EXPECT_EQ(sessions[1].spent_ms, 950);
  EXPECT_FALSE(sessions[1].has_plan);
  EXPECT_EQ(sessions[1].device, example_device());
  EXPECT_EQ(sessions[0].imported_from, "") << "what was there is the database's own";
  EXPECT_EQ(sessions[1].imported_from, "");
  const auto devices = store.devices();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[1].kind, "host");

  const auto trials = store.trials({.with_samples = true});
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[0].trial.canary_us, 20.5);
  EXPECT_EQ(trials[0].trial.clock_scale, 0.96875);
  EXPECT_EQ(trials[0].trial.energy_mj, 18.25);
  ASSERT_EQ(trials[0].trial.samples.size(), 3U);
  EXPECT_EQ(trials[0].trial.samples[0].mark, SampleMark::clock_drift);
  EXPECT_EQ(trials[1].trial.shared_trial, 10);
  EXPECT_EQ(trials[1].device, example_device());
  ASSERT_EQ(store.telemetry(7).size(), 1U);
  EXPECT_EQ(store.telemetry(7)[0].canary_us, 20.25);
  ASSERT_EQ(store.winners("", nullptr).size(), 1U);
  EXPECT_EQ(store.winners("", nullptr)[0].trial_id, 10);
}

TEST_F(Version2Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

TEST_F(Version2Test, MigrationKeepsTheRows) {
  Store store(file_, OpenMode::read_write);
  expect_version_2_rows(store);
  const ContextIds context = example_context(store);
  EXPECT_EQ(context.device, 3);
  EXPECT_EQ(store.left_attempts(context).size(), 1U);
  const std::int64_t session = begin_example_session(store, context);
  store.add_trial(session, context, example_trial(9));
  EXPECT_EQ(store.known_trials(context).size(), 2U);
}

TEST_F(Version2Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  expect_version_2_rows(Store(file_, OpenMode::read_only));
  EXPECT_EQ(bytes_of(file_), before);
}

TEST_F(Version2Test, ForeignDevicesAreAllowedOnlyAfterMigration) {
  const std::string insert = "INSERT INTO devices VALUES (9, 'foreign', 'x', '', 0, 0, '{}')";
  EXPECT_THROW(SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec(insert), SQLite::Exception);
  Store(file_, OpenMode::read_write);
  SQLite::Database migrated(file_.string(), SQLite::OPEN_READWRITE);
  EXPECT_EQ(migrated.exec(insert), 1);
  EXPECT_THROW(migrated.exec("INSERT INTO devices VALUES (10, 'other', 'x', '', 0, 0, '{}')"), SQLite::Exception);
}

}  // namespace
}  // namespace pascaline::testing
