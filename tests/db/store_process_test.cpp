#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <set>

#include "db/process_identity.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

class StoreProcessTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "tuned.db";
  std::array<int, 2> pipe_{-1, -1};

  void SetUp() override { ASSERT_EQ(::pipe(pipe_.data()), 0); }
  void TearDown() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  void tell(std::int64_t number) const { std::ignore = ::write(pipe_[1], &number, sizeof number); }
  [[nodiscard]] std::int64_t hear() const {
    std::int64_t number = -1;
    return ::read(pipe_[0], &number, sizeof number) == sizeof number ? number : -1;
  }
  void expect_sound() const {
    SQLite::Database database(file_.string());
    EXPECT_EQ(database.execAndGet("PRAGMA integrity_check").getString(), "ok");
  }
};

TEST_F(StoreProcessTest, SeveralProcessesCreateAndWriteAtOnceAndLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kTrials = 200;
  std::array<int, kWriters> children{};
  for (int writer = 0; writer < kWriters; ++writer) {
    children[static_cast<std::size_t>(writer)] = fork_child([&] {
      Store store(file_, OpenMode::create);
      const ContextIds context = example_context(store);
      const std::int64_t session = begin_example_session(store, context);
      for (int i = 0; i < kTrials; ++i) {
        store.begin_attempt(session, context, example_config(writer * kTrials + i));
        store.add_trial(session, context, example_trial(writer * kTrials + i));
      }
      store.end_session(session, "finished");
    });
  }
  for (const int child : children) {
    EXPECT_EQ(wait_child(child), 0);
  }
  Store store(file_, OpenMode::read_write);
  const ContextIds context = example_context(store);
  EXPECT_EQ(store.known_trials(context).size(), std::size_t{kWriters} * kTrials);
  EXPECT_EQ(store.sessions().size(), std::size_t{kWriters});
  EXPECT_EQ(store.devices().size(), 1U);
  for (const StoredTrial& stored : store.trials({.with_samples = true})) {
    ASSERT_EQ(stored.trial.samples.size(), 30U);
  }
  EXPECT_EQ(store.settle_attempts(context.device), 0);
  expect_sound();
}

TEST_F(StoreProcessTest, KilledWriterLosesNoTrialThatWasReportedAsStored) {
  for (const int trials_before_kill : {1, 20, 60}) {
    std::filesystem::remove(file_);
    const int child = fork_child([&] {
      Store store(file_, OpenMode::create);
      const ContextIds context = example_context(store);
      const std::int64_t session = begin_example_session(store, context);
      for (int i = 0;; ++i) {
        store.begin_attempt(session, context, example_config(i));
        tell(store.add_trial(session, context, example_trial(i)));
      }
    });
    std::set<std::int64_t> reported;
    while (static_cast<int>(reported.size()) < trials_before_kill) {
      reported.insert(hear());
    }
    ::kill(child, SIGKILL);
    EXPECT_EQ(wait_child(child), 128 + SIGKILL);
    tell(-1);
    for (std::int64_t id = hear(); id != -1; id = hear()) {
      reported.insert(id);
    }
    expect_sound();
    for (const StoredTrial& stored : Store(file_, OpenMode::read_write).trials({.with_samples = true})) {
      reported.erase(stored.id);
      EXPECT_EQ(stored.trial.samples.size(), 30U);
    }
    EXPECT_TRUE(reported.empty());
  }
}

TEST_F(StoreProcessTest, CreatorKilledAtAnyMomentLeavesSomethingThatOpens) {
  for (int moment = 0; moment < 60; ++moment) {
    std::filesystem::remove_all(folder_ / "new");
    const std::filesystem::path file = folder_ / "new" / "tuned.db";
    const int child = fork_child([&] {
      tell(0);
      Store(file, OpenMode::create).kernel_id({"matmul", "x"});
      ::pause();
    });
    std::ignore = hear();
    ::usleep(static_cast<unsigned>(moment) * 100);
    ::kill(child, SIGKILL);
    EXPECT_EQ(wait_child(child), 128 + SIGKILL);
    Store(file, OpenMode::create).kernel_id({"matmul", "x"});
    EXPECT_EQ(SQLite::Database(file.string()).execAndGet("PRAGMA integrity_check").getString(), "ok");
  }
}

