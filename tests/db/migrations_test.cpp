#include "db/migrations.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <array>

#include "core/error.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

constexpr std::string_view kFirst =
    "PRAGMA application_id = 1348563811; PRAGMA user_version = 1;"
    "CREATE TABLE parents (id INTEGER PRIMARY KEY);"
    "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents (id));";
constexpr std::string_view kThird = "SELECT 'a new database is made at once, not migrated'";

constexpr std::array<Migration, 2> kSteps{{
    {2, "ALTER TABLE parents ADD COLUMN last TEXT NOT NULL DEFAULT 'from 2'"},
    {1,
     "CREATE TABLE renewed (id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
     "INSERT INTO renewed SELECT id, 'parent ' || id FROM parents; DROP TABLE parents;"
     "ALTER TABLE renewed RENAME TO parents"},
}};

class MigrationsTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  SQLite::Database database_{(folder_ / "x.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};

  void make_first() {
    prepare_schema(database_, {kFirst, 1, {}});
    database_.exec("INSERT INTO parents VALUES (1), (2); INSERT INTO children VALUES (7, 2)");
  }
};

TEST_F(MigrationsTest, ShippedSchemaHasTheVersionAndNameOfTheProgram) {
  prepare_schema(database_, current_schema());
  EXPECT_EQ(schema_version(database_), Store::kSchemaVersion);
  EXPECT_EQ(database_.execAndGet("PRAGMA application_id").getUInt(), kApplicationId);
  const int tables = database_.execAndGet("SELECT count(*) FROM sqlite_schema").getInt();
  prepare_schema(database_, current_schema());
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM sqlite_schema").getInt(), tables);
}

TEST_F(MigrationsTest, StepsRunInOrderAndKeepTheRows) {
  make_first();
  prepare_schema(database_, {kThird, 3, kSteps});
  EXPECT_EQ(schema_version(database_), 3);
  EXPECT_EQ(database_.execAndGet("SELECT name || last FROM parents WHERE id = 2").getString(), "parent 2from 2");
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM children JOIN parents ON parents.id = parent").getInt(), 1);
}

TEST_F(MigrationsTest, FailureOfALaterStepUndoesTheEarlierOnes) {
  make_first();
  const std::array<Migration, 2> steps{kSteps[1], Migration{2, "ALTER TABLE missing ADD COLUMN x"}};
  EXPECT_THROW(prepare_schema(database_, {kThird, 3, steps}), SQLite::Exception);
  EXPECT_EQ(schema_version(database_), 1);
  EXPECT_FALSE(database_.tableExists("renewed"));
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM pragma_table_info('parents')").getInt(), 1);
}

TEST_F(MigrationsTest, MissingStepDanglingReferenceAndNewerVersionAreErrors) {
  make_first();
  EXPECT_THROW(prepare_schema(database_, {kThird, 3, std::span(kSteps).subspan(1)}), Error);
  const std::array<Migration, 1> careless{{{1, "DELETE FROM parents WHERE id = 2"}}};
  EXPECT_THROW(prepare_schema(database_, {kThird, 2, careless}), Error);
  EXPECT_THROW(prepare_schema(database_, {kFirst, 0, {}}), Error);
  EXPECT_EQ(schema_version(database_), 1);
  EXPECT_EQ(database_.execAndGet("SELECT count(*) FROM parents").getInt(), 2);
}

}  // namespace
}  // namespace pascaline::testing
