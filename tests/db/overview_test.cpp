#include "db/overview.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

/// What reports read of many trials at once.
class OverviewTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = begin_example_session(store_, context_);

  [[nodiscard]] std::vector<TrialBrief> briefs(const std::string& kernel = {}) const {
    std::vector<TrialBrief> all;
    store_.for_each_brief(kernel, [&](const TrialBrief& brief) { all.push_back(brief); });
    return all;
  }
};

std::size_t count_of(const Store& store) {
  std::size_t count = 0;
  store.for_each_brief({}, [&](const TrialBrief&) { ++count; });
  return count;
}

void fail_on_the_way() { throw Error("on the way"); }

TEST_F(OverviewTest, BriefsHoldWhatTheTrialsDo) {
  const std::int64_t first = store_.add_trial(session_, context_, example_trial(1));
  const std::int64_t second =
      store_.add_trial(session_, context_, failed_trial(4, TrialStatus::crashed, "signal \"11\""));
  const auto all = briefs();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].id, first);
  EXPECT_EQ(all[0].session, session_);
  EXPECT_EQ(all[0].context.device, context_.device);
  EXPECT_EQ(all[0].context.toolkit, context_.toolkit);
  EXPECT_EQ(all[0].context.kernel, context_.kernel);
  EXPECT_EQ(all[0].context.space, context_.space);
  EXPECT_EQ(all[0].context.problem, context_.problem);
  EXPECT_TRUE(all[0].is_default);
  expect_equal(all[0].time, example_trial(1).time);
  EXPECT_EQ(all[0].verify_ms, 3.5);
  EXPECT_EQ(all[0].measure_ms, 41.25);
  EXPECT_EQ(all[0].started_unix_ms, 1'700'000'000'123);
  EXPECT_EQ(Config::from_json(nlohmann::json::parse(all[0].config_json)), example_config(1));
  EXPECT_EQ(all[1].id, second);
  EXPECT_EQ(all[1].status, TrialStatus::crashed);
  EXPECT_EQ(all[1].reason, "signal \"11\"");
  EXPECT_FALSE(all[1].time);
  EXPECT_EQ(count_of(store_), 2U);
}

TEST_F(OverviewTest, TheTimeOfTrialsIsAddedUpWithHowManyRacingDropped) {
  Trial plain = example_trial(2);
  plain.stage = TrialStage::search;
  plain.reason.clear();
  plain.load_ms = 1;
  plain.sample_ms = 5;
  const std::int64_t ran = store_.add_trial(session_, context_, plain);
  Trial dropped = plain;
  dropped.config = example_config(3);
  dropped.status = TrialStatus::dropped;
  dropped.reason = "slower than the best so far, 12.00 us, after 3 samples";
  store_.add_trial(session_, context_, dropped);
  Trial shared = dropped;
  shared.config = example_config(4);
  shared.shared_trial = ran;
  store_.add_trial(session_, context_, shared);
  Trial wrong = failed_trial(5, TrialStatus::wrong_result, dropped.reason);
  wrong.load_ms = 1;
  store_.add_trial(session_, context_, wrong);
  const auto times = store_.trial_times();
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].session, session_);
  EXPECT_EQ(times[0].trials, 3) << "what shares a result has taken no time";
  EXPECT_EQ(times[0].dropped, 1);
  EXPECT_EQ(times[0].sample_ms, 10);
  TrialTimes sum = times[0];
  sum += times[0];
  EXPECT_EQ(sum.dropped, 2);
  EXPECT_EQ(sum.trials, 6);
}

