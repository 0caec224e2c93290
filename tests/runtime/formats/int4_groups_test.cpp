#include "runtime/formats/int4_groups.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "runtime/formats/draw.hpp"
#include "tests/runtime/formats/draws.hpp"

namespace pascaline::testing {
namespace {

struct Held {
  explicit Held(std::size_t groups) : quants(groups * kInt4Group / 2), scales(groups), zeros(groups) {}
  [[nodiscard]] Int4Groups view() { return {quants, scales, zeros}; }

  std::vector<std::uint8_t> quants;
  std::vector<std::uint16_t> scales;
  std::vector<std::uint8_t> zeros;
};

TEST(Int4GroupsTest, ValuesAreScaleTimesDifference) {
  Held held(2);
  held.scales = {half_from_float(0.5F), half_from_float(2.0F)};
  held.zeros = {8, 15};
  for (std::size_t i = 0; i < held.quants.size(); ++i) {
    held.quants[i] = static_cast<std::uint8_t>(splitmix(i));
  }
  std::vector<float> values(2 * kInt4Group);
  dequantize_int4(held.view(), values);
  EXPECT_EQ(values[0], 0.5F * static_cast<float>((held.quants[0] & 15) - 8));
  EXPECT_EQ(values[64], 0.5F * static_cast<float>((held.quants[0] >> 4) - 8));
  EXPECT_EQ(values[63], 0.5F * static_cast<float>((held.quants[63] & 15) - 8));
  EXPECT_EQ(values[127], 0.5F * static_cast<float>((held.quants[63] >> 4) - 8));
  EXPECT_EQ(values[128 + 70], 2.0F * static_cast<float>((held.quants[64 + 6] >> 4) - 15));
}

TEST(Int4GroupsTest, GroupsOfAnySignAreHeld) {
  const std::vector<float> values = drawn_values(64, kInt4Group);
  Held held(64);
  ASSERT_FALSE(quantize_int4(values, held.view()));
  std::vector<float> made(values.size());
  dequantize_int4(held.view(), made);
  for (std::size_t group = 0; group < 64; ++group) {
    EXPECT_LE(held.zeros[group], 15);
    double error = 0;
    double squares = 0;
    float least = 0;
    float most = 0;
    for (std::size_t i = group * kInt4Group; i < (group + 1) * kInt4Group; ++i) {
      error += std::pow(static_cast<double>(values[i]) - static_cast<double>(made[i]), 2);
      squares += std::pow(static_cast<double>(values[i]), 2);
      least = std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    // Plain rounding with the whole range as scale: a variance of a twelfth of a step at each value, and its rounding.
    const double step = static_cast<double>(most - least) / 15;
    if (group % 41 >= 20) {  // below, float16 rounds the scale coarsely
      EXPECT_LE(error, 1.2 * kInt4Group * step * step / 12) << group;
    }
    EXPECT_LE(error, squares) << group;
  }
}

TEST(Int4GroupsTest, ZerosStayZero) {
  Held held(1);
  const std::vector<float> zeros(kInt4Group, 0.0F);
  ASSERT_FALSE(quantize_int4(zeros, held.view()));
  std::vector<float> made(kInt4Group, 1.0F);
  dequantize_int4(held.view(), made);
  EXPECT_EQ(made, zeros);
}

TEST(Int4GroupsTest, WhatCannotBeHeldIsNamed) {
  Held held(2);
  std::vector<float> values(2 * kInt4Group, 1.0F);
  values[130] = std::numeric_limits<float>::quiet_NaN();
  auto unfit = quantize_int4(values, held.view());
  ASSERT_TRUE(unfit);
  EXPECT_EQ(unfit->value, 130U);
  values[130] = 1e9F;
  unfit = quantize_int4(values, held.view());
  ASSERT_TRUE(unfit);
  EXPECT_EQ(unfit->value, kInt4Group);
  EXPECT_THROW((void)quantize_int4(std::span(values).first(100), held.view()), Error);
}

}  // namespace
}  // namespace pascaline::testing
