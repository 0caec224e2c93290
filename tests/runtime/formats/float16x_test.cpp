#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/elements.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/formats/float16x_search.hpp"
#include "tests/runtime/formats/draws.hpp"

namespace pascaline::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Float16x> some_formats() {
  std::vector<Float16x> formats{{5, 15}, {8, 127}, {4, 0}, {4, 15}, {6, 40}, {7, 0}, {7, 142}, {8, 143}, {4, 139}};
  return formats;
}

// As docs/formats.md says it.
float value_by_definition(Float16x format, std::uint32_t code) {
  const int fraction_bits = 15 - format.exponent_bits;
  const auto exponent = static_cast<int>((code & 0x7FFFU) >> static_cast<unsigned>(fraction_bits));
  const auto fraction =
      std::ldexp(static_cast<double>(code & ((1U << static_cast<unsigned>(fraction_bits)) - 1U)), -fraction_bits);
  const double value =
      exponent > 0 ? std::ldexp(1 + fraction, exponent - format.bias) : std::ldexp(fraction, 1 - format.bias);
  return static_cast<float>((code & 0x8000U) != 0 ? -value : value);
}

TEST(Float16xTest, EveryCodeOfEveryFormatHasTheValueOfTheDefinition) {
  std::size_t formats = 0;
  std::vector<std::uint16_t> codes(1 << 16);
  for (std::size_t code = 0; code < codes.size(); ++code) {
    codes[code] = static_cast<std::uint16_t>(code);
  }
  std::vector<float> values(codes.size());
  for (int exponent_bits = 4; exponent_bits <= 8; ++exponent_bits) {
    for (Float16x format{exponent_bits, exponent_bits == 8 ? 127 : 0}; format.is_valid(); ++format.bias) {
      formats += 1;
      floats_from_16x(format, std::as_bytes(std::span(codes)), values);
      for (const std::uint32_t code : codes) {
        const std::uint32_t magnitude = code & 0x7FFFU;
        if (magnitude > format.largest_code()) {
          ASSERT_FALSE(std::isfinite(values[code])) << code;
          continue;
        }
        const float expected = value_by_definition(format, code);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(values[code]), std::bit_cast<std::uint32_t>(expected))
            << format.exponent_bits << " " << format.bias << " " << code;
      }
    }
  }
  EXPECT_EQ(formats, 140U + 141U + 142U + 143U + 17U);
  EXPECT_FALSE((Float16x{3, 15}.is_valid()));
  EXPECT_FALSE((Float16x{9, 140}.is_valid()));
  EXPECT_FALSE((Float16x{8, 126}.is_valid()));
  EXPECT_FALSE((Float16x{5, -1}.is_valid()));
  EXPECT_FALSE((Float16x{5, 141}.is_valid()));
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

TEST(Float16xTest, WithEightBitsItIsBfloat16) {
  for (std::uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const float value = float_from_bfloat(static_cast<std::uint16_t>(bits));
    EXPECT_EQ(float_from_16x({8, 127}, static_cast<std::uint16_t>(bits)), value) << bits;
    EXPECT_EQ(to_float16x({8, 127}, value), bits);
  }
}

