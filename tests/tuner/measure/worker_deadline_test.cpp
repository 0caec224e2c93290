#include "tuner/measure/worker_deadline.hpp"

#include <gtest/gtest.h>

namespace pascaline::testing {
namespace {

MeasureClientOptions example_client() {
  MeasureClientOptions options;
  options.kernel_timeout_s = 60;
  options.patience = 0.5;
  options.governor.preheat_limit_s = 20;
  options.governor.pause_limit_s = 4;
  options.measure.budget_ms = 1000;
  return options;
}

TEST(WorkerDeadlineTest, EachPhaseHasItsTime) {
  WorkerDeadline deadline(example_client());
  EXPECT_FALSE(deadline.running());
  deadline.allow_start();
  EXPECT_TRUE(deadline.running());
  EXPECT_FALSE(deadline.passed());
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 90) << "patience is a factor on all but launches";
  ASSERT_TRUE(deadline.allow_phase("preheat", 0));
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 80);
  ASSERT_TRUE(deadline.allow_phase("launch", 0));
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 60) << "nothing is known of how long launches take";
  ASSERT_TRUE(deadline.allow_phase("launch", 10'000));
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 10) << "a thousand times the best";
  ASSERT_TRUE(deadline.allow_phase("launch", 1));
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 2);
  ASSERT_TRUE(deadline.allow_phase("measure", 1));
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 5 + 2 + 10);
  deadline.allow_finalist(1);
  EXPECT_DOUBLE_EQ(deadline.allowed_s(), 5 + 10);
  deadline.clear();
  EXPECT_FALSE(deadline.running());
}

TEST(WorkerDeadlineTest, PhaseThatIsNotKnownChangesNothing) {
  WorkerDeadline deadline(example_client());
  EXPECT_FALSE(deadline.allow_phase("lunch", 1));
  EXPECT_FALSE(deadline.running());
}

TEST(WorkerDeadlineTest, WaitingForTheCardIsNotForEver) {
  WorkerDeadline deadline(example_client());
  deadline.wait_for_card();
  EXPECT_FALSE(deadline.running()) << "without work there is no deadline";
  ASSERT_TRUE(deadline.allow_phase("launch", 1));
  const auto first = deadline.at();
  deadline.wait_for_card();
  EXPECT_GE(deadline.at(), first);
  EXPECT_LE(deadline.at(), first + std::chrono::seconds(6)) << "one and a half times --pause-limit at most";
}

}  // namespace
}  // namespace pascaline::testing
