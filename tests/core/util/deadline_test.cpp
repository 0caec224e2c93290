#include "core/util/deadline.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

using namespace std::chrono_literals;
using SystemClock = std::chrono::system_clock;

// Both clocks, moved by hand.
class DeadlineTest : public ::testing::Test {
 protected:
  std::chrono::steady_clock::time_point steady_{1000s};
  SystemClock::time_point wall_{1'000'000s};

  [[nodiscard]] DeadlineClocks clocks() {
    return {[this] { return steady_; }, [this] { return wall_; }};
  }
  void pass(std::chrono::milliseconds time) {
    steady_ += time;
    wall_ += time;
  }
};

TEST_F(DeadlineTest, NoneIsNeverOver) {
  const Deadline none;
  EXPECT_FALSE(none.over());
  EXPECT_FALSE(none.left_s());
  EXPECT_FALSE(Deadline(std::nullopt, std::nullopt, clocks()).left_s());
}

TEST_F(DeadlineTest, SpanEndsWhenItHasPassed) {
  const Deadline deadline = Deadline::after(10, clocks());
  EXPECT_DOUBLE_EQ(deadline.left_s().value(), 10);
  pass(9999ms);
  EXPECT_FALSE(deadline.over());
  EXPECT_NEAR(deadline.left_s().value(), 0.001, 1e-9);
  pass(1ms);
  EXPECT_TRUE(deadline.over());
  pass(1h);
  EXPECT_TRUE(deadline.over());
  EXPECT_EQ(deadline.left_s().value(), 0);
}

TEST_F(DeadlineTest, SpanDoesNotLookAtTheWallClock) {
  const Deadline deadline = Deadline::after(10, clocks());
  wall_ += 24h;
  EXPECT_FALSE(deadline.over());
  wall_ -= 48h;
  pass(10s);
  EXPECT_TRUE(deadline.over());
}

TEST_F(DeadlineTest, NothingLeftIsOverAtOnce) {
  EXPECT_TRUE(Deadline::after(0, clocks()).over());
  EXPECT_TRUE(Deadline::at(wall_, clocks()).over());
  EXPECT_TRUE(Deadline::at(wall_ - 1h, clocks()).over());
  EXPECT_EQ(Deadline::at(wall_ - 1h, clocks()).left_s().value(), 0);
}

TEST_F(DeadlineTest, WallClockSetBackDoesNotLengthenTheWait) {
  const Deadline deadline = Deadline::at(wall_ + 1h, clocks());
  wall_ -= 3h;
  EXPECT_DOUBLE_EQ(deadline.left_s().value(), 3600);
  pass(59min);
  EXPECT_FALSE(deadline.over());
  pass(1min);
  EXPECT_TRUE(deadline.over());
}

TEST_F(DeadlineTest, SleepDoesNotOvershoot) {
  const Deadline deadline = Deadline::at(wall_ + 1h, clocks());
  pass(10min);
  wall_ += 45min;  // the steady clock stands still while the machine sleeps
  EXPECT_FALSE(deadline.over());
  EXPECT_DOUBLE_EQ(deadline.left_s().value(), 300);
  wall_ += 5min;
  EXPECT_TRUE(deadline.over());
}

TEST_F(DeadlineTest, OfBothTheFirstCounts) {
  const Deadline span_first(60, wall_ + 1h, clocks());
  const Deadline time_first(3600, wall_ + 1min, clocks());
  for (const Deadline* deadline : {&span_first, &time_first}) {
    EXPECT_DOUBLE_EQ(deadline->left_s().value(), 60);
  }
  pass(60s);
  EXPECT_TRUE(span_first.over());
  EXPECT_TRUE(time_first.over());
}

TEST(DeadlineClockTest, RealClocks) {
  EXPECT_FALSE(Deadline::after(3600).over());
  EXPECT_TRUE(Deadline::after(-1).over());
  EXPECT_FALSE(Deadline::at(SystemClock::now() + 1h).over());
  EXPECT_NEAR(Deadline::at(SystemClock::now() + 1h).left_s().value(), 3600, 60);
}

}  // namespace
}  // namespace pascaline
