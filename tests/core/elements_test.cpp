#include "core/elements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

using Values = std::vector<double>;

Values drawn(ElementType type, std::size_t count, Fill fill, double low, double high, std::uint64_t seed = 7) {
  return widen(type, draw_elements(type, count, fill, low, high, seed));
}

TEST(ElementsTest, ARampGoesFromLowToHighInEqualSteps) {
  EXPECT_EQ(drawn(ElementType::float32, 5, Fill::ramp, -1, 1), (Values{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(drawn(ElementType::float16, 3, Fill::ramp, 4, 2), (Values{4, 3, 2})) << "it may fall";
  EXPECT_EQ(drawn(ElementType::float64, 1, Fill::ramp, 3, 9), (Values{3})) << "one element is low";
  EXPECT_TRUE(drawn(ElementType::float32, 0, Fill::ramp, 0, 1).empty());
  EXPECT_EQ(drawn(ElementType::int32, 4, Fill::row_ramp, 0, 10), (Values{0, 3, 6, 10})) << "one row of it";
}

TEST(ElementsTest, ARampOfIntegersIsRoundedDown) {
  EXPECT_EQ(drawn(ElementType::int32, 4, Fill::ramp, 0, 10), (Values{0, 3, 6, 10}));
  EXPECT_EQ(drawn(ElementType::int32, 3, Fill::ramp, 17, 17), (Values{17, 17, 17}));
  const Values numbers = drawn(ElementType::int32, 100'000, Fill::ramp, 0, 99'999);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(numbers[i], static_cast<double>(i)) << "every whole number once";
  }
}

TEST(ElementsTest, UniformStaysInItsRangeAndFillsIt) {
  const Values values = drawn(ElementType::float64, 10'000, Fill::uniform, 2, 5);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, 2);
  EXPECT_LT(*least, 2.01);
  EXPECT_LE(*most, 5);
  EXPECT_GT(*most, 4.99);
  const Values whole = drawn(ElementType::int32, 10'000, Fill::uniform, -1, 3);
  for (const double value : {-1.0, 0.0, 1.0, 2.0}) {
    EXPECT_GT(std::count(whole.begin(), whole.end(), value), 2'000) << value;
  }
}

TEST(ElementsTest, NormalHasItsMeanAndDeviation) {
  const Values values = drawn(ElementType::float64, 40'000, Fill::normal, 3, 2);
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += (value - 3) * (value - 3);
  }
  EXPECT_NEAR(sum / 40'000, 3, 0.05);
  EXPECT_NEAR(std::sqrt(squares / 40'000), 2, 0.05);
}

TEST(ElementsTest, TheSeedDecides) {
  const auto bytes = [](std::uint64_t seed) {
    return draw_elements(ElementType::float32, 100, Fill::uniform, 0, 1, seed);
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
  EXPECT_EQ(drawn(ElementType::float32, 3, Fill::zero, 1, 2), (Values{0, 0, 0}));
  EXPECT_EQ(drawn(ElementType::float32, 3, Fill::none, 1, 2), (Values{0, 0, 0}));
}

}  // namespace
}  // namespace pascaline
