#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "db/merge.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliMergeTest : public CliTest {
 protected:
  std::string other_ = (folder_ / "other.db").string();

  // A session that ended, with two trials, the first the winner.
  static void make(const std::string& file, std::int64_t first = 1, std::string_view state = "finished") {
    Store store(file, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    store.set_winner(context, store.add_trial(session, context, example_trial(first)), std::nullopt, 0.9);
    store.add_trial(session, context, example_trial(first + 1));
    if (state != "running") {
      store.end_session(session, state);
    }
  }
  [[nodiscard]] ProgramResult merge(std::vector<std::string> words) const {
    words.insert(words.begin(), "merge");
    words.insert(words.end(), {"--db", database_});
    return run(words);
  }
};

TEST_F(CliMergeTest, TellsWhatCame) {
  make(other_);
  const ProgramResult first = merge({other_});
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.out, other_ +
                           ": sessions: 1 new, 0 grown, 0 known; trials: 2 new, 0 known; winners: 1 new, 0 replaced, 0 "
                           "less certain than here, 0 known\n");
  EXPECT_EQ(stored().size(), 2U);
  const ProgramResult again = merge({other_});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, other_ + ": nothing new (1 session, 2 trials, 1 winner known)\n");
  EXPECT_EQ(stored().size(), 2U);
}

TEST_F(CliMergeTest, SeveralAtOnceAsJson) {
  make(other_);
  const std::string third = (folder_ / "third.db").string();
  make(third, 50, "running");
  const nlohmann::json json = json_of(merge({other_, third, other_, "--json"}));
  EXPECT_EQ(json["database"], database_);
  EXPECT_EQ(json["dry_run"], false);
  ASSERT_EQ(json["merged"].size(), 3U);
  EXPECT_EQ(json["merged"][0]["file"], other_);
  EXPECT_EQ(json["merged"][0]["trials"], (nlohmann::json{{"new", 2}, {"known", 0}}));
  EXPECT_EQ(json["merged"][0]["samples"], 60);
  EXPECT_EQ(json["merged"][1]["sessions"], (nlohmann::json{{"new", 1}, {"grown", 0}, {"known", 0}, {"running", 1}}));
  EXPECT_EQ(json["merged"][2]["changed"], false);
  EXPECT_NE(merge({third}).out.find("may still run there"), std::string::npos);
}

TEST_F(CliMergeTest, DryRunChangesNothing) {
  make(other_);
  const ProgramResult none = merge({other_, "--dry-run"});
  EXPECT_EQ(none.exit_code, 0) << none.error;
  EXPECT_NE(none.out.find("would add sessions: 1 new"), std::string::npos) << none.out;
  EXPECT_FALSE(fs::exists(database_));
  make(database_, 100);
  const std::string before = bytes_of(database_);
  const nlohmann::json json = json_of(merge({other_, other_, "--dry-run", "--json"}));
  EXPECT_EQ(json["dry_run"], true);
  EXPECT_EQ(json["merged"][0]["trials"]["new"], 2);
  EXPECT_EQ(json["merged"][1]["trials"]["new"], 0) << "as merging both would go";
  EXPECT_EQ(bytes_of(database_), before);
  EXPECT_EQ(stored().size(), 2U);
}

TEST_F(CliMergeTest, AnyFileThatIsWrongIsToldBeforeAnythingIsMerged) {
  make(other_);
  make(database_, 100);
  const std::string before = bytes_of(database_);
  const std::string missing = (folder_ / "missing.db").string();
  const std::string text = (folder_ / "text.db").string();
  write_bytes(text, "dear diary\n");
  expect_fault(merge({other_, missing}), 1, {missing, "no such file"});
  expect_fault(merge({other_, text}), 1, {text, "not an SQLite database"});
  expect_fault(merge({other_, database_}), 1, {database_, "into itself"});
  expect_fault(merge({other_, kernels_}), 1, {kernels_, "folder"});
  expect_fault(merge({other_, missing, "--json", "--dry-run"}), 1, {missing});
  EXPECT_EQ(bytes_of(database_), before);
  EXPECT_EQ(stored().size(), 2U);
}

TEST_F(CliMergeTest, TruncatedFileLeavesTheDatabaseAsItWas) {
  make(other_);
  make(database_, 100);
  SQLite::Database(other_, SQLite::OPEN_READWRITE).exec("PRAGMA wal_checkpoint(TRUNCATE)");
  fs::resize_file(other_, fs::file_size(other_) - 4096);
  expect_fault(merge({other_}), 1, {other_, "damaged"});
  EXPECT_EQ(stored().size(), 2U);
}

TEST_F(CliMergeTest, DatabaseThatWasMadeForNothingIsGoneAgain) {
  make(other_);
  SQLite::Database(other_, SQLite::OPEN_READWRITE).exec("PRAGMA foreign_keys = OFF; DELETE FROM toolkits");
  expect_fault(merge({other_}), 1, {other_, "damaged"});
  EXPECT_FALSE(fs::exists(database_));
  EXPECT_FALSE(fs::exists(database_ + "-wal"));
  const std::string good = (folder_ / "good.db").string();
  make(good, 50);
  EXPECT_EQ(merge({good, other_}).exit_code, 1);
  EXPECT_FALSE(fs::exists(database_)) << "all files or none";
}

