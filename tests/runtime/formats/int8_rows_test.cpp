#include "runtime/formats/int8_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace pascaline::testing {
namespace {

std::vector<float> drawn_row(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  std::generate(result.begin(), result.end(), [&] { return values(generator); });
  return result;
}

TEST(Int8Rows, ValuesAreWithinHalfAStepOfTheScale) {
  std::vector<std::vector<float>> rows{drawn_row(1000, 1), {3}, {-2, 1, 0}, {1e-30F, -5e-31F}, {3e38F, 1, -3e38F}};
  rows.push_back(drawn_row(100, 2));
  rows.back()[7] = -50;  // all others are small against it
  for (const std::vector<float>& row : rows) {
    const float scale = int8_row_scale(row);
    std::vector<std::int8_t> values(row.size());
    quantise_to_int8(row, scale, values);
    int largest = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_LE(std::fabs(double{row[i]} - double{scale} * values[i]), 0.50001 * scale) << row[i];
      largest = std::max(largest, std::abs(int{values[i]}));
    }
    EXPECT_EQ(largest, 127) << row[0];
    std::vector<float> back(row.size());
    widen_int8(values.data(), scale, back.data(), static_cast<std::int64_t>(row.size()));
    EXPECT_EQ(back[0], static_cast<float>(values[0]) * scale);
  }
}

TEST(Int8Rows, ZerosAndTheSmallestNumbersStayInRange) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& row : {std::vector<float>{0, 0}, {tiny, -tiny}, {190 * tiny, -190 * tiny}}) {
    const float scale = int8_row_scale(row);
    std::vector<std::int8_t> values(row.size(), 99);
    quantise_to_int8(row, scale, values);
    EXPECT_EQ(values[0], -values[1]);
    EXPECT_EQ(values[0], scale > 0 ? 127 : 0);
  }
}

}  // namespace
}  // namespace pascaline::testing
