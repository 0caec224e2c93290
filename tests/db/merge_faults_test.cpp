#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

/// Merges that fail: the message names the file at fault, and mine is as it was.
class MergeFaultsTest : public MergeTest {
 protected:
  void SetUp() override {
    make(mine_, 2, 100);
    make(other_, 20);
  }
  void change_other(const std::string& sql) const {
    SQLite::Database database(other_.string(), SQLite::OPEN_READWRITE);
    database.exec(sql);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  void expect_refused(const fs::path& at_fault, const std::string& expected) const {
    const std::string before = content_of(mine_);
    const std::string message = store_error([&] { merge(); });
    EXPECT_EQ(message.rfind(at_fault.string(), 0), 0U) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_EQ(content_of(mine_), before);
    EXPECT_EQ(count(mine_, "imports"), 0);
    expect_sound(mine_);
  }
};

TEST_F(MergeFaultsTest, Itself) {
  for (const char* how : {"mine.db", "link.db", "hard.db"}) {
    other_ = folder_ / how;
    if (other_ == folder_ / "link.db") {
      fs::create_symlink(mine_, other_);
    } else if (other_ == folder_ / "hard.db") {
      fs::create_hard_link(mine_, other_);
    }
    expect_refused(other_, "into itself");
  }
  Store scratch = Store::scratch_copy(mine_);
  EXPECT_NE(store_error([&] { merge_database(mine_, scratch); }).find("into itself"), std::string::npos);
}

TEST_F(MergeFaultsTest, MissingFolderTextEmptyAndForeignFiles) {
  fs::remove(other_);
  expect_refused(other_, "no such file");
  fs::create_directory(other_);
  expect_refused(other_, "folder");
  fs::remove(other_);
  write_bytes(other_, "dear diary");
  expect_refused(other_, "not an SQLite database");
  write_bytes(other_, "");
  expect_refused(other_, "empty");
  fs::remove(other_);
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE songs (name TEXT)");
  expect_refused(other_, "another program");
}

TEST_F(MergeFaultsTest, AnotherVersionOfTheSchema) {
  change_other("PRAGMA user_version = 99");
  expect_refused(other_, "it has version 99 of the schema");
}

TEST_F(MergeFaultsTest, TruncatedAnywhere) {
  change_other("");
  const auto size = fs::file_size(other_);
  for (const auto left : {size - 4096, size / 2, std::uintmax_t{8192}, std::uintmax_t{1000}}) {
    fs::resize_file(other_, left);
    expect_refused(other_, left < 4096 ? "" : "damaged");
  }
}

TEST_F(MergeFaultsTest, DamagedInside) {
  change_other("");
  const std::string sound = bytes_of(other_);
  const std::size_t pages = sound.size() / 4096;
  for (std::size_t page = 2; page < pages; page += 3) {
    std::string bytes = sound;
    bytes.replace(page * 4096, 64, 64, '\x5a');
    write_bytes(other_, bytes);
    expect_refused(other_, "damaged");
  }
}

TEST_F(MergeFaultsTest, TableOrColumnGone) {
  change_other("DROP TABLE samples");
  expect_refused(other_, "samples");
}

TEST_F(MergeFaultsTest, DanglingReference) {
  change_other("PRAGMA foreign_keys = OFF; DELETE FROM kernels");
  expect_refused(other_, "refers to a missing one");
}

TEST_F(MergeFaultsTest, SessionOfAnotherDevice) {
  merge();
  const std::string before = content_of(mine_);
  change_other("UPDATE devices SET sm_count = 20");
  const std::string message = store_error([&] { merge(); });
  EXPECT_NE(message.find("another device"), std::string::npos) << message;
  EXPECT_EQ(content_of(mine_), before);
}

TEST_F(MergeFaultsTest, ProblemOfTheSameTextAndOtherDimensions) {
  change_other("UPDATE problems SET dimensions = '{\"M\":1}'");
  expect_refused(other_, "problems.text");
}

TEST_F(MergeFaultsTest, ValuesThatTheSchemaForbids) {
  change_other("PRAGMA ignore_check_constraints = ON; UPDATE trials SET config = 'no json' WHERE id = 15");
  expect_refused(other_, "damaged");
}

TEST_F(MergeFaultsTest, DocumentsThatCannotBeRead) {
  const fs::path sound = folder_ / "sound.db";
  change_other("SELECT 1");
  fs::copy_file(other_, sound);
  const auto expect_untaken = [&](const std::string& sql, const std::string& place) {
    SCOPED_TRACE(sql);
    fs::copy_file(sound, other_, fs::copy_options::overwrite_existing);
    change_other(sql);
    expect_refused(other_, place);
    EXPECT_EQ(Store(mine_, OpenMode::read_only).trials({}).size(), 2U) << "one's own trials can be read";
    Store dry = Store::scratch_copy(mine_);
    const std::string message = store_error([&] { merge_database(other_, dry); });
    EXPECT_NE(message.find(place), std::string::npos) << message;
    EXPECT_EQ(dry.trials({}).size(), 2U);
  };
  for (const char* bad : {"[1]", "7", "{\"A\":[]}", "{\"A\":null}", "{\"A\":18446744073709551615}"}) {
    expect_untaken(fmt::format("UPDATE trials SET config = '{}' WHERE id = 15", bad),
                   "row 15 of table trials has a value in column config");
  }
  for (const char* bad : {"[1]", "{\"M\":\"x\"}", "{\"M\":1.5}"}) {
    expect_untaken(fmt::format("UPDATE problems SET text = 'a new one', dimensions = '{}'", bad),
                   "row 1 of table problems has a value in column dimensions");
  }
  for (const char* bad : {"[1]", "{\"STORAGE\":4}"}) {
    expect_untaken(fmt::format("UPDATE problems SET text = 'a new one', types = '{}'", bad),
                   "row 1 of table problems has a value in column types");
  }
  expect_untaken("UPDATE problems SET text = 'a new one', types = '{\"STORAGE\":\"float7\"}'", "unknown name 'float7'");
  expect_untaken(
      "INSERT INTO attempts SELECT session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, config_text, "
      "'[1]', stage, is_default, started_unix_ms, 1, '' FROM trials WHERE id = 3",
      "a row of table attempts has a value in column config");
  fs::copy_file(sound, other_, fs::copy_options::overwrite_existing);
  EXPECT_EQ(merge().trials, 20);
}

// The winners come last: by then all trials are in the transaction.
TEST_F(MergeFaultsTest, WinnerThatIsNoTrialOfItsKeyTakesTheTrialsBackToo) {
  change_other(
      "INSERT INTO kernels VALUES (77, 'matmul', 'other');"
      "INSERT INTO decisions SELECT device_id, toolkit_id, 77, problem_id, 'time', id, 1, 0, NULL, NULL, NULL, NULL, "
      "NULL, 1 FROM trials LIMIT 1");
  const std::int64_t before = count(mine_, "trials");
  expect_refused(other_, "winner");
  EXPECT_EQ(count(mine_, "trials"), before);
  change_other("DELETE FROM decisions WHERE kernel_id = 77");
  EXPECT_EQ(merge().trials, 20);
}

TEST_F(MergeFaultsTest, LockHeldByAnother) {
  Store store(mine_, OpenMode::read_write);
  store.set_busy_timeout(std::chrono::milliseconds(20));
  SQLite::Database another(mine_.string(), SQLite::OPEN_READWRITE);
  {
    const SQLite::Transaction held(another, SQLite::TransactionBehavior::IMMEDIATE);
    EXPECT_THROW(merge_database(other_, store), StoreBusyError);
  }
  EXPECT_EQ(merge_database(other_, store).trials, 20) << "the store can go on";
}

TEST_F(MergeFaultsTest, OtherIsReadWhileItIsWrittenTo) {
  Store writer(other_, OpenMode::read_write);
  SQLite::Database another(other_.string(), SQLite::OPEN_READWRITE);
  const SQLite::Transaction held(another, SQLite::TransactionBehavior::IMMEDIATE);
  EXPECT_EQ(merge().trials, 20);
}

// A limit on file size makes writes fail as a full disk does.
TEST_F(MergeFaultsTest, FullDisk) {
  const std::string before = content_of(mine_);
  const int child = fork_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    Store store(mine_, OpenMode::read_write);
    const rlimit limit{50'000, RLIM_INFINITY};
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    const std::string message = store_error([&] { merge_database(other_, store); });
    require(message.find("disk") != std::string::npos, message.c_str());
    require(message.rfind(mine_.string(), 0) == 0, message.c_str());
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    require(::setrlimit(RLIMIT_FSIZE, &none) == 0, "setrlimit");
    require(store.trials({}).size() == 2, "as before");
  });
  ASSERT_EQ(wait_child(child), 0);
  EXPECT_EQ(content_of(mine_), before);
  expect_sound(mine_);
  EXPECT_EQ(merge().trials, 20);
}

