#include <algorithm>

#include "db/process_identity.hpp"
#include "db/store.hpp"
#include "tests/db/process_fixture.hpp"

namespace pascaline::testing {
namespace {

class StoreRunsTest : public ProcessFixture {
 protected:
  Store store_{file_, OpenMode::create};
  ContextIds context_ = example_context(store_);

  std::int64_t begin(SessionRow row) { return store_.begin_session(row, context_.device, context_.toolkit); }
  [[nodiscard]] std::int64_t count(const std::string& table) const {
    return SQLite::Database(file_.string()).execAndGet("SELECT count(*) FROM " + table).getInt64();
  }
};

TEST_F(StoreRunsTest, SessionsOfARunShareItsIdAndOthersGetTheirOwn) {
  SessionRow first;
  first.spent_ms = 7;
  first.progress = "{\"trial\":3}";
  const std::int64_t id = store_.begin_session(first, context_.device, context_.toolkit);
  EXPECT_EQ(first.run_uuid.size(), 36U);
  EXPECT_NE(first.run_uuid, first.uuid);
  SessionRow second;
  second.run_uuid = first.run_uuid;
  begin(second);
  begin({});
  const auto sessions = store_.sessions();
  ASSERT_EQ(sessions.size(), 3U);
  EXPECT_NE(sessions[0].run_uuid, first.run_uuid);
  EXPECT_EQ(sessions[1].run_uuid, first.run_uuid);
  EXPECT_EQ(sessions[1].progress, "");
  EXPECT_EQ(sessions[2].id, id);
  EXPECT_EQ(sessions[2].run_uuid, first.run_uuid);
  EXPECT_EQ(sessions[2].spent_ms, 7);
  EXPECT_EQ(sessions[2].progress, first.progress);
  EXPECT_EQ(sessions[2].process_id, ::getpid());
}

TEST_F(StoreRunsTest, ClockThatSteppedBackChangesNeitherOrderNorEnd) {
  SessionRow future;
  future.started_unix_ms = 9'000'000'000'000;
  const std::int64_t first = begin(future);
  const std::int64_t second = begin({});
  store_.end_session(first, "finished");
  ASSERT_EQ(store_.sessions().size(), 2U);
  EXPECT_EQ(store_.sessions()[0].id, second);
  EXPECT_EQ(store_.sessions()[1].finished_unix_ms, future.started_unix_ms);

  run_and_kill([&] {
    Store own(file_, OpenMode::read_write);
    SessionRow row = future;
    const std::int64_t session = own.begin_session(row, context_.device, context_.toolkit);
    own.add_trial(session, context_, example_trial(1));
  });
  store_.settle_attempts(context_.device);
  EXPECT_EQ(store_.sessions()[0].state, "interrupted");
  EXPECT_EQ(store_.sessions()[0].finished_unix_ms, future.started_unix_ms);
}

TEST_F(StoreRunsTest, DeadSessionIsTakenOver) {
  run_and_kill([&] {
    Store own(file_, OpenMode::read_write);
    own.begin_attempt(begin_example_session(own, context_), context_, example_config(7));
  });
  SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
  database.exec("UPDATE attempts SET boot_id = 'an earlier boot'");
  database.exec("UPDATE sessions SET boot_id = 'an earlier boot'");
  const std::int64_t session = store_.sessions().at(0).id;
  EXPECT_FALSE(store_.sessions().at(0).alive);
  store_.resume_session(session);
  EXPECT_TRUE(store_.sessions().at(0).alive);
  EXPECT_EQ(store_.sessions().at(0).process_id, ::getpid());
  EXPECT_EQ(store_.settle_attempts(context_.device), 0);
  ASSERT_EQ(store_.left_attempts(context_).size(), 1U);
  store_.begin_attempt(session, context_, example_config(7));
  EXPECT_EQ(store_.settle_attempts(context_.device), 1) << "the second boot it was left in";
}

TEST_F(StoreRunsTest, EndedAndOwnSessionsAreTakenOver) {
  const std::int64_t session = begin({});
  store_.resume_session(session);
  store_.end_session(session, "interrupted");
  store_.resume_session(session);
  EXPECT_EQ(store_.sessions().at(0).state, "running");
  EXPECT_FALSE(store_.sessions().at(0).finished_unix_ms);
  EXPECT_NE(store_error([&] { store_.resume_session(999); }).find("999"), std::string::npos);
}

TEST_F(StoreRunsTest, SessionOfALivingProcessIsNotTakenOver) {
  const int child = fork_child([&] {
    Store own(file_, OpenMode::read_write);
    tell(begin_example_session(own, context_));
    ::pause();
  });
  const std::int64_t session = hear();
  const std::string message = store_error([&] { store_.resume_session(session); });
  EXPECT_NE(message.find("process " + std::to_string(child)), std::string::npos) << message;
  EXPECT_EQ(store_.sessions().at(0).process_id, child);
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_child(child), 128 + SIGKILL);
  store_.resume_session(session);
  EXPECT_EQ(store_.sessions().at(0).process_id, ::getpid());
}

TEST_F(StoreRunsTest, ProgressAndReadingsAreStoredTogetherOrNotAtAll) {
  const std::int64_t session = begin({});
  const std::vector<TelemetryRow> readings{{.unix_ms = 2, .governor_state = "cooling", .canary_us = 20.5},
                                           {.unix_ms = 1, .governor_state = "steady"}};
  store_.note_progress(session, 1500, "{\"done\":1}", readings);
  EXPECT_EQ(store_.sessions().at(0).spent_ms, 1500);
  EXPECT_EQ(store_.sessions().at(0).progress, "{\"done\":1}");
  ASSERT_EQ(store_.telemetry(session).size(), 2U);
  EXPECT_EQ(store_.telemetry(session)[0].canary_us, 20.5);
  EXPECT_FALSE(store_.telemetry(session)[1].canary_us);

  std::ignore = store_error([&] { store_.note_progress(session, 1600, "no JSON", readings); });
  std::ignore = store_error([&] { store_.note_progress(999, 1600, "{}", readings); });
  EXPECT_EQ(store_.sessions().at(0).spent_ms, 1500);
  EXPECT_EQ(count("telemetry"), 2);
  store_.note_progress(session, 1700, "", {});
  EXPECT_EQ(store_.sessions().at(0).spent_ms, 1700);
  EXPECT_EQ(store_.sessions().at(0).progress, "");
}

TEST_F(StoreRunsTest, KnownTrialsTellWhichRunMadeThem) {
  SessionRow mine;
  mine.run_uuid = "run-a";
  const std::int64_t first = begin(mine);
  const std::int64_t second = begin(mine);
  const std::int64_t other = begin({});
  store_.add_trial(first, context_, example_trial(1));
  store_.add_trial(other, context_, example_trial(2));
  store_.add_trial(second, context_, example_trial(3));
  Trial again = example_trial(3);
  again.binary_hash = "later";
  const std::int64_t last = store_.add_trial(other, context_, again);
  const auto known = store_.known_trials(context_, "run-a");
  const auto entry = [&](std::int64_t tile) {
    return *std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.config == example_config(tile); });
  };
  ASSERT_EQ(known.size(), 3U);
  EXPECT_TRUE(entry(1).in_run);
  EXPECT_EQ(entry(1).binary_hash, "00ff");
  EXPECT_FALSE(entry(2).in_run);
  EXPECT_TRUE(entry(3).in_run) << "though another run measured it since";
  EXPECT_EQ(entry(3).trial_id, last);
  EXPECT_EQ(entry(3).binary_hash, "later");
  for (const Store::Known& any : store_.known_trials(context_)) {
    EXPECT_FALSE(any.in_run);
  }
}

