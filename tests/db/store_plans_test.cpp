#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/merge.hpp"
#include "db/store.hpp"
#include "db/sweep_plan.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

class StorePlansTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "tuned.db";
  Store store_{file_, OpenMode::create};
  ContextIds context_ = example_context(store_);
};

TEST_F(StorePlansTest, PlanComesBackAsItWas) {
  EXPECT_FALSE(store_.plan("run-a"));
  SweepPlan plan = example_plan();
  store_.save_plan("run-a", plan);
  EXPECT_EQ(store_.plan("run-a"), plan);
  EXPECT_FALSE(store_.plan("run-b"));

  std::ignore = example_context(store_, 7);
  plan.devices = {"cuda:0", "cuda:3"};
  plan.target = "sm_61";
  plan.nvrtc = "11.8";
  plan.seed = 0xffff'ffff'ffff'fff0;
  plan.trials.reset();
  plan.budget_s = 28800.25;
  plan.until_unix_s = 1'800'000'000;
  plan.max_temperature_c = 71.5;
  plan.retry_failed = plan.tolerate_thermal = plan.polite = true;
  plan.objective = Objective::edp;
  plan.min_gain = 0.002;
  plan.deepen = true;
  plan.kernels.push_back({"softmax", "source-b", "space-b"});
  plan.problems.push_back({example_problem(7), 28.5, "prefill: q", {{"prompt", 28}, {"token", 0.5}}, {2, 3}});
  plan.paths.clear();
  store_.save_plan("run-a", plan);
  EXPECT_EQ(store_.plan("run-a"), plan) << "in place of the first";
}

TEST_F(StorePlansTest, PlanOfAProblemThatIsNotStoredIsAFaultAndLeavesTheFormerOne) {
  store_.save_plan("run-a", example_plan());
  SweepPlan other = example_plan();
  other.problems.push_back({example_problem(9), 1, ""});
  EXPECT_NE(store_error([&] { store_.save_plan("run-a", other); }).find("is not stored"), std::string::npos);
  EXPECT_EQ(store_.plan("run-a"), example_plan());
}

TEST_F(StorePlansTest, SessionsSayWhetherTheirRunHasOne) {
  std::ignore = begin_example_session(store_, context_);
  SessionRow bare;
  bare.run_uuid = "run-x";
  std::ignore = store_.begin_session(bare, context_.device, context_.toolkit);
  const auto sessions = store_.sessions();
  EXPECT_FALSE(sessions.at(0).has_plan);
  EXPECT_TRUE(sessions.at(1).has_plan);
}

// A sweep is resumed where it was begun.
TEST_F(StorePlansTest, MergeTakesOverNone) {
  store_.end_session(begin_example_session(store_, context_), "interrupted");
  Store mine(folder_ / "mine.db", OpenMode::create);
  EXPECT_EQ(merge_database(file_, mine).sessions, 1);
  EXPECT_FALSE(mine.sessions().at(0).has_plan);
}

}  // namespace
}  // namespace pascaline::testing
