#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "db/stored_probe.hpp"
#include "db/sweep_plan.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 4 of the schema left it, with rows in every table that a sweep fills.
class Version4Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_4.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 4);
  }
};

TEST_F(Version4Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

TEST_F(Version4Test, MigrationKeepsTheRowsAndTakesAProbe) {
  Store store(file_, OpenMode::read_write);
  EXPECT_EQ(store.sessions().size(), 2U);
  EXPECT_EQ(store.trials({}).size(), 2U);
  ASSERT_TRUE(store.plan("run-8"));
  EXPECT_EQ(store.plan("run-8")->problems.size(), 1U);
  EXPECT_TRUE(store.probes(nullptr).empty());
  const DeviceRow device = store.devices().at(0);
  EXPECT_TRUE(store.measured_rates(device).empty());
  Probe probe;
  probe.started_unix_ms = 5000;
  probe.values = {{ProbeQuantity::copy_gbps, 400, 399, 401, 0.01, 9, true}};
  store.add_probe(probe, store.device_id(device), store.toolkit_id(example_toolkit()));
  EXPECT_EQ(store.measured_rates(device).of(ProbeQuantity::copy_gbps), 400);
}

TEST_F(Version4Test, MigrationKeepsAttempts) {
  Store store(file_, OpenMode::read_write);
  const ContextIds context = example_context(store);
  ASSERT_EQ(store.left_attempts(context).size(), 1U);
  EXPECT_EQ(store.left_attempts(context)[0].config, example_config(9));
}

TEST_F(Version4Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  const Store store(file_, OpenMode::read_only);
  EXPECT_EQ(store.sessions().size(), 2U);
  EXPECT_TRUE(store.probes(nullptr).empty());
  EXPECT_EQ(Store::scratch_copy(file_).sessions().size(), 2U);
  EXPECT_EQ(bytes_of(file_), before);
}

}  // namespace
}  // namespace pascaline::testing
