#include <set>

#include "db/process_identity.hpp"
#include "db/store.hpp"
#include "tests/db/process_fixture.hpp"

namespace pascaline::testing {
namespace {

using StoreProcessTest = ProcessFixture;

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