TEST(Float16xTest, EveryCodeIsItsOwnNearestAndNumbersGrowWithCodes) {
  for (const Float16x& format : some_formats()) {
    float before = -1;
    for (std::uint32_t bits = 0; bits <= format.largest_code(); ++bits) {
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
  for (const Float16x& format :
       {Float16x{5, 15}, Float16x{4, 15}, Float16x{6, 40}, Float16x{8, 127}, Float16x{8, 143}}) {
    for (std::uint32_t bits = 0; bits < format.largest_code() - 1U; bits += 7) {
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
  for (const Float16x& format : {Float16x{5, 15}, Float16x{4, 15}, Float16x{6, 40}, Float16x{8, 140}}) {
    const std::uint16_t most = format.largest_code();
    const float largest = float_from_16x(format, most);
    EXPECT_EQ(to_float16x(format, largest * 1.5F), most);
    EXPECT_EQ(to_float16x(format, -largest * 100), most | 0x8000);
    EXPECT_EQ(to_float16x(format, kInfinity), most);
    EXPECT_EQ(to_float16x(format, -kInfinity), most | 0x8000);
    EXPECT_EQ(to_float16x(format, std::numeric_limits<float>::max()), most);
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

// Weights as models have them: normal, and with heavy tails (Student's t with three degrees of freedom, the logarithm
// of a normal one), some of them outliers a hundred times as large.
TEST(Float16xTest, OnDrawnWeightsItsErrorIsNeverAboveThoseOfFloat16AndBfloat16) {
  std::mt19937_64 generator(7);
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(3);
  std::lognormal_distribution<double> log_normal(0, 2);
  const std::function<double()> draws[] = {[&] { return normal(generator); }, [&] { return heavy(generator); },
                                           [&] { return (generator() % 2 == 0 ? 1 : -1) * log_normal(generator); },
                                           [&] { return normal(generator) * (generator() % 1000 == 0 ? 100 : 1); }};
  for (const auto& draw : draws) {
    for (const double scale : {1e-9, 1e-5, 0.02, 1.0, 300.0}) {
      std::vector<float> values(20'000);
      std::generate(values.begin(), values.end(), [&] { return static_cast<float>(scale * draw()); });
      double half = 0;
      double brain = 0;
      for (const float value : values) {
        half += std::pow(double{value} - double{float_from_half(half_from_float(value))}, 2);
        brain += std::pow(double{value} - double{float_from_bfloat(bfloat_from_float(value))}, 2);
      }
      const Float16x format = best_float16x(values);
      std::vector<std::byte> codes(2 * values.size());
      to_float16x(format, values, codes);
      std::vector<float> coded(values.size());
      floats_from_16x(format, codes, coded);
      double own = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        own += std::pow(double{values[i]} - double{coded[i]}, 2);
      }
      EXPECT_LE(own, half) << scale;
      EXPECT_LE(own, brain) << scale;
      EXPECT_NEAR(own, squared_error(format, values), 1e-9 * own);
    }
  }
}

TEST(Float16xTest, ValuesSaturateOnlyWhereThatIsTheLeastError) {
  // One value that barely reaches the next power of two, which formats that end below it round by half a place.
  std::vector<float> values(1000, 0.00007F);
  values.push_back(2.0F);
  const Float16xSearch search(2.0F);
  Float16xSearch::Errors errors{};
  search.add(values, errors);
  bool some_saturate = false;
  const Float16x chosen = best_float16x(values);
  for (const Float16x& other : search.candidates()) {
    some_saturate = some_saturate || float_from_16x(other, other.largest_code()) < 2.0F;
    EXPECT_LE(squared_error(chosen, values), squared_error(other, values));
  }
  EXPECT_TRUE(some_saturate);
  EXPECT_EQ(chosen, search.best(errors));
  EXPECT_GE(float_from_16x(chosen, chosen.largest_code()), 2.0F);
  // Parts add up.
  Float16xSearch::Errors in_parts{};
  search.add(std::span(values).first(300), in_parts);
  search.add(std::span(values).subspan(300), in_parts);
  EXPECT_EQ(search.best(in_parts), chosen);
}

TEST(Float16xTest, TheSearchAddsUpTheErrorsOfEachCandidate) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 700'000; ++i) {  // several parts of what is read at a time
    const double unit = static_cast<double>(splitmix(i) >> 11U) / 9007199254740992.0 - 0.5;
    values.push_back(static_cast<float>(i % 97 == 0 ? 0.0 : std::ldexp(unit, -static_cast<int>(splitmix(i) % 20))));
  }
  const Float16xSearch search(0.5F);
  Float16xSearch::Errors errors{};
  search.add(std::span(values).first(5000), errors);
  for (std::size_t i = 0; i < search.candidates().size(); ++i) {
    const double expected = squared_error(search.candidates()[i], std::span(values).first(5000));
    EXPECT_NEAR(errors[i], expected, 1e-12 * expected) << i;
  }
  std::atomic<std::int64_t> read = 0;
  const std::vector<std::int64_t> sizes{12'345, std::ssize(values) - 12'345};
  const ReadValues reader = [&](std::size_t tensor, std::int64_t first, std::span<float> out) {
    read += std::ssize(out);
    std::copy_n(values.begin() + first + (tensor == 0 ? 0 : sizes[0]), out.size(), out.begin());
  };
  const Float16x in_parts = best_float16x(sizes, reader);
  EXPECT_EQ(in_parts, best_float16x(values));
  EXPECT_EQ(read, 2 * std::ssize(values));
  // What float16 or bfloat16 holds is read once.
  for (const Float16x exact : {Float16x{5, 15}, Float16x{8, 127}}) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto code = static_cast<std::uint16_t>(splitmix(i) % (exact.exponent_bits == 8 ? 0x7F80U : 0x7C00U));
      values[i] = float_from_16x(exact, code);
    }
    read = 0;
    EXPECT_EQ(best_float16x(sizes, reader), exact);
    EXPECT_EQ(read, std::ssize(values));
    EXPECT_EQ(best_float16x(values), exact);
    EXPECT_TRUE(holds_exactly(exact, values));
    values.back() = std::nextafter(1.0F, 2.0F);
    EXPECT_FALSE(holds_exactly(exact, values));
    EXPECT_EQ(best_float16x(sizes, reader), best_float16x(values));
  }
  EXPECT_EQ(best_float16x(std::span<const std::int64_t>(), [](std::size_t, std::int64_t, std::span<float>) {}),
            (Float16x{5, 15}));
}

TEST(Float16xTest, TheHeaderKeepsWidthAndBias) {
  std::vector<std::byte> matrix(200, std::byte{0xAB});
  put_float16x_header({7, 142}, matrix);
  EXPECT_EQ(float16x_header(matrix.data()), (Float16x{7, 142}));
  EXPECT_EQ(matrix[127], std::byte{0});
  EXPECT_EQ(matrix[128], std::byte{0xAB});
}

TEST(Float16xTest, ZerosHaveAFormatToo) {
  EXPECT_EQ(best_float16x({}), (Float16x{5, 15}));
  EXPECT_EQ(best_float16x(std::vector<float>(10, 0.0F)), (Float16x{5, 15}));
}

}  // namespace
}  // namespace pascaline::testing
