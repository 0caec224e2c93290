#include "db/store.hpp"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/error.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = begin_example_session(store_, context_);

  std::int64_t count(const std::string& table) {
    SQLite::Database database((folder_ / "tuned.db").string());
    return database.execAndGet("SELECT count(*) FROM " + table).getInt64();
  }
};

TEST_F(StoreTest, TrialComesBackWithEveryField) {
  Trial trial = example_trial(1);
  trial.stage = TrialStage::finals;
  const std::int64_t id = store_.add_trial(session_, context_, trial);

  const auto stored = store_.trials({.with_samples = true});
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].id, id);
  EXPECT_EQ(stored[0].session_id, session_);
  EXPECT_EQ(stored[0].device, example_device());
  EXPECT_EQ(stored[0].toolkit, example_toolkit());
  EXPECT_EQ(stored[0].kernel, (KernelRow{"matmul", "source-a"}));
  EXPECT_EQ(stored[0].space_hash, "space-a");
  expect_equal(stored[0].trial, trial);
  expect_equal(stored[0].trial.time, trial.time);
  ASSERT_EQ(stored[0].trial.samples.size(), trial.samples.size());
  for (std::size_t i = 0; i < trial.samples.size(); ++i) {
    EXPECT_EQ(stored[0].trial.samples[i].time_us, trial.samples[i].time_us);
    EXPECT_EQ(stored[0].trial.samples[i].mark, trial.samples[i].mark);
    EXPECT_EQ(stored[0].trial.samples[i].temperature_c, trial.samples[i].temperature_c);
    EXPECT_EQ(stored[0].trial.samples[i].sm_clock_mhz, trial.samples[i].sm_clock_mhz);
  }
  EXPECT_TRUE(store_.trials({}).at(0).trial.samples.empty());
}

TEST_F(StoreTest, EveryFailureComesBackWithoutTime) {
  for (const TrialStatus status : {TrialStatus::rejected, TrialStatus::compile_failed, TrialStatus::launch_failed,
                                   TrialStatus::wrong_result, TrialStatus::timed_out, TrialStatus::crashed}) {
    const Trial trial = failed_trial(static_cast<int>(status), status, "because \"of\" 'this'; -- and\tthat");
    store_.add_trial(session_, context_, trial);
    const auto stored = store_.trials({.status = status});
    ASSERT_EQ(stored.size(), 1U);
    expect_equal(stored[0].trial, trial);
    EXPECT_FALSE(stored[0].trial.time);
    EXPECT_FALSE(stored[0].trial.max_error);
  }
}

TEST_F(StoreTest, ErrorThatIsNoNumberBecomesInfinity) {
  Trial trial = failed_trial(1, TrialStatus::wrong_result, "NaN");
  trial.max_error = std::nan("");
  store_.add_trial(session_, context_, trial);
  EXPECT_EQ(store_.trials({}).at(0).trial.max_error, std::numeric_limits<double>::infinity());
}

TEST_F(StoreTest, TimeIsThereIfAndOnlyIfTheTrialIsOk) {
  Trial untimed = example_trial(1);
  untimed.time.reset();
  EXPECT_NE(store_error([&] { store_.add_trial(session_, context_, untimed); }).find("tuned.db"), std::string::npos);
  Trial timed = failed_trial(2, TrialStatus::crashed, "x");
  timed.time = TimeSummary{1, 1, 1, 1};
  std::ignore = store_error([&] { store_.add_trial(session_, context_, timed); });
  Trial not_a_number = example_trial(3);
  not_a_number.time->median_us = std::nan("");
  std::ignore = store_error([&] { store_.add_trial(session_, context_, not_a_number); });
  Trial bad_sample = example_trial(4);
  bad_sample.samples[3].time_us = std::nan("");
  std::ignore = store_error([&] { store_.add_trial(session_, context_, bad_sample); });
  EXPECT_EQ(count("trials"), 0);
  EXPECT_EQ(count("samples"), 0);
  store_.add_trial(session_, context_, example_trial(5));
  EXPECT_EQ(count("trials"), 1);
}

TEST_F(StoreTest, ForeignKeysAndProblemsAreEnforced) {
  for (auto broken :
       {&ContextIds::device, &ContextIds::toolkit, &ContextIds::kernel, &ContextIds::space, &ContextIds::problem}) {
    ContextIds context = context_;
    context.*broken = 999;
    std::ignore = store_error([&] { store_.add_trial(session_, context, example_trial(1)); });
  }
  std::ignore = store_error([&] { store_.add_trial(999, context_, example_trial(1)); });
  std::ignore = store_error([&] { store_.begin_attempt(999, context_, example_config(1)); });
  std::ignore = store_error([&] { store_.add_telemetry(999, {}); });
  const ContextIds other = example_context(store_, 7);
  EXPECT_NE(store_error([&] { store_.add_trial(session_, other, example_trial(1)); }).find("M=7"), std::string::npos);
  EXPECT_EQ(count("trials"), 0);
}