// Several files in one call, killed at random moments: all of them are there, or none.
TEST_F(MergeFaultsTest, KilledAtAnyMoment) {
  std::vector<fs::path> files{other_};
  for (int i = 0; i < 3; ++i) {
    files.push_back(folder_ / fmt::format("part{}.db", i));
    make(files.back(), 20, 200 + 100 * i);
  }
  const std::string before = content_of(mine_);
  const auto merge_all = [&] {
    Store store(mine_, OpenMode::create, Durability::normal);
    return merge_databases(files, store);
  };
  fs::copy_file(mine_, folder_ / "whole.db");
  std::string after;
  {
    Store whole(folder_ / "whole.db", OpenMode::read_write);
    merge_databases(files, whole);
    after = content_of(folder_ / "whole.db");
  }
  int interrupted = 0;
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const int child = fork_child([&] { merge_all(); });
    ::usleep(static_cast<useconds_t>(random() % 40'000));
    ::kill(child, SIGKILL);
    std::ignore = wait_child(child);
    expect_sound(mine_);
    const std::string content = content_of(mine_);
    EXPECT_TRUE(content == before || content == after);
    interrupted += content == before ? 1 : 0;
    if (content == after) {
      break;
    }
  }
  RecordProperty("interrupted", interrupted);
  merge_all();
  EXPECT_EQ(content_of(mine_), after);
}

// Where more comes than is there, an index is dropped and made again in the same transaction.
TEST_F(MergeFaultsTest, KilledWhileManyTrialsAreMerged) {
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE)
      .exec(
          "BEGIN; CREATE TEMP TABLE more AS WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < "
          "6000) SELECT trials.*, i FROM trials, n WHERE trials.id = 1; UPDATE more SET id = i, config_text = 'TILE=' "
          "|| i, config = json_object('TILE', i), is_default = 0, shared_trial_id = NULL, reason = printf('%.*c', "
          "15000, 'x'); ALTER TABLE more DROP COLUMN i; INSERT INTO trials SELECT * FROM more; DROP TABLE more; "
          "COMMIT; "
          "PRAGMA wal_checkpoint(TRUNCATE)");
  ASSERT_GT(fs::file_size(other_), 64U << 20U) << "too few to drop the index for";
  const auto is_whole = [&](std::int64_t trials) {
    expect_sound(mine_);
    EXPECT_EQ(count(mine_, "sqlite_schema WHERE name = 'trials_by_measurement'"), 1);
    EXPECT_EQ(count(mine_, "trials"), trials);
    Store(mine_, OpenMode::read_write);  // throws at a schema that is not known
  };
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    const int child = fork_child([&] { merge(); });
    ::usleep(static_cast<useconds_t>(random() % 300'000));
    ::kill(child, SIGKILL);
    std::ignore = wait_child(child);
    if (count(mine_, "trials") != 2) {
      break;
    }
    is_whole(2);
  }
  merge();
  is_whole(2 + 20 + 5901);
}

}  // namespace
}  // namespace pascaline::testing