TEST_F(OverviewTest, CountsOfSessionsAreThoseThatTrialsAddUpTo) {
  TrialCounts expected;
  const auto add = [&](Trial trial) {
    expected.add(trial);
    return store_.add_trial(session_, context_, trial);
  };
  Trial plain = example_trial(2);
  plain.stage = TrialStage::search;
  plain.reason.clear();
  const std::int64_t ran = add(plain);
  Trial dropped = plain;
  dropped.config = example_config(3);
  dropped.status = TrialStatus::dropped;
  add(dropped);
  Trial shared = dropped;
  shared.config = example_config(4);
  shared.shared_trial = ran;
  add(shared);
  add(failed_trial(5, TrialStatus::wrong_result, "wrong"));
  add(failed_trial(6, TrialStatus::crashed, "an illegal address"));
  add(failed_trial(7, TrialStatus::timed_out, "it hangs"));
  Trial finalist = plain;
  finalist.stage = TrialStage::finals;
  add(finalist);
  add(finalist);
  EXPECT_EQ(expected.trials, 6);
  EXPECT_EQ(expected.ok, 3);
  EXPECT_EQ(expected.dropped, 1);
  EXPECT_EQ(expected.duplicates, 1);
  EXPECT_EQ(expected.crashed, 2);
  EXPECT_EQ(expected.finals, 2);
  EXPECT_EQ(counts_by_session(store_), (std::map<std::int64_t, TrialCounts>{{session_, expected}}));
  EXPECT_EQ(counts_text(expected),
            "6 trials, 3 usable, 1 dropped early, 1 duplicate, 2 crashed or hung, 2 measurements in finals");
  EXPECT_EQ(counts_text(TrialCounts{1, 1}), "1 trial, 1 usable");
}

TEST_F(OverviewTest, OnlyTheKernelAskedFor) {
  store_.add_trial(session_, context_, example_trial(1));
  EXPECT_EQ(briefs("matmul").size(), 1U);
  EXPECT_TRUE(briefs("mat").empty());
  EXPECT_TRUE(briefs("' OR 1 --").empty());
}

TEST_F(OverviewTest, SamplesAreCountedByMark) {
  store_.add_trial(session_, context_, failed_trial(1, TrialStatus::rejected, ""));
  const std::int64_t measured = store_.add_trial(session_, context_, example_trial(4));
  std::vector<SampleCounts> counts;
  store_.for_each_sample_count([&](const SampleCounts& one) { counts.push_back(one); });
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].trial_id, measured);
  EXPECT_EQ(counts[0].total, 30U);
  EXPECT_EQ(counts[0].marked[static_cast<std::size_t>(SampleMark::none)], 28U);
  EXPECT_EQ(counts[0].marked[static_cast<std::size_t>(SampleMark::clock_drift)], 1U);
  EXPECT_EQ(counts[0].marked[static_cast<std::size_t>(SampleMark::power_throttle)], 1U);
  EXPECT_EQ(counts[0].marked[static_cast<std::size_t>(SampleMark::canary_drift)], 0U);
}

TEST_F(OverviewTest, RowsOfAContext) {
  const ContextRows rows = store_.rows_of(context_);
  EXPECT_EQ(rows.device, example_device());
  EXPECT_EQ(rows.toolkit, example_toolkit());
  EXPECT_EQ(rows.kernel, (KernelRow{"matmul", "source-a"}));
  EXPECT_EQ(rows.space_json, "{}");
  EXPECT_EQ(rows.problem, example_problem());
  EXPECT_EQ(rows.bytes, 1e6);
  ContextIds missing = context_;
  missing.kernel = 77;
  EXPECT_NE(store_error([&] { std::ignore = store_.rows_of(missing); }).find("damaged"), std::string::npos);
}

TEST_F(OverviewTest, OneTrialById) {
  store_.add_trial(session_, context_, example_trial(1));
  const std::int64_t wanted = store_.add_trial(session_, context_, example_trial(4));
  TrialFilter filter;
  filter.trial_id = wanted;
  filter.with_samples = true;
  const auto found = store_.trials(filter);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trial.config, example_config(4));
  EXPECT_EQ(found[0].trial.samples.size(), 30U);
  filter.trial_id = 77;
  EXPECT_TRUE(store_.trials(filter).empty());
}

TEST_F(OverviewTest, AtOneMomentNothingIsSeenThatIsWrittenMeanwhile) {
  store_.add_trial(session_, context_, example_trial(1));
  const Store reader(store_.file(), OpenMode::read_only);
  reader.at_one_moment([&] {
    EXPECT_EQ(count_of(reader), 1U);
    store_.add_trial(session_, context_, example_trial(4));  // does not wait for the reader
    reader.at_one_moment([&] { EXPECT_EQ(count_of(reader), 1U); });
    EXPECT_EQ(count_of(reader), 1U);
  });
  EXPECT_EQ(count_of(reader), 2U);
  EXPECT_THROW(reader.at_one_moment(fail_on_the_way), Error);
  store_.add_trial(session_, context_, example_trial(8));
  EXPECT_EQ(count_of(reader), 3U);
}

}  // namespace
}  // namespace pascaline::testing
