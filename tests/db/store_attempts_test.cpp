#include "db/store.hpp"
#include "tests/db/process_fixture.hpp"

namespace pascaline::testing {
namespace {

class StoreAttemptsTest : public ProcessFixture {
 protected:
  Store store_{file_, OpenMode::create};
  ContextIds context_ = example_context(store_);

  // What a sweep does that is killed in the middle of a trial.
  void die_on(const Config& config) const {
    run_and_kill([&] {
      Store own(file_, OpenMode::read_write);
      own.begin_attempt(begin_example_session(own, context_), context_, config, TrialStage::finals, true);
    });
  }
  // All that is there was noted before the machine went down.
  void reboot() const {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    database.exec("UPDATE attempts SET boot_id = 'an earlier boot'");
    database.exec("UPDATE sessions SET boot_id = 'an earlier boot'");
  }
  [[nodiscard]] std::int64_t tries() const {
    return SQLite::Database(file_.string()).execAndGet("SELECT coalesce(sum(tries), 0) FROM attempts").getInt64();
  }
};

TEST_F(StoreAttemptsTest, SweepKilledTwiceSaysNothingOfItsConfiguration) {
  for (int times = 1; times <= 3; ++times) {
    die_on(example_config(7));
    EXPECT_EQ(tries(), 1) << times;
    EXPECT_EQ(store_.settle_attempts(context_.device), 0) << times;
    ASSERT_EQ(store_.left_attempts(context_).size(), 1U) << times;
  }
  reboot();
  die_on(example_config(7));
  EXPECT_EQ(tries(), 2) << "the machine went down with it";
}

TEST_F(StoreAttemptsTest, MachineDownOnceIsTriedAgainAndDownTwiceIsACrash) {
  die_on(example_config(7));
  reboot();
  EXPECT_EQ(store_.settle_attempts(context_.device), 0);
  EXPECT_EQ(store_.sessions().at(0).state, "interrupted");
  const auto left = store_.left_attempts(context_);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].config, example_config(7));
  EXPECT_EQ(left[0].stage, TrialStage::finals);
  EXPECT_TRUE(left[0].is_default);
  EXPECT_EQ(tries(), 1);

  die_on(example_config(7));
  EXPECT_EQ(tries(), 2);
  reboot();
  ASSERT_EQ(store_.left_attempts(context_).size(), 1U);
  EXPECT_EQ(store_.settle_attempts(store_.device_id({"host", "another", "", 1, 0, "{}"})), 0);
  EXPECT_EQ(store_.settle_attempts(context_.device), 1);
  EXPECT_EQ(store_.settle_attempts(context_.device), 0);
  EXPECT_TRUE(store_.left_attempts(context_).empty());
  EXPECT_EQ(tries(), 0);

  const auto crashed = store_.trials({});
  ASSERT_EQ(crashed.size(), 1U);
  EXPECT_EQ(crashed[0].session_id, store_.sessions().at(0).id);
  EXPECT_EQ(crashed[0].trial.status, TrialStatus::crashed);
  EXPECT_EQ(crashed[0].trial.reason, "the machine went down twice while it was on the device");
  EXPECT_EQ(crashed[0].trial.problem, example_problem());
  EXPECT_EQ(crashed[0].trial.config, example_config(7));
  EXPECT_EQ(crashed[0].trial.stage, TrialStage::finals);
  EXPECT_TRUE(crashed[0].trial.is_default);
  EXPECT_GT(crashed[0].trial.started_unix_ms, 0);
  expect_sound();
}

TEST_F(StoreAttemptsTest, SecondTryThatEndsWellLeavesNothing) {
  die_on(example_config(7));
  reboot();
  const std::int64_t session = begin_example_session(store_, context_);
  store_.begin_attempt(session, context_, example_config(7));
  EXPECT_EQ(tries(), 2);
  store_.add_trial(session, context_, example_trial(7));
  EXPECT_TRUE(store_.left_attempts(context_).empty());
  EXPECT_EQ(store_.settle_attempts(context_.device), 0);
  EXPECT_EQ(tries(), 0);
}

TEST_F(StoreAttemptsTest, OnlyTheSameConfigurationUnderTheSameKeyIsTakenOver) {
  die_on(example_config(7));
  reboot();
  ContextIds other_source = context_;
  other_source.kernel = store_.kernel_id({"matmul", "source-b"});
  ContextIds other_driver = context_;
  other_driver.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  const ContextIds other_problem = example_context(store_, 7);
  const std::int64_t session = begin_example_session(store_, context_);
  store_.begin_attempt(session, context_, example_config(8));
  EXPECT_EQ(tries(), 2) << "one each";
  store_.end_attempt(session, context_, example_config(8));
  for (const ContextIds& other : {other_source, other_driver, other_problem}) {
    EXPECT_TRUE(store_.left_attempts(other).empty());
    store_.begin_attempt(session, other, example_config(7));
    EXPECT_EQ(tries(), 2) << "one each";
    store_.end_attempt(session, other, example_config(7));
  }
  ContextIds other_space = context_;
  other_space.space = store_.space_id("matmul", "space-b", "{}");
  EXPECT_EQ(store_.left_attempts(other_space).size(), 1U);
  store_.begin_attempt(session, other_space, example_config(7));
  EXPECT_EQ(tries(), 2) << "a second try";
  EXPECT_EQ(store_.settle_attempts(context_.device), 1);
}

