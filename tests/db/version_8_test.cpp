#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/merge.hpp"
#include "db/migrations.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/db/schema_text.hpp"

namespace pascaline::testing {
namespace {

/// A database as version 8 of the schema left it, with rows in every table that changed since.
class Version8Test : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "old.db";

  void SetUp() override {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    database.exec("BEGIN;" + bytes_of(PASCALINE_SOURCE_DIR "/tests/db/version_8.sql") + "COMMIT");
    ASSERT_EQ(database.execAndGet("PRAGMA journal_mode = WAL").getString(), "wal");
    ASSERT_EQ(schema_version(database), 8);
  }
};

TEST_F(Version8Test, MigrationGivesTheSchemaOfANewDatabase) {
  Store(folder_ / "new.db", OpenMode::create);
  Store(file_, OpenMode::read_write);
  SQLite::Database fresh((folder_ / "new.db").string());
  SQLite::Database migrated(file_.string());
  expect_same_schema(migrated, fresh);
}

TEST_F(Version8Test, ProblemsOfPlansAreSearchedAsAWhole) {
  const Store store(file_, OpenMode::read_write);
  const auto plan = store.plan("run-8");
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->problems.size(), 1U);
  EXPECT_EQ(plan->problems[0].label, "qkv");
  EXPECT_TRUE(plan->problems[0].part.is_whole());
}

TEST_F(Version8Test, IsMergedAsItIs) {
  const std::string before = bytes_of(file_);
  Store store(folder_ / "all.db", OpenMode::create);
  const MergeCounts counts = merge_database(file_, store);
  EXPECT_EQ(counts.winners_added, 2);
  EXPECT_EQ(counts.trials, 2);
  EXPECT_EQ(bytes_of(file_), before);
  EXPECT_FALSE(merge_database(file_, store).changed());
}

TEST_F(Version8Test, ReaderLeavesTheFileAsItIs) {
  const std::string before = bytes_of(file_);
  EXPECT_EQ(Store(file_, OpenMode::read_only).winners("", nullptr, std::nullopt).size(), 2U);
  EXPECT_EQ(bytes_of(file_), before);
}

}  // namespace
}  // namespace pascaline::testing
