#include "db/migrations.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

constexpr std::string_view kFirst =
    "PRAGMA user_version = 1;"
    "CREATE TABLE parents (id INTEGER PRIMARY KEY);"
    "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents (id));";
constexpr std::string_view kToSecond =
    "CREATE TABLE renewed (id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
    "INSERT INTO renewed SELECT id, 'parent ' || id FROM parents; DROP TABLE parents;"
    "ALTER TABLE renewed RENAME TO parents";
constexpr std::string_view kToThird = "ALTER TABLE parents ADD COLUMN last TEXT NOT NULL DEFAULT ' from 2'";

class MigrationsTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  SQLite::Database database_{(folder_ / "x.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};

  void make_first() {
    prepare_schema(database_, {kFirst, {}});
    database_.exec("INSERT INTO parents VALUES (1), (2); INSERT INTO children VALUES (7, 2)");
  }
  void prepare(const std::vector<std::string_view>& migrations) { prepare_schema(database_, {kFirst, migrations}); }
};

TEST_F(MigrationsTest, ShippedSchemaIsVersionOneOfThisProgramsFiles) {
  prepare_schema(database_, current_schema());
  EXPECT_EQ(schema_version(database_), 1);
  EXPECT_EQ(database_.execAndGet("PRAGMA application_id").getUInt(), kApplicationId);
  const int tables = database_.execAndGet("SELECT count(*) FROM sqlite_schema").getInt();
  prepare_schema(database_, current_schema());
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM sqlite_schema").getInt(), tables);
}

TEST_F(MigrationsTest, MigrationsRunInOrderAndKeepTheRows) {
  make_first();
  prepare({kToSecond, kToThird});
  EXPECT_EQ(schema_version(database_), 3);
  EXPECT_EQ(database_.execAndGet("SELECT name || last FROM parents WHERE id = 2").getString(), "parent 2 from 2");
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM children JOIN parents ON parents.id = parent").getInt(), 1);
}

TEST_F(MigrationsTest, NewDatabaseIsMadeAsAMigratedOne) {
  prepare({kToSecond, kToThird});
  EXPECT_EQ(schema_version(database_), 3);
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM pragma_table_info('parents')").getInt(), 3);
}

TEST_F(MigrationsTest, FailureOfALaterMigrationUndoesTheEarlierOnes) {
  make_first();
  EXPECT_THROW(prepare({kToSecond, "ALTER TABLE missing ADD COLUMN x"}), SQLite::Exception);
  EXPECT_THROW(prepare({kToSecond, "DELETE FROM parents WHERE id = 2"}), Error) << "a dangling reference";
  EXPECT_EQ(schema_version(database_), 1);
  EXPECT_FALSE(database_.tableExists("renewed"));
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM pragma_table_info('parents')").getInt(), 1);
}

TEST_F(MigrationsTest, VersionsThatNoMigrationLeadsFromAreErrors) {
  make_first();
  for (const int version : {-1, 0, 4}) {
    database_.exec("PRAGMA user_version = " + std::to_string(version));
    EXPECT_THROW(prepare({kToSecond, kToThird}), Error) << version;
    EXPECT_EQ(schema_version(database_), version);
  }
}

}  // namespace
}  // namespace pascaline::testing