TEST_F(StoreRunsTest, DecisionBelongsToTheRunOfTheWinner) {
  SessionRow mine;
  mine.run_uuid = "run-a";
  const std::int64_t session = begin(mine);
  store_.set_winner(context_, store_.add_trial(session, context_, example_trial(1)), std::nullopt, 1);
  EXPECT_FALSE(store_.decided_in_run(context_, "run-a")) << "provisional: a trial of the search";
  Trial compared = example_trial(1);
  compared.stage = TrialStage::finals;
  store_.set_winner(context_, store_.add_trial(session, context_, compared), std::nullopt, 1);
  EXPECT_TRUE(store_.decided_in_run(context_, "run-a"));
  EXPECT_FALSE(store_.decided_in_run(context_, "run-b"));
  EXPECT_FALSE(store_.decided_in_run(example_context(store_, 7), "run-a"));
  store_.set_winner(context_, store_.add_trial(begin({}), context_, example_trial(2)), std::nullopt, 1);
  EXPECT_TRUE(store_.decided_in_run(context_, "run-a")) << "its finals may have confirmed it";
}

TEST_F(StoreRunsTest, CostsAreMeansOverWhatWasCompiledAndMeasured) {
  EXPECT_EQ(store_.trial_costs(context_.device, "matmul").ran, 0);
  EXPECT_EQ(store_.trial_costs(context_.device, "matmul").run_ms, 0);
  const std::int64_t session = begin({});
  const auto add = [&](double compile_ms, double run_ms, TrialStatus status, TrialStage stage) {
    Trial trial = example_trial(1);
    trial.status = status;
    trial.stage = stage;
    trial.time = status == TrialStatus::ok ? trial.time : std::nullopt;
    trial.compile_ms = compile_ms;
    trial.verify_ms = run_ms / 4;
    trial.measure_ms = run_ms * 3 / 4;
    store_.add_trial(session, context_, trial);
  };
  add(100, 8, TrialStatus::ok, TrialStage::search);
  add(0, 24, TrialStatus::ok, TrialStage::search);
  add(300, 1000, TrialStatus::wrong_result, TrialStage::search);
  add(5000, 5000, TrialStatus::ok, TrialStage::finals);
  const TrialCost cost = store_.trial_costs(context_.device, "matmul");
  EXPECT_EQ(cost.compile_ms, 200);
  EXPECT_EQ(cost.compiled, 2);
  EXPECT_EQ(cost.run_ms, 16);
  EXPECT_EQ(cost.ran, 2);
  EXPECT_EQ(store_.trial_costs(context_.device, "softmax").compiled, 0);
}

