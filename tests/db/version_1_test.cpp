#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "db/process_identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 1 of the schema left it, with rows in every table.
class Version1Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_1.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 1);
  }
  [[nodiscard]] SQLite::Database raw() const { return {file_.string(), SQLite::OPEN_READWRITE}; }
};

TEST_F(Version1Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

void expect_old_rows(const Store& store) {
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[0].uuid, "uuid-8");
  EXPECT_EQ(sessions[0].run_uuid, "uuid-8");
  EXPECT_EQ(sessions[1].run_uuid, "uuid-7");
  EXPECT_EQ(sessions[1].seed, 0xffff'ffff'ffff'fff0);
  EXPECT_EQ(sessions[1].spent_ms, 0);
  EXPECT_FALSE(sessions[1].has_plan);
  EXPECT_EQ(sessions[1].progress, "");

  const auto trials = store.trials({.with_samples = true});
  ASSERT_EQ(trials.size(), 2U);
  const Trial& trial = trials[0].trial;
  EXPECT_EQ(trials[0].id, 10);
  EXPECT_EQ(trial.config, example_config(8));
  EXPECT_EQ(trial.problem, example_problem());
  expect_equal(trial.time, TimeSummary{100.5, 99.25, 101.75, 2});
  EXPECT_EQ(trial.measure_ms, 41.25);
  EXPECT_FALSE(trial.canary_us);
  EXPECT_EQ(trial.clock_scale, 1);
  EXPECT_FALSE(trial.energy_mj);
  EXPECT_EQ(trial.shared_trial, 0);
  ASSERT_EQ(trial.samples.size(), 3U);
  EXPECT_EQ(trial.samples[0].mark, SampleMark::clock_drift);
  EXPECT_EQ(trial.samples[0].time_us, 130.0);
  EXPECT_EQ(trial.samples[0].sm_clock_mhz, 1911.0);
  EXPECT_EQ(trial.samples[1].mark, SampleMark::none);
  EXPECT_FALSE(trial.samples[1].power_w);
  EXPECT_EQ(trials[1].trial.reason, "too large");

  ASSERT_EQ(store.telemetry(7).size(), 1U);
  EXPECT_EQ(store.telemetry(7)[0].power_w, 180.25);
  EXPECT_FALSE(store.telemetry(7)[0].canary_us);
  ASSERT_EQ(store.winners("", nullptr).size(), 1U);
  EXPECT_EQ(store.winners("", nullptr)[0].trial_id, 10);
}

TEST_F(Version1Test, MigrationKeepsTheRowsAndTheirAttempt) {
  Store store(file_, OpenMode::read_write);
  expect_old_rows(store);
  const ContextIds context = example_context(store);
  EXPECT_EQ(context.problem, 6);
  EXPECT_EQ(store.settle_attempts(context.device), 0);
  const auto left = store.left_attempts(context);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].config, example_config(9));
  EXPECT_EQ(store.known_trials(context, "uuid-7").size(), 1U);
  EXPECT_TRUE(store.known_trials(context, "uuid-7")[0].in_run);
  EXPECT_TRUE(store.decided_in_run(context, "uuid-7"));
  const std::int64_t session = begin_example_session(store, context);
  store.begin_attempt(session, context, example_config(9));
  store.add_trial(session, context, example_trial(9));
  EXPECT_TRUE(store.left_attempts(context).empty());
  SQLite::Database database = raw();
  EXPECT_EQ(database.execAndGet("SELECT clock_scale FROM trial_details WHERE id = 10").getDouble(), 1.0);
  EXPECT_EQ(database.execAndGet("SELECT energy_mj FROM trial_details WHERE id > 11").getDouble(), 18.25);
}

TEST_F(Version1Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  Store store(file_, OpenMode::read_only);
  expect_old_rows(store);
  EXPECT_EQ(bytes_of(file_), before);
  const std::string message = store_error([&] { store.kernel_id({"softmax", "new"}); });
  EXPECT_NE(message.find("cannot be written"), std::string::npos) << message;
}

TEST_F(Version1Test, IsNotMigratedUnderAnOlderSweep) {
  const ProcessIdentity self = this_process();
  raw().exec("UPDATE sessions SET process_id = " + std::to_string(self.process_id) +
             ", process_start = " + std::to_string(self.start) + ", boot_id = '" + self.boot_id + "' WHERE id = 8");
  const std::string message = store_error([&] { Store(file_, OpenMode::read_write); });
  EXPECT_NE(message.find("older program (process " + std::to_string(self.process_id)), std::string::npos) << message;
  SQLite::Database database = raw();
  EXPECT_EQ(schema_version(database), 1);
  EXPECT_EQ(Store(file_, OpenMode::read_only).trials({}).size(), 2U);
  database.exec("UPDATE sessions SET state = 'failed', finished_unix_ms = 4000 WHERE id = 8");
  EXPECT_EQ(Store(file_, OpenMode::read_write).trials({}).size(), 2U);
}

}  // namespace
}  // namespace pascaline::testing
