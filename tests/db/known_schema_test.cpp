#include "db/known_schema.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "core/error.hpp"
#include "db/merge.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

/// A database that somebody else had in hands.
class KnownSchemaTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path file_ = folder_ / "given.db";

  void make() const {
    Store store(file_, OpenMode::create);
    const ContextIds context = example_context(store);
    store.add_trial(begin_example_session(store, context), context, example_trial(1));
  }
  // What a stranger does, to a file that was closed well.
  void change(const std::string& sql) const {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA journal_mode = DELETE; PRAGMA writable_schema = ON;" + sql);
  }
  // Every way to open it must fail, at once, naming file and object, and change nothing.
  void expect_refused(const std::string& object) const {
    const std::string before = bytes_of(file_);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::string> messages;
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write, OpenMode::create}) {
      messages.push_back(store_error([&] { Store(file_, mode); }));
    }
    messages.push_back(store_error([&] { std::ignore = Store::scratch_copy(file_); }));
    Store mine(folder_ / "mine.db", OpenMode::create);
    messages.push_back(store_error([&] { std::ignore = merge_database(file_, mine); }));
    for (const std::string& message : messages) {
      EXPECT_EQ(message.rfind(file_.string() + ": cannot open the database: ", 0), 0U) << message;
      EXPECT_NE(message.find("'" + object + "'"), std::string::npos) << message;
    }
    EXPECT_EQ(bytes_of(file_), before);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  }
};

constexpr std::string_view kEndless =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

TEST_F(KnownSchemaTest, TriggerIsRefused) {
  make();
  change("CREATE TRIGGER helpful AFTER INSERT ON trials BEGIN DELETE FROM winners; END");
  expect_refused("helpful");
}

TEST_F(KnownSchemaTest, ViewsMoreOrOtherThanOursAreRefused) {
  make();
  change("CREATE VIEW mine AS SELECT 1");
  expect_refused("mine");
  change("DROP VIEW mine; DROP VIEW trial_details; CREATE VIEW trial_details AS " + std::string(kEndless));
  expect_refused("trial_details");
}

TEST_F(KnownSchemaTest, ViewInPlaceOfATableIsRefused) {
  make();
  change("DROP TABLE telemetry; CREATE VIEW telemetry AS " + std::string(kEndless));
  expect_refused("telemetry");
}

TEST_F(KnownSchemaTest, TablesIndexesAndColumnsMoreOrLessAreRefused) {
  make();
  change("CREATE TABLE songs (name TEXT)");
  expect_refused("songs");
  change("DROP TABLE songs; CREATE INDEX slow ON trials (abs(id))");
  expect_refused("slow");
  change("DROP INDEX slow; ALTER TABLE kernels ADD COLUMN x TEXT");
  expect_refused("kernels");
  change("ALTER TABLE kernels DROP COLUMN x");
  EXPECT_EQ(Store(file_, OpenMode::read_only).trials({}).size(), 1U);
  change("DROP INDEX trials_by_problem");
  expect_refused("trials_by_problem");
}

TEST_F(KnownSchemaTest, RefusalOfAnUnreleasedSchemaSaysWhatToDo) {
  make();
  change("UPDATE sqlite_schema SET sql = replace(sql, ', ''dropped''', '') WHERE name = 'trials'");
  expect_refused("trials");
  EXPECT_EQ(
      store_error([&] { Store(file_, OpenMode::read_only); }),
      file_.string() +
          ": cannot open the database: its table 'trials' differs from what this program makes; such a file could "
          "be harmful, so it is not opened; get a copy from the machine that measured it; if an unreleased "
          "version of this program made it, use a new file");
}

// Looking for damage evaluates the checks.
TEST_F(KnownSchemaTest, CheckThatIsNotOursIsRefusedBeforeItIsEvaluated) {
  make();
  change(
      "UPDATE sqlite_schema SET sql = replace(sql, 'source_hash TEXT NOT NULL,', 'source_hash TEXT NOT NULL CHECK "
      "(length(hex(zeroblob(900000000))) > 0),') WHERE name = 'kernels'");
  expect_refused("kernels");
}

// SQLite goes by what stands before a NUL; all of it together would read as the table that is expected.
TEST_F(KnownSchemaTest, TextBehindANulIsNotTakenForPartOfTheSchema) {
  make();
  change(
      "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ') --' || char(0) || char(10) || 'STRICT') "
      "WHERE name = 'kernels'");
  expect_refused("kernels");
}

TEST_F(KnownSchemaTest, ObjectsOfAnUnversionedFileAreNotLookedAtFurther) {
  make();
  change("PRAGMA user_version = 0; CREATE TRIGGER helpful AFTER INSERT ON trials BEGIN DELETE FROM winners; END");
  EXPECT_NE(store_error([&] { Store(file_, OpenMode::read_write); }).find("version 0"), std::string::npos);
}

TEST_F(KnownSchemaTest, StatisticsOfTheShellAreNoHarm) {
  make();
  change("ANALYZE");
  EXPECT_EQ(Store(file_, OpenMode::read_write).trials({}).size(), 1U);
}

