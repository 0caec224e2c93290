#include <gtest/gtest.h>

#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

/// What was measured of a kernel on a device, by problem.
class MeasuredTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  ContextIds larger_ = example_context(store_, 1024);
  std::int64_t session_ = begin_example_session(store_, context_);
  std::string kernel_ = example_problem().kernel;

  std::int64_t add(const ContextIds& context, std::int64_t m, std::int64_t tile, double median_us,
                   TrialStage stage = TrialStage::search) {
    Trial trial = example_trial(tile);
    trial.problem = example_problem(m);
    trial.stage = stage;
    trial.time = TimeSummary{median_us, median_us, median_us, 30};
    return store_.add_trial(session_, context, trial);
  }
};

TEST_F(MeasuredTest, ByProblemTheLatestFirst) {
  EXPECT_TRUE(store_.measured(context_.device, kernel_).empty());
  add(context_, 512, 1, 10);
  add(larger_, 1024, 1, 40);
  add(larger_, 1024, 2, 30);
  const std::int64_t last = add(context_, 512, 3, 20);
  const auto measured = store_.measured(context_.device, kernel_);
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].problem.text(), example_problem(512).text());
  EXPECT_EQ(measured[0].problem_id, context_.problem);
  EXPECT_EQ(measured[0].kernel, context_.kernel);
  EXPECT_EQ(measured[0].toolkit, context_.toolkit);
  EXPECT_EQ(measured[0].last_trial, last);
  ASSERT_EQ(measured[0].times_us.size(), 2U);
  ASSERT_EQ(measured[1].times_us.size(), 2U);
  EXPECT_EQ(measured[1].problem.text(), example_problem(1024).text());
}

TEST_F(MeasuredTest, LastTimeOfAConfigurationCounts) {
  add(context_, 512, 1, 10);
  add(context_, 512, 1, 15);
  const auto measured = store_.measured(context_.device, kernel_);
  ASSERT_EQ(measured.size(), 1U);
  ASSERT_EQ(measured[0].times_us.size(), 1U);
  EXPECT_EQ(measured[0].times_us[0].first.text(), example_config(1).text());
  EXPECT_EQ(measured[0].times_us[0].second, 15);
}

TEST_F(MeasuredTest, FailuresFinalsAndOthersDoNotCount) {
  add(context_, 512, 1, 10, TrialStage::finals);
  std::ignore = store_.add_trial(session_, context_, failed_trial(2, TrialStatus::crashed, "gone"));
  EXPECT_TRUE(store_.measured(context_.device, kernel_).empty());
  add(context_, 512, 1, 10);
  EXPECT_EQ(store_.measured(context_.device, kernel_).size(), 1U);
  EXPECT_TRUE(store_.measured(context_.device, "another").empty());
  EXPECT_TRUE(store_.measured(context_.device + 1, kernel_).empty());
}

}  // namespace
}  // namespace pascaline::testing
