#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "core/error.hpp"
#include "db/connection.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class StoreOpenTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path file_ = folder_ / "tuned.db";

  void make(int trials) {
    Store store(file_, OpenMode::create);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    for (int i = 0; i < trials; ++i) {
      store.add_trial(session, context, example_trial(i));
    }
  }

  // Opening in every mode must fail with a message that names the file and holds `expected`, and change nothing.
  void expect_refused(const std::string& expected) {
    const std::string before = bytes_of(file_);
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write, OpenMode::create}) {
      const std::string message = store_error([&] { Store(file_, mode); });
      EXPECT_NE(message.find(file_.string()), std::string::npos) << message;
      EXPECT_NE(message.find(expected), std::string::npos) << message;
    }
    EXPECT_EQ(bytes_of(file_), before);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
  }
};

void lose_privileges() {
  if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
    throw std::runtime_error("cannot give up root");
  }
}

TEST_F(StoreOpenTest, MakesFoldersAndReopens) {
  file_ = folder_ / "a" / "b" / "tuned.db";
  make(2);
  EXPECT_EQ(Store(file_, OpenMode::read_write).trials({}).size(), 2U);
  EXPECT_EQ(Store(file_, OpenMode::read_only).trials({}).size(), 2U);
  EXPECT_EQ(Store(file_, OpenMode::create).trials({}).size(), 2U);
  EXPECT_EQ(Store(file_, OpenMode::read_only).file(), file_);
  SQLite::Database database(file_.string());
  EXPECT_EQ(database.execAndGet("PRAGMA journal_mode").getString(), "wal");
}

TEST_F(StoreOpenTest, EmptyFileIsFilledOnlyByCreate) {
  write_bytes(file_, "");
  EXPECT_NE(store_error([&] { Store(file_, OpenMode::read_only); }).find("empty"), std::string::npos);
  EXPECT_NE(store_error([&] { Store(file_, OpenMode::read_write); }).find("empty"), std::string::npos);
  EXPECT_TRUE(Store(file_, OpenMode::create).trials({}).empty());
}

TEST_F(StoreOpenTest, MissingFileIsMadeOnlyByCreate) {
  EXPECT_NE(store_error([&] { Store(file_, OpenMode::read_only); }).find("no such file"), std::string::npos);
  EXPECT_NE(store_error([&] { Store(file_, OpenMode::read_write); }).find("no such file"), std::string::npos);
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(StoreOpenTest, RefusesFolder) {
  fs::create_directory(file_);
  expect_refused("is a folder");
}

TEST_F(StoreOpenTest, RefusesFileInPlaceOfItsFolder) {
  write_bytes(folder_ / "plain", "x");
  std::ignore = store_error([&] { Store(folder_ / "plain" / "tuned.db", OpenMode::create); });
}

TEST_F(StoreOpenTest, RefusesTextAndNoise) {
  write_bytes(file_, "Dear diary, today I tuned nothing.\n");
  expect_refused("not an SQLite database");
  std::string noise(20'000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<char>(i * 2654435761U >> 13);
  }
  write_bytes(file_, noise);
  expect_refused("not an SQLite database");
  write_bytes(file_, std::string("SQLite format 3\0", 16));
  expect_refused("not an SQLite database");
}

TEST_F(StoreOpenTest, RefusesDatabaseOfAnotherProgram) {
  for (const std::string mode : {"DELETE", "WAL"}) {
    fs::remove(file_);
    {
      SQLite::Database other(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      other.execAndGet("PRAGMA journal_mode = " + mode);
      other.exec("CREATE TABLE trials (id INTEGER PRIMARY KEY)");
    }
    expect_refused("another program");
  }
}

TEST_F(StoreOpenTest, RefusesOtherVersionsSayingWhichAndWhatToDo) {
  make(1);
  for (const int version : {-1, 0, 2, 9, 99}) {
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE)
        .exec(fmt::format("PRAGMA user_version = {}; PRAGMA wal_checkpoint(TRUNCATE)", version));
    expect_refused(
        fmt::format("{}: cannot open the database: it has version {} of the schema, which this program "
                    "(version 1) neither reads nor converts; give the path of a new file",
                    file_.string(), version));
  }
}

// Files of development versions had the same first version under another id.
TEST_F(StoreOpenTest, RefusesAnotherApplicationIdSayingItAndTheVersion) {
  make(1);
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA application_id = 1348563811; PRAGMA wal_checkpoint(TRUNCATE)");
  expect_refused(file_.string() +
                 ": cannot open the database: it has the application id 0x50617363 and version 1 of a schema, so "
                 "another program or an unreleased version of this one made it, and it cannot be converted; give the "
                 "path of a new file");
}

TEST_F(StoreOpenTest, RefusesAnotherVersionStillInTheLog) {
  make(1);
  const fs::path copy = folder_ / "copy.db";
  const std::string log = copy.string() + "-wal";
  {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA user_version = 99");
    fs::copy_file(file_, copy);
    fs::copy_file(file_.string() + "-wal", log);
  }
  const auto before = std::pair(bytes_of(copy), bytes_of(log));
  for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write, OpenMode::create}) {
    EXPECT_NE(store_error([&] { Store(copy, mode); }).find("it has version 99 of the schema"), std::string::npos);
    EXPECT_EQ(std::pair(bytes_of(copy), bytes_of(log)), before);
  }
}

TEST_F(StoreOpenTest, RefusesTruncatedFile) {
  make(50);
  const auto size = fs::file_size(file_);
  for (const auto left : {size - 4096, size / 2, std::uintmax_t{4096}, std::uintmax_t{1000}}) {
    fs::resize_file(file_, left);
    const std::string before = bytes_of(file_);
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write, OpenMode::create}) {
      const std::string message = store_error([&] { Store(file_, mode); });
      EXPECT_NE(message.find("damaged"), std::string::npos) << message;
    }
    EXPECT_EQ(bytes_of(file_), before);
  }
}