TEST_F(StoreAttemptsTest, OneSessionMayHaveTheSameConfigurationOfTwoCompilersOnTheDevice) {
  ContextIds other = context_;
  other.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  const std::int64_t session = begin_example_session(store_, context_);
  store_.begin_attempt(session, context_, example_config(7));
  store_.begin_attempt(session, other, example_config(7));
  EXPECT_EQ(store_.left_attempts(context_).size(), 1U);
  EXPECT_EQ(store_.left_attempts(other).size(), 1U);
  store_.add_trial(session, other, example_trial(7));
  EXPECT_EQ(store_.left_attempts(context_).size(), 1U) << "that of the other compiler stays";
  EXPECT_TRUE(store_.left_attempts(other).empty());
  store_.end_attempt(session, context_, example_config(7));
  EXPECT_TRUE(store_.left_attempts(context_).empty());
}

TEST_F(StoreAttemptsTest, AttemptOfALivingProcessIsLeftAlone) {
  const int child = fork_child([&] {
    Store own(file_, OpenMode::read_write);
    const std::int64_t session = begin_example_session(own, context_);
    own.begin_attempt(session, context_, example_config(7));
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec("UPDATE attempts SET boot_id = 'an earlier boot'");
    own.begin_attempt(session, context_, example_config(7));
    tell(session);
    ::pause();
  });
  const std::int64_t theirs = hear();
  EXPECT_TRUE(store_.sessions().at(0).alive);
  EXPECT_EQ(store_.settle_attempts(context_.device), 0);
  EXPECT_TRUE(store_.left_attempts(context_).empty());
  const std::int64_t session = begin_example_session(store_, context_);
  store_.begin_attempt(session, context_, example_config(7));
  EXPECT_EQ(tries(), 2 + 1);

  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_child(child), 128 + SIGKILL);
  EXPECT_EQ(store_.left_attempts(context_).size(), 1U) << "both left the same";
  EXPECT_EQ(store_.settle_attempts(context_.device), 1);
  EXPECT_EQ(store_.trials({}).at(0).session_id, theirs);
}

TEST_F(StoreAttemptsTest, OwnAttemptsCountAndOwnSessionGoesOn) {
  const std::int64_t session = begin_example_session(store_, context_);
  store_.begin_attempt(session, context_, example_config(1));
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE).exec("UPDATE attempts SET boot_id = 'an earlier boot'");
  store_.begin_attempt(session, context_, example_config(1));
  store_.begin_attempt(session, context_, example_config(2));
  store_.add_trial(session, context_, example_trial(2));
  store_.begin_attempt(session, context_, example_config(3));
  EXPECT_EQ(store_.settle_attempts(context_.device), 1);
  EXPECT_EQ(store_.known_trials(context_).size(), 2U);
  ASSERT_EQ(store_.left_attempts(context_).size(), 1U);
  EXPECT_EQ(store_.left_attempts(context_)[0].config, example_config(3));
  EXPECT_EQ(store_.sessions().at(0).state, "running");
  store_.end_attempt(session, context_, example_config(3));
  store_.end_attempt(session, context_, example_config(3));
  EXPECT_TRUE(store_.left_attempts(context_).empty());
}

TEST_F(StoreAttemptsTest, EndedSessionLeavesItsAttempts) {
  const std::int64_t session = begin_example_session(store_, context_);
  store_.begin_attempt(session, context_, example_config(1));
  store_.end_session(session, "failed");
  EXPECT_EQ(store_.settle_attempts(context_.device), 0);
  EXPECT_EQ(store_.left_attempts(context_).size(), 1U);
  EXPECT_EQ(store_.sessions().at(0).state, "failed");
}

TEST_F(StoreAttemptsTest, ReusedProcessIdIsNotTakenForTheSession) {
  SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
  int number = 0;
  for (const std::string other : {"boot_id = 'an earlier boot'", "process_start = process_start + 1"}) {
    const std::int64_t session = begin_example_session(store_, context_);
    store_.begin_attempt(session, context_, example_config(++number));
    EXPECT_TRUE(store_.sessions().at(0).alive);
    database.exec("UPDATE sessions SET " + other);
    EXPECT_FALSE(store_.sessions().at(0).alive);
    EXPECT_EQ(store_.left_attempts(context_).size(), static_cast<std::size_t>(number));
    EXPECT_EQ(store_.settle_attempts(context_.device), 0);
    EXPECT_EQ(store_.sessions().at(0).state, "interrupted");
  }
}

TEST_F(StoreAttemptsTest, TakingOverAndNotingAreOneTransaction) {
  die_on(example_config(7));
  std::ignore = store_error([&] { store_.begin_attempt(999, context_, example_config(7)); });
  EXPECT_EQ(store_.left_attempts(context_).size(), 1U);
  EXPECT_EQ(tries(), 1);
}

}  // namespace
}  // namespace pascaline::testing