// What comes later than the look at the schema cannot run, either.
TEST_F(KnownSchemaTest, TriggersDoNotFireOnAConnectionThatDistrusts) {
  make();
  SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
  distrust(database);
  database.exec("CREATE TRIGGER helpful AFTER INSERT ON kernels BEGIN DELETE FROM samples; END");
  database.exec("INSERT INTO kernels (name, source_hash) VALUES ('a', 'b')");
  EXPECT_GT(database.execAndGet("SELECT count(*) FROM samples").getInt(), 0);
  EXPECT_THROW(database.exec("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema"), SQLite::Exception);
}

TEST(PlainSql, LeavesOutLayoutAndCommentsAndNothingElse) {
  EXPECT_EQ(plain_sql("CREATE TABLE \"devices\"(id INTEGER, -- of it\n  name TEXT /* long */)"),
            "CREATE TABLE devices ( id INTEGER , name TEXT )");
  EXPECT_EQ(plain_sql(" a  b "), "a b");
  EXPECT_NE(plain_sql("ab"), plain_sql("a b"));
  EXPECT_EQ(plain_sql("CHECK (x IN ('a--b', 'c''d'))"), "CHECK ( x IN ( 'a--b' , 'c''d' ) )");
  EXPECT_NE(plain_sql("TEXT \"NOT\" NULL"), plain_sql("TEXT NOT NULL"));
  EXPECT_NE(plain_sql("'a'"), plain_sql("a"));
  for (const char* open : {"'a", "\"a", "[a", "`a", "/*", "--", "'a''"}) {
    EXPECT_LE(plain_sql(open).size(), std::string_view(open).size());
  }
}

/// Paths that are no regular file.
TEST_F(KnownSchemaTest, PipesAndDevicesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0666), 0);
  for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write, OpenMode::create}) {
    const std::string message = store_error([&] { Store(file_, mode); });
    EXPECT_NE(message.find("not a regular file"), std::string::npos) << message;
  }
  EXPECT_NE(store_error([&] { Store("/dev/null", OpenMode::create); }).find("not a regular file"), std::string::npos);
  fs::remove(file_);
  make();
  ASSERT_EQ(::mkfifo((file_.string() + "-journal").c_str(), 0666), 0);
  const std::string message = store_error([&] { Store(file_, OpenMode::read_only); });
  EXPECT_NE(message.find("-journal is a pipe, socket or device"), std::string::npos) << message;
}

TEST_F(KnownSchemaTest, NameThatLooksLikeAUriIsAFile) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  for (const char* name : {"file:other.db?mode=memory", ":memory:"}) {
    Store(name, OpenMode::create);
    EXPECT_TRUE(fs::is_regular_file(folder_ / name)) << name;
    EXPECT_TRUE(Store(name, OpenMode::read_only).sessions().empty()) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "other.db"));
  fs::current_path(before);
}

/// Rows that hold what no program of this project writes.
class BadColumnTest : public KnownSchemaTest {
 protected:
  void expect_told(const std::string& sql, const std::vector<std::string>& parts,
                   const std::function<void(const Store&)>& read) const {
    fs::remove(file_);
    make();
    change("PRAGMA ignore_check_constraints = ON;" + sql);
    const Store store(file_, OpenMode::read_only);
    const std::string message = store_error([&] { read(store); });
    EXPECT_EQ(message.rfind(file_.string() + ": ", 0), 0U) << message;
    EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
    }
  }
};

TEST_F(BadColumnTest, FileRowAndColumnAreNamed) {
  const auto trials = [](const Store& store) { std::ignore = store.trials({}); };
  for (const char* bad : {"{", "[]", "7", "{\"M\":1e300}", "{\"M\":\"x\"}", ""}) {
    expect_told("UPDATE problems SET dimensions = '" + std::string(bad) + "'",
                {"row 1 of table problems", "column dimensions", "restore a copy"}, trials);
  }
  expect_told("UPDATE problems SET types = '{\"STORAGE\":4}'", {"row 1 of table problems", "column types"}, trials);
  for (const char* bad : {"no JSON", "[1]", "{\"A\":[]}"}) {
    expect_told("UPDATE trials SET config = '" + std::string(bad) + "'",
                {"row 1 of table trials", "column config", bad, "restore a copy"}, trials);
  }
  expect_told("UPDATE trials SET config = 'x'", {"row 1 of table trials"}, [](const Store& store) {
    std::ignore = store.known_trials({1, 1, 1, 1, 1});
  });
  expect_told("UPDATE trials SET config = 'x'", {"row 1 of table trials"},
              [](const Store& store) { std::ignore = store.measured(1, "matmul"); });
}

TEST_F(BadColumnTest, ColumnsForTheRecordAloneAreNotRead) {
  make();
  change("PRAGMA ignore_check_constraints = ON; UPDATE sessions SET options = '{', progress = '{', command_line = ''");
  EXPECT_EQ(Store(file_, OpenMode::read_only).sessions().size(), 1U);
}

}  // namespace
}  // namespace pascaline::testing