TEST_F(StoreProcessTest, AttemptsBecomeCrashesOnlyWhenTheirProcessIsDead) {
  Store store(file_, OpenMode::create);
  const ContextIds context = example_context(store);
  const int child = fork_child([&] {
    Store own(file_, OpenMode::read_write);
    const std::int64_t session = begin_example_session(own, context);
    own.add_trial(session, context, example_trial(3));
    own.begin_attempt(session, context, example_config(7), TrialStage::finals, true);
    tell(session);
    ::pause();
  });
  const std::int64_t session = hear();
  EXPECT_EQ(store.settle_attempts(context.device), 0);
  EXPECT_TRUE(store.sessions().at(0).alive);

  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_child(child), 128 + SIGKILL);
  EXPECT_FALSE(store.sessions().at(0).alive);
  EXPECT_EQ(store.settle_attempts(store.device_id({"host", "another", "", 1, 0, "{}"})), 0);
  EXPECT_EQ(store.settle_attempts(context.device), 1);
  EXPECT_EQ(store.settle_attempts(context.device), 0);

  const auto crashed = store.trials({.status = TrialStatus::crashed});
  ASSERT_EQ(crashed.size(), 1U);
  EXPECT_EQ(crashed[0].session_id, session);
  EXPECT_EQ(crashed[0].trial.problem, example_problem());
  EXPECT_EQ(crashed[0].trial.config, example_config(7));
  EXPECT_EQ(crashed[0].trial.stage, TrialStage::finals);
  EXPECT_TRUE(crashed[0].trial.is_default);
  EXPECT_FALSE(crashed[0].trial.reason.empty());
  EXPECT_GT(crashed[0].trial.started_unix_ms, 0);
  EXPECT_EQ(store.sessions().at(0).state, "interrupted");
  EXPECT_TRUE(store.sessions().at(0).finished_unix_ms);
}

TEST_F(StoreProcessTest, OwnAttemptsAreSettledAndOwnSessionGoesOn) {
  Store store(file_, OpenMode::create);
  const ContextIds context = example_context(store);
  const std::int64_t session = begin_example_session(store, context);
  store.begin_attempt(session, context, example_config(1));
  store.begin_attempt(session, context, example_config(1));
  store.begin_attempt(session, context, example_config(2));
  store.add_trial(session, context, example_trial(2));
  EXPECT_EQ(store.settle_attempts(context.device), 1);
  EXPECT_EQ(store.known_trials(context).size(), 2U);
  EXPECT_EQ(store.sessions().at(0).state, "running");
}

TEST_F(StoreProcessTest, EndedSessionHoldsNoAttempts) {
  Store store(file_, OpenMode::create);
  const ContextIds context = example_context(store);
  const std::int64_t session = begin_example_session(store, context);
  store.begin_attempt(session, context, example_config(1));
  store.end_session(session, "failed");
  EXPECT_EQ(store.settle_attempts(context.device), 1);
  EXPECT_EQ(store.sessions().at(0).state, "failed");
}

TEST_F(StoreProcessTest, ReusedProcessIdIsNotTakenForTheSession) {
  Store store(file_, OpenMode::create);
  const ContextIds context = example_context(store);
  SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
  for (const std::string other : {"boot_id = 'an earlier boot'", "process_start = process_start + 1"}) {
    const std::int64_t session = begin_example_session(store, context);
    store.begin_attempt(session, context, example_config(1));
    EXPECT_TRUE(store.sessions().at(0).alive);
    database.exec("UPDATE sessions SET " + other);
    EXPECT_FALSE(store.sessions().at(0).alive);
    EXPECT_EQ(store.settle_attempts(context.device), 1);
  }
}

TEST_F(StoreProcessTest, ReaderSeesWhatAWriterStoresMeanwhile) {
  Store writer(file_, OpenMode::create);
  const ContextIds context = example_context(writer);
  const std::int64_t session = begin_example_session(writer, context);
  const Store reader(file_, OpenMode::read_only);
  EXPECT_TRUE(reader.trials({}).empty());
  writer.add_trial(session, context, example_trial(1));
  EXPECT_EQ(reader.trials({}).size(), 1U);
}

TEST_F(StoreProcessTest, LivingProcessesZombiesAndTheDeadAreToldApart) {
  EXPECT_TRUE(is_alive(this_process()));
  const int child = fork_child([&] {
    tell(this_process().start);
    ::pause();
  });
  const ProcessIdentity identity{child, hear(), this_process().boot_id};
  EXPECT_TRUE(is_alive(identity));
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_alive(identity)) << "a zombie";
  EXPECT_EQ(wait_child(child), 128 + SIGKILL);
  EXPECT_FALSE(is_alive(identity));
}

}  // namespace
}  // namespace pascaline::testing