TEST_F(StoreTest, SchemaRefusesUnknownNames) {
  store_.add_trial(session_, context_, example_trial(1));
  SQLite::Database database((folder_ / "tuned.db").string(), SQLite::OPEN_READWRITE);
  EXPECT_THROW(database.exec("UPDATE trials SET status = 'fine'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE trials SET status = 'crashed'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE trials SET stage = 'last'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE trials SET config = '{'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE sessions SET state = 'gone'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE sessions SET state = 'finished'"), SQLite::Exception);
  EXPECT_THROW(database.exec("UPDATE devices SET kind = 'tpu'"), SQLite::Exception);
}

TEST_F(StoreTest, EqualRowsHaveOneIdAndOthersTheirOwn) {
  EXPECT_EQ(example_context(store_).device, context_.device);
  EXPECT_EQ(example_context(store_).toolkit, context_.toolkit);
  EXPECT_EQ(example_context(store_).kernel, context_.kernel);
  EXPECT_EQ(example_context(store_).space, context_.space);
  EXPECT_EQ(example_context(store_).problem, context_.problem);
  DeviceRow larger = example_device();
  larger.memory_bytes *= 2;
  EXPECT_EQ(store_.device_id(larger), context_.device);
  DeviceRow wider = example_device();
  wider.sm_count = 30;
  EXPECT_NE(store_.device_id(wider), context_.device);
  ToolkitRow older = example_toolkit();
  older.driver_version = "11.8";
  EXPECT_NE(store_.toolkit_id(older), context_.toolkit);
  EXPECT_NE(store_.kernel_id({"matmul", "source-b"}), context_.kernel);
  EXPECT_EQ(store_.devices().size(), 2U);
}

TEST_F(StoreTest, RowsOfOneTransactionAreStoredTogetherOrNotAtAll) {
  const std::int64_t before = count("problems");
  const auto fail_on_the_way = [&] {
    std::ignore = store_.problem_id(example_problem(77), 1, 2);
    EXPECT_EQ(count("problems"), before) << "others see nothing of it yet";
    throw SpaceError("", "", "on the way");
  };
  EXPECT_THROW(store_.in_one_transaction(fail_on_the_way), SpaceError) << "what it throws is not the store's failure";
  EXPECT_EQ(count("problems"), before);
  store_.in_one_transaction([&] {
    std::ignore = store_.problem_id(example_problem(77), 1, 2);
    std::ignore = store_.problem_id(example_problem(78), 1, 2);
    EXPECT_EQ(count("problems"), before);
  });
  EXPECT_EQ(count("problems"), before + 2);
}