TEST_F(CliMergeTest, FullDisk) {
  make(other_);
  make(database_, 100);
  ProgramSetting full;
  full.file_size_limit = 36'000;
  expect_fault(run({"merge", other_, "--db", database_}, full), 1, {database_, "disk"});
  EXPECT_EQ(stored().size(), 2U);
  EXPECT_EQ(merge({other_}).exit_code, 0);
}

// No room for as much as an empty database: the disk is named, and nothing is left that would puzzle later.
TEST_F(CliMergeTest, FullDiskWhileTheDatabaseIsMade) {
  make(other_);
  for (const std::size_t room : {std::size_t{40'000}, std::size_t{80'000}}) {  // reading takes 32 KiB
    ProgramSetting full;
    full.file_size_limit = room;
    expect_fault(run({"merge", other_, "--db", database_}, full), 1, {database_, "disk"});
    for (const char* end : {"", "-wal", "-shm", "-journal"}) {
      EXPECT_FALSE(fs::exists(database_ + end)) << end << " of " << room;
    }
  }
  EXPECT_EQ(merge({other_}).exit_code, 0);
}

TEST_F(CliMergeTest, FullFileSystemLeavesNothing) {
  make(other_);
  const std::string disk = (folder_ / "disk").string();
  fs::create_directory(disk);
  const std::string mount = "mount -t tmpfs -o size=32k none '" + disk + "'";
  if (std::system(("unshare -rm sh -c \"" + mount + "\" 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no file system can be mounted here; FullDiskWhileTheDatabaseIsMade tests nearly the same";
  }
  const std::string folder = folder_.path().string();
  write_bytes(folder_ / "script", mount + "\ncd '" + folder + "'\n'" PASCALINE_TEST_PROGRAM "' merge '" + other_ +
                                      "' --db disk/all.db > out 2> error; echo $? > code\nls -A disk > left\n");
  ASSERT_EQ(std::system(("unshare -rm sh '" + folder + "/script'").c_str()), 0);
  EXPECT_EQ(bytes_of(folder_ / "code"), "1\n");
  const std::string error = bytes_of(folder_ / "error");
  EXPECT_NE(error.find("disk/all.db"), std::string::npos) << error;
  EXPECT_NE(error.find("the disk is full"), std::string::npos) << error;
  EXPECT_EQ(bytes_of(folder_ / "left"), "");
}

TEST_F(CliMergeTest, WrongCommandLine) {
  expect_fault(merge({}), 2, {"files"});
  expect_fault(merge({other_, "--dry"}), 2, {"--dry"});
}

TEST_F(CliMergeTest, MergedSweepIsShownReportedDispatchedFromAndNotRepeated) {
  const std::string own = database_;
  tune();
  database_ = (folder_ / "all.db").string();
  const ProgramResult merged = merge({own});
  EXPECT_EQ(merged.exit_code, 0) << merged.error;
  EXPECT_EQ(json_of(run({"show", "sessions", "--db", database_, "--json"}))[0]["imported_from"], "tuned.db");
  EXPECT_EQ(run({"report", "--db", database_, "--format", "csv"}).out.size(),
            run({"report", "--db", own, "--format", "csv"}).out.size());
  EXPECT_NE(run(on_toy("explain", {"--device", "emulator", "--db", database_})).out.find("exact"), std::string::npos);
  tune();
  EXPECT_EQ(json_of(run({"show", "sessions", "--db", database_, "--json"})).size(), 2U);
}

TEST_F(CliMergeTest, RowsAreTheSameInWhateverOrderTheyWereMerged) {
  make(other_);
  const std::string third = (folder_ / "third.db").string();
  make(third, 50);
  const auto rows = [&](const std::string& file) {
    const ProgramResult result = run({"export", "--format", "rows", "--db", file});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.out;
  };
  ASSERT_EQ(merge({other_, third}).exit_code, 0);
  const std::string expected = rows(database_);
  EXPECT_NE(expected.find("{\"row\":\"winner\""), std::string::npos) << expected;
  const std::string back = (folder_ / "back.db").string();
  ASSERT_EQ(run({"merge", third, other_, database_, "--db", back}).exit_code, 0);
  EXPECT_EQ(rows(back), expected);
  const std::string file = (folder_ / "rows.jsonl").string();
  EXPECT_EQ(run({"export", "--format", "rows", "--db", back, "-o", file}).exit_code, 0);
  EXPECT_EQ(bytes_of(file), expected);
  EXPECT_FALSE(fs::exists(file + ".part"));
  expect_fault(run({"export", "--format", "rows", "--db", back, "--kernel", "toy"}), 2, {"--format rows", "--kernel"});
  expect_fault(run({"export", "--format", "rows", "--db", back, "-o", (folder_ / "none" / "x").string()}), 1,
               {"none/x: ", "No such file"});
}

TEST_F(CliMergeTest, InterruptedSweepOfAnotherDatabaseIsNotGoneOnWithHere) {
  make(other_, 1, "interrupted");
  ASSERT_EQ(merge({other_}).exit_code, 0);
  expect_fault(run({"sweep", "--resume", "--db", database_}), 1, {"nothing to resume"});
  const nlohmann::json status = json_of(run({"status", "--db", database_, "--json"}));
  EXPECT_TRUE(status["resume"].is_null());
  EXPECT_FALSE(json_of(run({"status", "--db", other_, "--json"}))["resume"].is_null());
}

}  // namespace
}  // namespace pascaline::testing
