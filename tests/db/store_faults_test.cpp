#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <sys/resource.h>

#include <csignal>

#include "core/error.hpp"
#include "db/store.hpp"
#include "tests/db/process_fixture.hpp"

namespace pascaline::testing {
namespace {

using StoreFaultsTest = ProcessFixture;

void limit_file_size(rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

std::string four_bytes(std::uint64_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) {
    bytes += static_cast<char>(value >> shift & 0xFFU);
  }
  return bytes;
}

constexpr std::string_view kJournalMagic{"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8};
constexpr std::uint64_t kPageSize = 4096;

// A journal without pages that leaves the database as it is when it is rolled back.
std::string hot_journal(const std::filesystem::path& database) {
  constexpr std::uint64_t kSectorSize = 512;
  std::string journal = std::string(kJournalMagic) + four_bytes(0) + four_bytes(1) +
                        four_bytes(std::filesystem::file_size(database) / kPageSize) + four_bytes(kSectorSize) +
                        four_bytes(kPageSize);
  journal.resize(kSectorSize, '\0');
  return journal;
}

std::string super_journal_trailer(const std::string& name) {
  std::uint64_t sum = 0;
  for (const char c : name) {
    sum += static_cast<std::uint64_t>(c);  // SQLite adds signed characters too
  }
  return four_bytes(0x40000000 / kPageSize + 1) + name + four_bytes(name.size()) + four_bytes(sum) +
         std::string(kJournalMagic);
}

TEST_F(StoreFaultsTest, JournalThatNamesAFileToRemoveIsRefused) {
  {
    Store store(file_, OpenMode::create);
    const ContextIds context = example_context(store);
    store.add_trial(begin_example_session(store, context), context, example_trial(1));
  }
  const std::filesystem::path victim = folder_ / "victim.txt";
  write_bytes(victim, "dear");
  const std::filesystem::path journal = file_.string() + "-journal";
  write_bytes(journal, hot_journal(file_) + super_journal_trailer(victim.string()));
  const std::filesystem::path link = folder_ / "link.db";
  std::filesystem::create_symlink(file_, link);
  const std::string database = bytes_of(file_);
  const std::string planted = bytes_of(journal);
  for (const std::filesystem::path& file : {file_, link}) {
    for (const OpenMode mode : {OpenMode::read_only, OpenMode::read_write, OpenMode::create}) {
      const std::string message = store_error([&] { Store(file, mode); });
      EXPECT_NE(message.find(journal.filename().string()), std::string::npos) << message;
      EXPECT_NE(message.find("remove that journal if"), std::string::npos) << message;
    }
    std::ignore = store_error([&] { std::ignore = Store::scratch_copy(file); });
  }
  EXPECT_EQ(bytes_of(victim), "dear");
  EXPECT_EQ(bytes_of(file_), database);
  EXPECT_EQ(bytes_of(journal), planted);
}

// Which also says that SQLite takes the journal of the case above for one to roll back.
TEST_F(StoreFaultsTest, OrdinaryHotJournalIsRolledBack) {
  {
    Store store(file_, OpenMode::create);
    const ContextIds context = example_context(store);
    store.add_trial(begin_example_session(store, context), context, example_trial(1));
  }
  const std::filesystem::path journal = file_.string() + "-journal";
  write_bytes(journal, hot_journal(file_));
  EXPECT_EQ(Store(file_, OpenMode::read_write).trials({}).size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(journal));
  expect_sound();
}

TEST_F(StoreFaultsTest, LockHeldByAnotherIsToldApartAndPasses) {
  Store store(file_, OpenMode::create);
  const ContextIds context = example_context(store);
  const std::int64_t session = begin_example_session(store, context);
  store.set_busy_timeout(std::chrono::milliseconds(20));
  SQLite::Database other(file_.string(), SQLite::OPEN_READWRITE);
  {
    const SQLite::Transaction held(other, SQLite::TransactionBehavior::IMMEDIATE);
    EXPECT_THROW(store.add_trial(session, context, example_trial(1)), StoreBusyError);
    EXPECT_THROW(store.begin_attempt(session, context, example_config(1)), StoreBusyError);
    EXPECT_THROW(store.note_progress(session, 1, "{}", {}), StoreBusyError);
    EXPECT_THROW(store.end_session(session, "finished"), StoreBusyError);
    EXPECT_THROW(store.resume_session(session), StoreBusyError);
    EXPECT_THROW(store.kernel_id({"matmul", "new"}), StoreBusyError);
    EXPECT_TRUE(store.trials({}).empty()) << "readers need not wait";
    const std::string message = store_error([&] { store.settle_attempts(context.device); });
    EXPECT_NE(message.find("another process keeps it locked"), std::string::npos) << message;
  }
  store.begin_attempt(session, context, example_config(1));
  store.add_trial(session, context, example_trial(1));
  store.note_progress(session, 1, "{}", {});
  store.kernel_id({"matmul", "new"});
  store.end_session(session, "finished");
  EXPECT_EQ(store.trials({}).size(), 1U);
  expect_sound();
}

TEST_F(StoreFaultsTest, OtherFailuresAreNotTakenForALock) {
  Store store(file_, OpenMode::create);
  try {
    store.end_session(999, "finished");
    FAIL();
  } catch (const StoreBusyError& error) {
    FAIL() << error.what();
  } catch (const StoreError&) {
  }
}

TEST_F(StoreFaultsTest, JsonThatIsNoneOrAnotherIsToldInPlainWords) {
  Store store(file_, OpenMode::create);
  const ContextIds context = example_context(store);
  store.add_trial(begin_example_session(store, context), context, example_trial(1));
  SQLite::Database other(file_.string(), SQLite::OPEN_READWRITE);
  other.exec("PRAGMA ignore_check_constraints = 1");
  for (const char* forged : {"]", "{\"TILE\": ["}) {
    SQLite::Statement statement(other, "UPDATE trials SET config = ?");
    statement.bind(1, forged);
    statement.exec();
    const std::string message = store_error([&] { std::ignore = store.trials({}); });
    EXPECT_NE(message.find("table trials"), std::string::npos) << message;
    EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
  }
}

// A limit on file size makes writes fail as a full disk does; lifting it is as if space had been freed.
TEST_F(StoreFaultsTest, StoreGoesOnOnceAFullDiskHasRoomAgain) {
  std::ignore = Store(file_, OpenMode::create);
  const int child = fork_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    Store store(file_, OpenMode::read_write);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    std::int64_t tile = 0;
    for (rlim_t room = 200'000; room <= 600'000; room += 200'000) {
      limit_file_size(room);
      const std::string message = store_error([&] {
        for (;; ++tile) {
          store.begin_attempt(session, context, example_config(tile));
          store.add_trial(session, context, example_trial(tile));
        }
      });
      require(message.find("disk") != std::string::npos, message.c_str());
      std::ignore = store_error([&] {
        for (;;) {
          store.add_trial(session, context, example_trial(tile));
        }
      });
      limit_file_size(RLIM_INFINITY);
      store.begin_attempt(session, context, example_config(tile));
      store.add_trial(session, context, example_trial(tile));
      ++tile;
      store.note_progress(session, 5, "{}", {});
    }
    require(store.known_trials(context).size() == static_cast<std::size_t>(tile), "every trial is there");
    store.end_session(session, "finished");
    tell(tile);
  });
  ASSERT_EQ(wait_child(child), 0);
  Store store(file_, OpenMode::read_write);
  EXPECT_GT(hear(), 10);
  EXPECT_EQ(store.sessions().at(0).state, "finished");
  for (const StoredTrial& stored : store.trials({.with_samples = true})) {
    EXPECT_EQ(stored.trial.samples.size(), 30U);
  }
  EXPECT_TRUE(store.left_attempts(example_context(store)).empty());
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
