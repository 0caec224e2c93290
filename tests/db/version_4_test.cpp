#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/migrations.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 4 of the schema left it, with rows in every table.
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

TEST_F(Version4Test, MigrationKeepsTheRowsAndAttempts) {
  Store store(file_, OpenMode::read_write);
  const ContextIds context = example_context(store);
  EXPECT_EQ(store.sessions().size(), 2U);
  EXPECT_EQ(store.trials({}).size(), 2U);
  ASSERT_EQ(store.left_attempts(context).size(), 1U);
  EXPECT_EQ(store.left_attempts(context)[0].config, example_config(9));
}

TEST_F(Version4Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  EXPECT_EQ(Store(file_, OpenMode::read_only).sessions().size(), 2U);
  EXPECT_EQ(Store::scratch_copy(file_).sessions().size(), 2U);
  EXPECT_EQ(bytes_of(file_), before);
}

}  // namespace
}  // namespace pascaline::testing
