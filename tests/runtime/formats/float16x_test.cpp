#include "runtime/formats/float16x.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/elements.hpp"
#include "tests/runtime/formats/draws.hpp"

namespace pascaline::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Float16x> some_formats() {
  std::vector<Float16x> formats{{5, 15}, {8, 128}, {4, 0}, {4, 15}, {6, 40}, {7, 0}, {7, 142}, {8, 143}, {4, 139}};
  return formats;
}

TEST(Float16xTest, WithFiveBitsItIsFloat16BelowItsInfinities) {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    const float value = float_from_half(code);
    EXPECT_EQ(float_from_16x({5, 15}, code), value);
    EXPECT_EQ(to_float16x({5, 15}, value), code);
    EXPECT_EQ(to_float16x({5, 15}, -value), code | 0x8000);
  }
  EXPECT_EQ(float_from_16x({5, 15}, 0x7C00), 65536.0F) << "what is an infinity there is a number here";
}

TEST(Float16xTest, WithEightBitsItHoldsBfloat16) {
  for (std::uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const float value = float_from_bfloat(static_cast<std::uint16_t>(bits));
    EXPECT_EQ(float_from_16x({8, 128}, to_float16x({8, 128}, value)), value) << bits;
  }
}

TEST(Float16xTest, EveryCodeIsItsOwnNearestAndNumbersGrowWithCodes) {
  for (const Float16x& format : some_formats()) {
    float before = -1;
    for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
      const auto code = static_cast<std::uint16_t>(bits);
      const float value = float_from_16x(format, code);
      ASSERT_GT(value, before) << format.exponent_bits << " " << format.bias << " " << code;
      before = value;
      ASSERT_EQ(to_float16x(format, value), code) << format.exponent_bits << " " << format.bias;
      ASSERT_EQ(to_float16x(format, -value), code | 0x8000);
    }
  }
}

TEST(Float16xTest, HalfwayGoesToTheEvenCodeAndLessOrMoreToTheNearer) {
  for (const Float16x& format : {Float16x{5, 15}, Float16x{4, 15}, Float16x{6, 40}, Float16x{8, 128}}) {
    for (std::uint32_t bits = 0; bits < 0x7FFE; bits += 7) {
      const double low = static_cast<double>(float_from_16x(format, static_cast<std::uint16_t>(bits)));
      const double high = static_cast<double>(float_from_16x(format, static_cast<std::uint16_t>(bits + 1)));
      const auto middle = static_cast<float>((low + high) / 2);
      if (!std::isfinite(high) || static_cast<double>(middle) != (low + high) / 2) {
        continue;  // not a float32
      }
      ASSERT_EQ(to_float16x(format, middle), bits % 2 == 0 ? bits : bits + 1);
      ASSERT_EQ(to_float16x(format, std::nextafter(middle, 0.0F)), bits);
      ASSERT_EQ(to_float16x(format, std::nextafter(middle, kInfinity)), bits + 1);
    }
  }
}

TEST(Float16xTest, WhatIsTooLargeSaturates) {
  for (const Float16x& format : {Float16x{5, 15}, Float16x{4, 15}, Float16x{6, 40}}) {
    const float largest = float_from_16x(format, 0x7FFF);
    EXPECT_EQ(to_float16x(format, largest * 1.5F), 0x7FFF);
    EXPECT_EQ(to_float16x(format, -largest * 100), 0xFFFF);
    EXPECT_EQ(to_float16x(format, kInfinity), 0x7FFF);
    EXPECT_EQ(to_float16x(format, -kInfinity), 0xFFFF);
    EXPECT_EQ(to_float16x(format, std::numeric_limits<float>::max()), 0x7FFF);
  }
  EXPECT_EQ(to_float16x({5, 15}, -0.0F), 0x8000);
}

TEST(Float16xTest, ErrorsAreThoseOfTheCodes) {
  for (const Float16x& format : some_formats()) {
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const auto bits = static_cast<std::uint32_t>(splitmix(i));
      const float value = std::bit_cast<float>(bits);
      if (!std::isfinite(value)) {
        continue;
      }
      const float coded = float_from_16x(format, to_float16x(format, value));
      const double difference = static_cast<double>(value) - static_cast<double>(coded);
      ASSERT_EQ(squared_error(format, {&value, 1}), difference * difference)
          << value << " " << format.exponent_bits << " " << format.bias;
    }
  }
}

TEST(Float16xTest, TheFormatChosenIsNeverWorseThanFloat16OrBfloat16) {
  for (int spread : {0, 3, 8, 20, 60}) {
    for (int exponent : {-120, -40, -14, -6, 0, 15, 17, 60}) {
      std::vector<float> values;
      for (std::uint64_t i = 0; i < 500; ++i) {
        const double unit = static_cast<double>(splitmix(i) >> 11U) / 9007199254740992.0 - 0.5;
        const int shift = spread == 0 ? 0 : static_cast<int>(splitmix(i + 1000) % static_cast<unsigned>(spread));
        values.push_back(static_cast<float>(std::ldexp(unit, exponent - shift)));
      }
      double half = 0;
      double brain = 0;
      for (const float value : values) {
        const float as_half = float_from_half(half_from_float(value));
        half += std::isinf(as_half) ? static_cast<double>(kInfinity)
                                    : std::pow(static_cast<double>(value) - static_cast<double>(as_half), 2);
        brain +=
            std::pow(static_cast<double>(value) - static_cast<double>(float_from_bfloat(bfloat_from_float(value))), 2);
      }
      const Float16x format = best_float16x(values);
      const double own = squared_error(format, values);
      EXPECT_LE(own, half) << spread << " " << exponent;
      EXPECT_LE(own, brain) << spread << " " << exponent;
      if (spread == 3 && exponent >= -40 && exponent <= 6) {
        EXPECT_EQ(format.exponent_bits, 4) << "values of a few magnitudes want digits";
        EXPECT_LT(own, 0.5 * brain);
      }
    }
  }
}

TEST(Float16xTest, ZerosHaveAFormatToo) {
  EXPECT_EQ(best_float16x({}), (Float16x{5, 15}));
  EXPECT_EQ(best_float16x(std::vector<float>(10, 0.0F)), (Float16x{5, 15}));
}

}  // namespace
}  // namespace pascaline::testing
