#include "tuner/sweep/default_times.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/model_time.hpp"

namespace pascaline {
namespace {

// Only their addresses are used.
class DefaultTimesTest : public ::testing::Test {
 protected:
  [[nodiscard]] const Tunable* kernel(std::size_t i) const { return reinterpret_cast<const Tunable*>(&kernels_.at(i)); }

  DefaultTimes times_;  // NOLINT(*-non-private-member-variables-in-classes)

 private:
  std::array<char, 4> kernels_{};
};

TEST_F(DefaultTimesTest, NothingMeasuredPromisesTheBound) {
  EXPECT_EQ(times_.log_factor(kernel(0)), 0);
  EXPECT_GT(times_.factor_of_estimates(), 5);
}

TEST_F(DefaultTimesTest, TheSameKernelCountsMost) {
  times_.add(kernel(0), std::log(2));
  times_.add(kernel(1), std::log(50));
  EXPECT_LT(times_.log_factor(kernel(0)), times_.log_factor(kernel(2)));
  EXPECT_LT(times_.log_factor(kernel(2)), times_.log_factor(kernel(1)));
}

TEST_F(DefaultTimesTest, EstimatesAreAsSureAsKernelsAgree) {
  for (std::size_t i = 0; i < 3; ++i) {
    for (int shape = 0; shape < 20; ++shape) {
      times_.add(kernel(i), std::log(3 + 0.1 * static_cast<double>(i)));
    }
  }
  const double agreed = times_.factor_of_estimates();
  EXPECT_LT(agreed, DefaultTimes().factor_of_estimates()) << "the guess counts less";
  times_.add(kernel(3), std::log(300));
  EXPECT_GT(times_.factor_of_estimates(), 5 * agreed);
}

}  // namespace
}  // namespace pascaline