TEST_F(StoreTest, ATransactionThatCannotBeginIsNotBegun) {
  SQLite::Database other((folder_ / "tuned.db").string(), SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  store_.set_busy_timeout(std::chrono::milliseconds(20));
  int calls = 0;
  EXPECT_THROW(store_.in_one_transaction([&] { ++calls; }), StoreBusyError);
  EXPECT_EQ(calls, 0);
  other.exec("ROLLBACK");
  store_.in_one_transaction([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(StoreTest, WorkFollowsTheLatestFormula) {
  EXPECT_EQ(store_.work(example_problem().text()), std::pair(2.0 * 512 * 2048 * 1024, 1e6));
  EXPECT_EQ(store_.problem_id(example_problem(), 5, 6), context_.problem);
  EXPECT_EQ(store_.work(example_problem().text()), std::pair(5.0, 6.0));
  EXPECT_FALSE(store_.work("matmul M=3"));
}

TEST_F(StoreTest, SessionsComeBackNewestFirst) {
  SessionRow second;
  second.uuid = "given";
  second.started_unix_ms = 9'000'000'000'000;
  const std::int64_t id = store_.begin_session(second, context_.device, context_.toolkit);
  store_.end_session(id, "finished");
  const auto sessions = store_.sessions();
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[0].uuid, "given");
  EXPECT_EQ(sessions[0].state, "finished");
  EXPECT_TRUE(sessions[0].finished_unix_ms);
  EXPECT_FALSE(sessions[0].alive);
  EXPECT_EQ(sessions[1].id, session_);
  EXPECT_EQ(sessions[1].uuid.size(), 36U);
  EXPECT_EQ(sessions[1].state, "running");
  EXPECT_TRUE(sessions[1].alive);
  EXPECT_FALSE(sessions[1].finished_unix_ms);
  EXPECT_EQ(sessions[1].command_line, "pascaline sweep --kernel matmul");
  EXPECT_EQ(sessions[1].searcher, "random");
  EXPECT_EQ(sessions[1].seed, 0xffff'ffff'ffff'fff0);
  EXPECT_EQ(sessions[1].options_json, "{\"budget\":10}");
  EXPECT_EQ(sessions[1].device_uuid, "GPU-1");
  EXPECT_EQ(sessions[1].program_version, "0.1.0");
  EXPECT_EQ(sessions[1].device, example_device());
  EXPECT_EQ(sessions[1].toolkit, example_toolkit());
  std::ignore = store_error([&] { store_.end_session(id, "gone"); });
  std::ignore = store_error([&] { store_.end_session(999, "finished"); });
  SessionRow twin;
  twin.uuid = "given";
  std::ignore = store_error([&] { store_.begin_session(twin, context_.device, context_.toolkit); });
}

TEST_F(StoreTest, KnownTrialsAreTheLatestOfEachConfigurationUnderTheKey) {
  store_.add_trial(session_, context_, failed_trial(8, TrialStatus::timed_out, "slow"));
  store_.add_trial(session_, context_, example_trial(8));
  store_.add_trial(session_, context_, example_trial(16));
  store_.add_trial(session_, context_, failed_trial(16, TrialStatus::crashed, "late"));
  Trial finals = example_trial(32);
  finals.stage = TrialStage::finals;
  store_.add_trial(session_, context_, finals);

  ContextIds changed_space = context_;
  changed_space.space = store_.space_id("matmul", "space-b", "{}");
  const auto known = store_.known_trials(changed_space);
  ASSERT_EQ(known.size(), 2U);
  for (const Store::Known& entry : known) {
    const bool eight = entry.config == example_config(8);
    EXPECT_TRUE(eight || entry.config == example_config(16));
    EXPECT_EQ(entry.status, eight ? TrialStatus::ok : TrialStatus::crashed);
    EXPECT_EQ(entry.median_us, eight ? 100.5 : 0.0);
  }
  ContextIds changed_source = context_;
  changed_source.kernel = store_.kernel_id({"matmul", "source-b"});
  EXPECT_TRUE(store_.known_trials(changed_source).empty());
  ContextIds changed_driver = context_;
  changed_driver.toolkit = store_.toolkit_id({"nvrtc", "12.9", "sm_61", "13.0"});
  EXPECT_TRUE(store_.known_trials(changed_driver).empty());
  EXPECT_TRUE(store_.known_trials(example_context(store_, 7)).empty());
}

TEST_F(StoreTest, TelemetryComesBackInTheOrderItWasStored) {
  store_.add_telemetry(session_,
                       {.unix_ms = 20, .throttle_reasons = 64, .governor_state = "cooling", .canary_us = 20.5});
  store_.add_telemetry(session_, {10, 55.5, 1911.0, 5505.0, 180.25, 0, "steady", {}});
  const auto readings = store_.telemetry(session_);
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[1].unix_ms, 10);
  EXPECT_EQ(readings[1].temperature_c, 55.5);
  EXPECT_EQ(readings[1].sm_clock_mhz, 1911.0);
  EXPECT_EQ(readings[1].memory_clock_mhz, 5505.0);
  EXPECT_EQ(readings[1].power_w, 180.25);
  EXPECT_EQ(readings[1].throttle_reasons, 0);
  EXPECT_EQ(readings[1].governor_state, "steady");
  EXPECT_FALSE(readings[0].temperature_c);
  EXPECT_EQ(readings[0].throttle_reasons, 64);
  EXPECT_EQ(readings[0].canary_us, 20.5);
  EXPECT_FALSE(readings[1].canary_us);
}

TEST_F(StoreTest, FiltersNarrowTogether) {
  const std::int64_t other = begin_example_session(store_, context_);
  store_.add_trial(session_, context_, example_trial(8));
  store_.add_trial(other, context_, failed_trial(8, TrialStatus::crashed, "x"));
  EXPECT_EQ(store_.trials({.kernel = "matmul", .problem = example_problem().text()}).size(), 2U);
  EXPECT_EQ(store_.trials({.kernel = "softmax"}).size(), 0U);
  EXPECT_EQ(store_.trials({.problem = "matmul M=1"}).size(), 0U);
  EXPECT_EQ(store_.trials({.session_id = other}).size(), 1U);
  EXPECT_EQ(store_.trials({.status = TrialStatus::ok, .session_id = other}).size(), 0U);
}

TEST_F(StoreTest, VisitorMayAskTheStoreAndItsFailureIsItsOwn) {
  store_.add_trial(session_, context_, example_trial(8));
  store_.add_trial(session_, context_, example_trial(16));
  int visited = 0;
  store_.for_each_trial({}, [&](const StoredTrial&) {
    EXPECT_EQ(store_.trials({}).size(), 2U);
    ++visited;
  });
  EXPECT_EQ(visited, 2);
  struct Stop {};
  EXPECT_THROW(store_.for_each_trial({}, [](const StoredTrial&) { throw Stop(); }), Stop);
  EXPECT_EQ(store_.trials({}).size(), 2U);
}

}  // namespace
}  // namespace pascaline::testing
