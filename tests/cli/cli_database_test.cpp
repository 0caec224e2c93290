#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli_fixture.hpp"
#include "tests/core/space/small_space.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliDatabaseTest : public CliTest {
 protected:
  // Commands that read a database, and the one that writes to it, with `database_`.
  [[nodiscard]] std::vector<std::vector<std::string>> readers() const {
    return {{"show", "--db", database_},
            {"show", "sessions", "--json", "--db", database_},
            {"report", "--db", database_},
            {"report", "--format", "json", "--db", database_},
            on_toy("explain", {"--device", "emulator", "--db", database_})};
  }
  void expect_refused(const std::vector<std::string>& parts) const {
    const std::string before = fs::is_regular_file(database_) ? bytes_of(database_) : "";
    for (const auto& command : readers()) {
      expect_fault(run(command), 1, parts);
    }
    expect_fault(run(sweep()), 1, parts);
    EXPECT_EQ(fs::is_regular_file(database_) ? bytes_of(database_) : "", before) << "not touched";
  }
};

TEST_F(CliDatabaseTest, TextFile) {
  write_bytes(database_, "dear diary\n");
  expect_refused({database_, "not an SQLite database"});
}

TEST_F(CliDatabaseTest, AnotherProgramsDatabase) {
  SQLite::Database(database_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE songs (name TEXT)");
  expect_refused({database_});
}

TEST_F(CliDatabaseTest, Folder) {
  fs::create_directory(database_);
  expect_refused({database_, "folder"});
}

TEST_F(CliDatabaseTest, PipeIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(database_.c_str(), 0666), 0);
  expect_refused({database_, "not a regular file"});
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status", "--db", database_},
        {"serve", "--db", database_},
        {"export", "--db", database_, "--kernel", "toy", "-o", (folder_ / "out").string()},
        {"merge", database_, "--db", (folder_ / "all.db").string()},
        {"sweep", "--resume", "--db", database_},
        {"replay", database_},
        {"import", database_, "--db", (folder_ / "all.db").string()},
        {"report", "--db", (folder_ / "default.db").string(), "--workload", database_}}) {
    const ProgramResult result = run(command);
    EXPECT_NE(result.exit_code, 0) << command[0];
    EXPECT_EQ(result.error.rfind("pascaline: ", 0), 0U) << command[0] << result.error;
  }
}

TEST_F(CliDatabaseTest, TriggerOfAStrangerIsRefusedByEveryCommand) {
  tune();
  SQLite::Database(database_, SQLite::OPEN_READWRITE)
      .exec(
          "PRAGMA journal_mode = DELETE; CREATE TRIGGER helpful AFTER UPDATE ON sessions BEGIN DELETE FROM trials; "
          "END");
  expect_refused({database_, "trigger 'helpful'"});
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status", "--db", database_},
        {"sweep", "--resume", "--db", database_},
        {"export", "--db", database_, "--kernel", "toy", "-o", (folder_ / "out").string()},
        {"merge", database_, "--db", (folder_ / "all.db").string()},
        {"merge", (folder_ / "all.db").string(), "--db", database_},
        {"replay", database_}}) {
    const ProgramResult result = run(command);
    EXPECT_EQ(result.exit_code, command[1] == (folder_ / "all.db").string() ? 1 : result.exit_code) << result.error;
    EXPECT_NE(result.exit_code, 0) << command[0] << result.out;
  }
}

TEST_F(CliDatabaseTest, JsonThatCannotBeReadIsToldWithItsRow) {
  tune();
  const auto spoil = [&](const std::string& sql) {
    SQLite::Database(database_, SQLite::OPEN_READWRITE).exec("PRAGMA ignore_check_constraints = ON;" + sql);
  };
  spoil("UPDATE sessions SET options = '{', progress = '{'; UPDATE devices SET limits = '{'");
  EXPECT_EQ(run({"show", "sessions", "--db", database_}).exit_code, 0);
  EXPECT_EQ(run({"status", "--db", database_}).exit_code, 3);
  EXPECT_EQ(run({"report", "--db", database_}).exit_code, 0);
  spoil("UPDATE trials SET config = '{' WHERE id = 2");
  for (const auto& command : {std::vector<std::string>{"show", "trials", "--db", database_},
                              {"report", "--db", database_, "-f", "json", "--workload", "none"}}) {
    expect_fault(run(command), 1, {database_, "row 2 of table trials", "config", "restore a copy"});
    EXPECT_EQ(run(command).error.find("json.exception"), std::string::npos);
  }
  spoil("UPDATE problems SET types = '[1'");
  expect_fault(run({"show", "--db", database_}), 1, {database_, "row 1 of table problems", "types", "restore a copy"});
}