TEST_F(StoreRunsTest, MarksAndSharedResultsComeBack) {
  const std::int64_t session = begin({});
  Trial trial = example_trial(1);
  for (const SampleMark mark : {SampleMark::none, SampleMark::thermal_throttle, SampleMark::power_throttle,
                                SampleMark::clock_drift, SampleMark::canary_drift}) {
    trial.samples.at(static_cast<std::size_t>(mark)).mark = mark;
  }
  const std::int64_t id = store_.add_trial(session, context_, trial);
  Trial shared = example_trial(2);
  shared.samples.clear();
  shared.shared_trial = id;
  store_.add_trial(session, context_, shared);
  const auto stored = store_.trials({.with_samples = true});
  for (std::size_t i = 0; i < trial.samples.size(); ++i) {
    EXPECT_EQ(stored.at(0).trial.samples.at(i).mark, trial.samples[i].mark);
    EXPECT_EQ(stored.at(0).trial.samples.at(i).power_w, trial.samples[i].power_w);
  }
  EXPECT_EQ(stored.at(1).trial.shared_trial, id);
  using Marks = std::vector<std::pair<SampleMark, int>>;
  EXPECT_EQ(store_.marked_samples(id), (Marks{{SampleMark::power_throttle, 2},
                                              {SampleMark::canary_drift, 1},
                                              {SampleMark::clock_drift, 1},
                                              {SampleMark::thermal_throttle, 1}}));
  EXPECT_TRUE(store_.marked_samples(stored[1].id).empty());
  shared.shared_trial = 999;
  std::ignore = store_error([&] { store_.add_trial(session, context_, shared); });
  EXPECT_EQ(count("trials"), 2);
}

}  // namespace
}  // namespace pascaline::testing
