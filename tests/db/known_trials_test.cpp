#include <gtest/gtest.h>

#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

/// What several sessions measured of one configuration.
class KnownTrialsTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);

  std::int64_t session() { return begin_example_session(store_, context_); }
  std::int64_t add(std::int64_t session, TrialStatus status, double median_us = 0, double half_width_us = 1,
                   int count = 30) {
    Trial trial = failed_trial(1, status, "");
    if (status == TrialStatus::ok) {
      trial.time = TimeSummary{median_us, median_us - half_width_us, median_us + half_width_us, count};
    }
    return store_.add_trial(session, context_, trial);
  }
  void expect_known(std::int64_t trial, TrialStatus status) {
    const auto known = store_.known_trials(context_);
    ASSERT_EQ(known.size(), 1U);
    EXPECT_EQ(known[0].trial_id, trial);
    EXPECT_EQ(known[0].status, status);
  }
};

TEST_F(KnownTrialsTest, LaterTrialOfOneSessionReplacesEarlier) {
  const std::int64_t only = session();
  add(only, TrialStatus::ok, 100, 0.1);
  expect_known(add(only, TrialStatus::ok, 110, 5), TrialStatus::ok);
  expect_known(add(only, TrialStatus::timed_out), TrialStatus::timed_out);
  expect_known(add(only, TrialStatus::ok, 120, 9), TrialStatus::ok);
}

TEST_F(KnownTrialsTest, NarrowestIntervalOfSeveralSessionsCounts) {
  add(session(), TrialStatus::ok, 100, 3);
  const std::int64_t best = add(session(), TrialStatus::ok, 200, 4);  // 2 % against 3 %
  add(session(), TrialStatus::ok, 100, 5);
  expect_known(best, TrialStatus::ok);
  EXPECT_EQ(store_.known_trials(context_)[0].median_us, 200);
}

TEST_F(KnownTrialsTest, OfEqualIntervalsTheNewestCounts) {
  add(session(), TrialStatus::ok, 100, 3);
  expect_known(add(session(), TrialStatus::ok, 100, 3), TrialStatus::ok);
}

TEST_F(KnownTrialsTest, RangeOfFewSamplesIsNoNarrowInterval) {
  const std::int64_t many = add(session(), TrialStatus::ok, 100, 3);
  add(session(), TrialStatus::ok, 100, 0, 1);
  expect_known(many, TrialStatus::ok);
}

TEST_F(KnownTrialsTest, FailureCountsOnlyIfNoSessionHasATime) {
  add(session(), TrialStatus::crashed);
  const std::int64_t last = add(session(), TrialStatus::timed_out);
  expect_known(last, TrialStatus::timed_out);
  const std::int64_t measured = add(session(), TrialStatus::ok, 100);
  expect_known(measured, TrialStatus::ok);
  for (const TrialStatus failure :
       {TrialStatus::compile_failed, TrialStatus::rejected, TrialStatus::launch_failed, TrialStatus::crashed}) {
    add(session(), failure);
    expect_known(measured, TrialStatus::ok);
  }
}

TEST_F(KnownTrialsTest, WrongResultOfAnySessionCounts) {
  const std::int64_t wrong = add(session(), TrialStatus::wrong_result);
  add(session(), TrialStatus::ok, 100);
  expect_known(wrong, TrialStatus::wrong_result);
}

TEST_F(KnownTrialsTest, TrialOfTheRunIsFoundWhicheverCounts) {
  SessionRow own;
  own.run_uuid = "run-a";
  add(store_.begin_session(own, context_.device, context_.toolkit), TrialStatus::crashed);
  const std::int64_t measured = add(session(), TrialStatus::ok, 100);
  const auto known = store_.known_trials(context_, "run-a");
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].trial_id, measured);
  EXPECT_TRUE(known[0].in_run);
  EXPECT_FALSE(store_.known_trials(context_, "run-b")[0].in_run);
}

}  // namespace
}  // namespace pascaline::testing
