#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "db/sweep_plan.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 3 of the schema left it, with rows in every table.
class Version3Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_3.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 3);
  }
};

TEST_F(Version3Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

// Words of a command are no plan: nothing of them is taken over.
TEST_F(Version3Test, MigrationKeepsTheRowsAndMakesNoPlanOfTheWords) {
  Store store(file_, OpenMode::read_write);
  const auto sessions = store.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[1].run_uuid, "run-7");
  EXPECT_EQ(sessions[1].spent_ms, 950);
  EXPECT_EQ(sessions[0].run_uuid, "run-8");
  EXPECT_FALSE(sessions[0].has_plan);
  EXPECT_FALSE(store.plan("run-8"));
  EXPECT_EQ(store.trials({}).size(), 2U);
  EXPECT_EQ(store.left_attempts(example_context(store)).size(), 1U);
}

TEST_F(Version3Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  EXPECT_EQ(Store(file_, OpenMode::read_only).sessions().size(), 2U);
  EXPECT_EQ(Store::scratch_copy(file_).sessions().size(), 2U);
  EXPECT_EQ(bytes_of(file_), before);
}

}  // namespace
}  // namespace pascaline::testing