TEST_F(CliDatabaseTest, FolderForTemporaryFilesThatIsNoneIsNamed) {
  const ProgramSetting nowhere{
      {{"TMPDIR", "/nope"}, {"PASCALINE_CACHE_DIR", (folder_ / "cold_cache").string()}}, {}, false};
  const ProgramResult result = run(on_toy("compile", {"--arch", "emulator"}), nowhere);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.error.find("/nope"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("set TMPDIR"), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find("filesystem error"), std::string::npos) << result.error;
}

TEST_F(CliDatabaseTest, BelowAFile) {
  write_bytes(folder_ / "file", "x");
  database_ = (folder_ / "file" / "tuned.db").string();
  expect_fault(run(sweep()), 1, {database_});
}

TEST_F(CliDatabaseTest, AnotherVersionOfTheSchema) {
  tune();
  SQLite::Database(database_, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99; PRAGMA journal_mode = DELETE");
  expect_refused({database_, "it has version 99 of the schema", "give the path of a new file"});
}

TEST_F(CliDatabaseTest, Truncated) {
  tune();
  SQLite::Database(database_, SQLite::OPEN_READWRITE).exec("PRAGMA wal_checkpoint(TRUNCATE)");
  fs::resize_file(database_, fs::file_size(database_) / 2);
  expect_refused({database_, "damaged"});
}

TEST_F(CliDatabaseTest, MissingIsNoDatabaseForReaders) {
  for (const auto& command : readers()) {
    expect_fault(run(command), 1, {database_, "no such file"});
  }
  EXPECT_FALSE(fs::exists(database_));
}

TEST_F(CliDatabaseTest, ReadOnlyIsReadAndNotWritten) {
  tune();
  fs::permissions(folder_.path(), fs::perms{0777});
  fs::create_directories(folder_ / "closed");
  fs::copy_file(database_, folder_ / "closed" / "tuned.db");
  database_ = (folder_ / "closed" / "tuned.db").string();
  fs::permissions(database_, fs::perms{0444});
  fs::permissions(folder_ / "closed", fs::perms{0555});
  fs::create_directories(folder_ / "cache");
  fs::permissions(folder_ / "cache", fs::perms{0777});
  const ProgramSetting other{{{"PASCALINE_CACHE_DIR", (folder_ / "cache").string()}}, {}, true};
  if (::access(PASCALINE_TEST_PROGRAM, X_OK) != 0) {
    GTEST_SKIP() << "other users cannot start the program here";
  }
  const std::vector<std::string> before = stored();
  for (const char* output : {"stdout", "stderr"}) {
    fs::remove(folder_ / output);
  }
  const ProgramResult shown = run({"show", "--db", database_}, other);
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_NE(shown.out.find("N=1000"), std::string::npos) << shown.out;
  expect_fault(run(sweep({"--quiet"}), other), 1, {database_, "writable"});
  EXPECT_EQ(stored(), before);
  fs::permissions(folder_ / "closed", fs::perms{0755});
}

TEST_F(CliDatabaseTest, OutputThatCannotBeWritten) {
  tune();
  expect_fault(run({"report", "--db", database_, "-o", "/nonexistent/report.md"}), 1, {"/nonexistent/report.md"});
  expect_fault(run({"report", "--db", database_, "-f", "json", "-o", "/nonexistent/x"}), 1, {"/nonexistent/x"});
  expect_fault(run({"report", "--db", database_, "-f", "json", "--workload", "/nonexistent/w"}), 1, {"/nonexistent/w"});
  expect_fault(run({"report", "--db", database_, "-o", kernels_}), 1, {kernels_});
}

TEST_F(CliDatabaseTest, EmptyDatabaseShowsNothing) {
  { const Store store(database_, OpenMode::create); }
  for (const char* what : {"winners", "trials", "sessions"}) {
    EXPECT_EQ(run({"show", what, "--db", database_}).exit_code, 0);
    const nlohmann::json rows = json_of(run({"show", what, "--db", database_, "--json"}));
    EXPECT_TRUE(rows.is_array() && rows.empty()) << rows;
  }
  for (const char* format : {"md", "csv", "json"}) {
    const ProgramResult report = run({"report", "--db", database_, "--format", format});
    EXPECT_EQ(report.exit_code, 0) << report.error;
    EXPECT_FALSE(report.out.empty());
  }
  const ProgramResult plan = run(on_toy("explain", {"--device", "emulator", "--db", database_}));
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_NE(plan.out.find("default"), std::string::npos) << plan.out;
}

TEST_F(CliDatabaseTest, AShapeIsGivenByWhatTellsItFromOthers) {
  {
    const Space space = Space::parse(small_space().dump(), "scale.json");
    Store store(database_, OpenMode::create);
    for (const char* n : {"64", "640", "6400"}) {
      (void)store.problem_id(space.problem({{"N", n}, {"WIDTH", "2"}, {"STORAGE", "float16"}}), 1, 1);
    }
    (void)store.problem_id(space.problem({{"N", "64"}, {"WIDTH", "2"}, {"STORAGE", "float32"}}), 1, 1);
  }
  const auto shown = [&](const std::string& problem) {
    return run({"show", "trials", "--db", database_, "--kernel", "scale", "--json", "--problem", problem});
  };
  EXPECT_EQ(shown("N=640").exit_code, 0);
  EXPECT_EQ(shown("STORAGE=float16,N=64").exit_code, 0) << "in any order";
  expect_fault(shown("N=7"), 1, {"no problem of scale with N=7: scale N=64 ", "N=6400"});
  expect_fault(shown("N=64"), 1, {"2 problems of scale with N=64: ", "float16", "float32"});
  expect_fault(run({"export", "--format", "csv", "--db", database_, "-k", "scale", "-p", "WIDTH=2"}), 1,
               {"4 problems of scale with WIDTH=2"});
  expect_fault(run({"export", "--format", "rows", "--db", database_, "-p", "N=64"}), 2, {"--format rows", "--problem"});
}

TEST_F(CliDatabaseTest, FullDatabaseIsShownReportedAndDispatchedFrom) {
  tune();
  const nlohmann::json winners = json_of(run({"show", "--db", database_, "--json"}));
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_GE(json_of(run({"show", "trials", "--db", database_, "--json"})).size(), 4U);
  EXPECT_EQ(json_of(run({"show", "sessions", "--db", database_, "--json"})).size(), 1U);
  EXPECT_EQ(json_of(run({"show", "trials", "--db", database_, "--limit", "1", "--json"})).size(), 1U);
  EXPECT_NE(run({"show", "--db", database_}).out.find("N=1000"), std::string::npos);
  EXPECT_EQ(json_of(run({"show", "--db", database_, "--kernel", "toy", "-p", "N=1000", "--json"})), winners);
  EXPECT_NE(run({"report", "--db", database_}).out.find("toy"), std::string::npos);
  const ProgramResult csv = run({"report", "--db", database_, "-f", "csv", "-o", (folder_ / "out.csv").string()});
  EXPECT_EQ(csv.exit_code, 0) << csv.error;
  EXPECT_NE(bytes_of(folder_ / "out.csv").find("BLOCK"), std::string::npos);
  const nlohmann::json document = json_of(run({"report", "--db", database_, "-f", "json", "--workload", "none"}));
  EXPECT_EQ(document["contexts"][0]["kernels"][0]["name"], "toy");
  const nlohmann::json& problem = document["contexts"][0]["kernels"][0]["problems"][0];
  EXPECT_EQ(problem["best_trial"], winners[0]["trial"]);
  EXPECT_NEAR(problem["speedup"]["value"].get<double>(), winners[0]["speedup"].get<double>(), 1e-6);

  const nlohmann::json plans = json_of(
      run(on_toy("explain", {"--device", "emulator", "--db", database_, "--json", "-p", "N=1000", "-p", "N=1100"})));
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0]["provenance"], "exact");
  EXPECT_EQ(plans[1]["provenance"], "nearest");
  EXPECT_NE(run(on_toy("explain", {"--device", "emulator", "--db", database_})).out.find("exact"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
