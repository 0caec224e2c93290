#include "tuner/probe/linear_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "tuner/probe/block_spans.hpp"

namespace pascaline {
namespace {

// Values of tables of the distribution.
TEST(LinearFitTest, StudentsTIsThatOfTables) {
  for (const auto& [degrees, value] : std::vector<std::pair<int, double>>{{1, 12.706},
                                                                          {2, 4.303},
                                                                          {4, 2.776},
                                                                          {5, 2.571},
                                                                          {7, 2.365},
                                                                          {10, 2.228},
                                                                          {22, 2.074},
                                                                          {100, 1.984},
                                                                          {100000, 1.960}}) {
    EXPECT_NEAR(student_t_975(degrees), value, 0.002) << degrees;
  }
}

// The first data set of Anscombe, Graphs in Statistical Analysis, The American Statistician 27, 1973, with the figures
// given there: y = 3 + 0.5 x, standard error of the slope 0.118, multiple R squared 0.667. Student's t of 9 is 2.262.
TEST(LinearFitTest, SlopeAndIntervalAreThoseOfLeastSquares) {
  const std::vector<double> x{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5};
  const std::vector<double> y{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68};
  const auto fit = fit_line(x, y);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->slope, 0.5, 0.001);
  EXPECT_NEAR(fit->at_zero, 3, 0.001);
  EXPECT_NEAR(fit->explained, 0.667, 0.001);
  EXPECT_NEAR(fit->high - fit->slope, 2.262 * 0.118, 0.001);
  EXPECT_NEAR(fit->slope - fit->low, 2.262 * 0.118, 0.001);
}

TEST(LinearFitTest, ThereIsNoLineThroughTooLittle) {
  const std::vector<double> two{1, 2};
  const std::vector<double> three{1, 2, 3};
  const std::vector<double> same{4, 4, 4};
  const std::vector<double> bad{1, std::numeric_limits<double>::quiet_NaN(), 3};
  EXPECT_FALSE(fit_line(two, two));
  EXPECT_FALSE(fit_line(three, two));
  EXPECT_FALSE(fit_line(same, three));
  EXPECT_FALSE(fit_line(three, bad));
  EXPECT_FALSE(fit_line(bad, three));
  ASSERT_TRUE(fit_line(three, same));
  EXPECT_EQ(fit_line(three, same)->slope, 0);
}

TEST(BlockSpansTest, AnSmIsAtWorkFromItsFirstBlockToItsLast) {
  // SM 7: two blocks, one after the other; SM 2: one.
  const std::vector<std::int64_t> spans{1000, 1100, 50, 250, 1100, 1300};
  const std::vector<std::int32_t> places{7, 2, 7};
  const LaunchClocks clocks = launch_clocks(spans, places);
  EXPECT_EQ(clocks.longest, 300);
  EXPECT_DOUBLE_EQ(clocks.blocks_per_clock, 2.0 / 300);
  const std::vector<std::int64_t> one{5, 25};
  const std::vector<std::int32_t> place{0};
  EXPECT_DOUBLE_EQ(launch_clocks(one, place).blocks_per_clock, 1.0 / 20);
}

TEST(BlockSpansTest, ClocksThatMakeNoSenseAreRefused) {
  const std::vector<std::int64_t> backwards{9, 4};
  const std::vector<std::int64_t> unwritten{0, 0};
  const std::vector<std::int64_t> fine{4, 9};
  const std::vector<std::int32_t> place{0};
  const std::vector<std::int32_t> nowhere{-1};
  EXPECT_THROW((void)launch_clocks(backwards, place), Error);
  EXPECT_THROW((void)launch_clocks(unwritten, place), Error);
  EXPECT_THROW((void)launch_clocks(fine, nowhere), Error);
  EXPECT_THROW((void)launch_clocks(fine, {}), Error);
  EXPECT_THROW((void)launch_clocks({}, {}), Error);
}

}  // namespace
}  // namespace pascaline