TEST_F(StoreOpenTest, FindsDamageInsideWhenWritingAndReportsItOnUseWhenReading) {
  make(50);
  const int root =
      SQLite::Database(file_.string()).execAndGet("SELECT rootpage FROM sqlite_schema WHERE name = 'trials'").getInt();
  std::string bytes = bytes_of(file_);
  bytes.replace(static_cast<std::size_t>(root - 1) * 4096, 64, 64, '\x5a');
  write_bytes(file_, bytes);
  EXPECT_NE(store_error([&] { Store(file_, OpenMode::read_write); }).find("damaged"), std::string::npos);
  const Store store(file_, OpenMode::read_only);
  EXPECT_NE(store_error([&] { std::ignore = store.trials({}); }).find("damaged"), std::string::npos);
  EXPECT_EQ(bytes_of(file_), bytes);
}

TEST_F(StoreOpenTest, ReadOnlyStoreRefusesToWrite) {
  make(1);
  Store store(file_, OpenMode::read_only);
  const std::string message = store_error([&] { store.kernel_id({"softmax", "new"}); });
  EXPECT_NE(message.find("cannot be written"), std::string::npos) << message;
}

TEST_F(StoreOpenTest, ReadsFromReadOnlyFolderAndSaysWhyItCannotWrite) {
  file_ = folder_ / "odd ?name#%41.db";
  make(3);
  fs::permissions(file_, fs::perms{0444});
  fs::permissions(folder_.path(), fs::perms{0555});
  const int child = fork_child([&] {
    lose_privileges();
    require(Store(file_, OpenMode::read_only).trials({}).size() == 3, "three trials");
    for (const OpenMode mode : {OpenMode::read_write, OpenMode::create}) {
      require(store_error([&] { Store(file_, mode); }).find("writable") != std::string::npos, "says writable");
    }
    const fs::path missing = folder_ / "new.db";
    require(store_error([&] { Store(missing, OpenMode::create); }).find("writable") != std::string::npos, "new file");
  });
  EXPECT_EQ(wait_child(child), 0);
}

TEST_F(StoreOpenTest, WritableFileInReadOnlyFolderIsRefusedForWriting) {
  make(3);
  fs::permissions(file_, fs::perms{0666});
  fs::permissions(folder_.path(), fs::perms{0555});
  const int child = fork_child([&] {
    lose_privileges();
    require(store_error([&] { Store(file_, OpenMode::read_write); }).find("writable") != std::string::npos, "says so");
  });
  EXPECT_EQ(wait_child(child), 0);
}

TEST_F(StoreOpenTest, UnreadableFileIsRefused) {
  make(1);
  fs::permissions(file_, fs::perms::none);
  fs::permissions(folder_.path(), fs::perms{0755});
  const int child = fork_child([&] {
    lose_privileges();
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write}) {
      require(store_error([&] { Store(file_, mode); }).find("permissions") != std::string::npos, "permissions");
    }
  });
  EXPECT_EQ(wait_child(child), 0);
}

TEST_F(StoreOpenTest, ChangesLeftInTheLogOfAReadOnlyFolderAreNotDropped) {
  file_ = folder_ / "live.db";
  make(1);
  const fs::path copy = folder_ / "copy.db";
  {
    Store store(file_, OpenMode::read_write);
    store.kernel_id({"softmax", "only in the log"});
    fs::copy_file(file_, copy);
    fs::copy_file(file_.string() + "-wal", copy.string() + "-wal");
  }
  fs::permissions(copy, fs::perms{0444});
  fs::permissions(folder_.path(), fs::perms{0555});
  const int child = fork_child([&] {
    lose_privileges();
    require(store_error([&] { Store(copy, OpenMode::read_only); }).find("-wal") != std::string::npos, "names the log");
  });
  EXPECT_EQ(wait_child(child), 0);
}

// A limit on file size makes writes fail as a full disk does, without root.
TEST_F(StoreOpenTest, FullDiskIsAnErrorAndKeepsWhatIsThere) {
  make(0);
  const int child = fork_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{400'000, 400'000};
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    Store store(file_, OpenMode::read_write);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    std::size_t stored = 0;
    const std::string message = store_error([&] {
      for (;; ++stored) {
        store.add_trial(session, context, example_trial(static_cast<int>(stored)));
      }
    });
    require(message.find("disk") != std::string::npos, message.c_str());
    require(stored > 10, "some trials before");
    require(store.trials({}).size() == stored, "all of them still there");
    write_bytes(folder_ / "count", std::to_string(stored));
  });
  ASSERT_EQ(wait_child(child), 0);
  Store store(file_, OpenMode::read_write);
  EXPECT_EQ(std::to_string(store.trials({}).size()), bytes_of(folder_ / "count"));
  SQLite::Database database(file_.string());
  EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
}

TEST(ExplainSqlite, SaysWhatToDo) {
  EXPECT_NE(explain_sqlite(SQLITE_FULL, "").find("free some space"), std::string::npos);
  EXPECT_NE(explain_sqlite(SQLITE_IOERR_WRITE, "").find("disk"), std::string::npos);
  EXPECT_NE(explain_sqlite(SQLITE_BUSY_SNAPSHOT, "").find("another process"), std::string::npos);
  EXPECT_NE(explain_sqlite(SQLITE_CORRUPT_INDEX, "").find(".recover"), std::string::npos);
  EXPECT_NE(explain_sqlite(SQLITE_READONLY_DBMOVED, "").find("writable"), std::string::npos);
  EXPECT_NE(explain_sqlite(SQLITE_NOMEM, "out of memory").find("out of memory"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
