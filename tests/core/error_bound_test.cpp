#include "core/error_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "tests/core/space/small_space.hpp"

namespace pascaline::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRoundoff = 0x1p-24;

/// The small space with a rule for sums, for 1024 terms and outputs of a type.
class ErrorBoundTest : public ::testing::Test {
 protected:
  nlohmann::json json_ = [] {
    nlohmann::json space = small_space();
    space["reference"] = {{"kernel", {{"function", "naive"}, {"block", {1}}, {"grid", {1}}}}};
    return space;
  }();
  std::optional<Space> space_;
  std::optional<BoundSpace> bound_;

  void use(const nlohmann::json& sum, const char* type = "float32", const char* n = "1024") {
    if (!sum.is_null()) {
      json_["tolerance"]["sum"] = sum;
    }
    space_.emplace(Space::parse(json_.dump(), "scale.json"));
    bound_.emplace(*space_, space_->problem({{"N", n}, {"WIDTH", "2"}, {"STORAGE", type}}), DeviceLimits());
  }
  [[nodiscard]] ErrorBound bound(std::vector<double> expected) const {
    return {*bound_, bound_->problem().type("STORAGE"), expected};
  }
};

TEST_F(ErrorBoundTest, WithoutSumsErrorsAreRelativeToTheElementAndTheOutput) {
  json_["tolerance"]["float32"] = 0.125;
  use(nullptr);
  const ErrorBound errors = bound({3, -4, 3, 4, kInfinity});  // 12.5 is the mean square of what is finite
  const double unit = std::sqrt(12.5);
  EXPECT_DOUBLE_EQ(errors.error(3.5, 3), 0.5 / (3 + unit));
  EXPECT_DOUBLE_EQ(errors.tolerance(3.5, 3), 0.125);
  EXPECT_EQ(errors.error(3, 3), 0);
  EXPECT_EQ(errors.error(kInfinity, kInfinity), 0);
  EXPECT_EQ(errors.error(std::nan(""), std::nan("")), 0);
  EXPECT_EQ(errors.error(std::nan(""), 3), kInfinity);
  EXPECT_EQ(errors.error(3, std::nan("")), kInfinity);
  EXPECT_EQ(errors.error(kInfinity, 3), kInfinity);
  EXPECT_EQ(errors.error(3, kInfinity), kInfinity);
  EXPECT_FALSE(errors.compare(std::vector<double>{3}, std::vector<double>{kInfinity}).within);
}

TEST_F(ErrorBoundTest, TheBoundGrowsWithTheRootOfTheTerms) {
  use({{"terms", "N"}});
  EXPECT_DOUBLE_EQ(bound_->tolerance(ElementType::float32), 1e-6 + 4 * kRoundoff * 32);
  use({{"terms", "N"}}, "float32", "65536");
  EXPECT_DOUBLE_EQ(bound_->tolerance(ElementType::float32), 1e-6 + 4 * kRoundoff * 256);
  EXPECT_DOUBLE_EQ(bound({1}).tolerance(1, 1), bound_->tolerance(ElementType::float32));
  use({{"terms", "N - 1024"}});
  EXPECT_THROW((void)bound_->tolerance(ElementType::float32), Error);
}

TEST_F(ErrorBoundTest, SumsInAnotherTypeHaveItsRoundoff) {
  use({{"terms", "N"}, {"type", "float16"}}, "float16");
  EXPECT_DOUBLE_EQ(bound_->tolerance(ElementType::float16), 1e-3 + 4 * 0x1p-11 * 32);
  json_["arguments"][1]["buffer"] = "float64";
  json_["tolerance"]["float64"] = 1e-15;
  json_["tolerance"]["int32"] = 0;
  use({{"terms", "N"}});
  EXPECT_DOUBLE_EQ(bound_->tolerance(ElementType::float64), 1e-15 + 4 * 0x1p-53 * 32);
  EXPECT_EQ(bound_->tolerance(ElementType::int32), 0) << "whole numbers are added without rounding";
}

TEST_F(ErrorBoundTest, TermsTellTheMagnitudeThatResultsMayHideByCancelling) {
  use({{"terms", "N"}, {"of", {"x", "x"}}});
  EXPECT_DOUBLE_EQ(*bound_->sum_magnitude(), 32.0 / 3);  // x is uniform from -1 to 1
  EXPECT_NEAR(bound({0.01}).tolerance(0.01, 0.01),
              bound_->tolerance(ElementType::float32) * (0.01 + 32.0 / 3) / (0.01 + 0.01), 1e-12);
  json_["arguments"][0].update({{"fill", "normal"}, {"low", 3}, {"high", 4}});
  use({{"terms", "N"}, {"of", {"x"}}, {"product_of", 2}});
  EXPECT_DOUBLE_EQ(*bound_->sum_magnitude(), 32.0 * 5 * 32 * 5);
  EXPECT_DOUBLE_EQ(bound_->tolerance(ElementType::float32), 2 * (1e-6 + 4 * kRoundoff * 32));
  use({{"terms", "N"}});
  EXPECT_FALSE(bound_->sum_magnitude());
}

// Scales of some types only, say.
TEST_F(ErrorBoundTest, ABufferWithoutElementsIsNoFactorOfTheTerms) {
  json_["arguments"].push_back({{"name", "s"},
                                {"buffer", "float32"},
                                {"access", "in"},
                                {"extent", "N > 1024 ? N : 0"},
                                {"fill", "normal"},
                                {"low", 3},
                                {"high", 4}});
  use({{"terms", "N"}, {"of", {"x", "x", "s"}}});
  EXPECT_DOUBLE_EQ(*bound_->sum_magnitude(), 32.0 / 3);
  use({{"terms", "N"}, {"of", {"x", "x", "s"}}}, "float32", "4096");
  EXPECT_DOUBLE_EQ(*bound_->sum_magnitude(), 5 * 64.0 / 3);
}

TEST_F(ErrorBoundTest, SumsOfWhatIsPositiveAreBoundedByTheResultAlone) {
  use({{"terms", "N"}, {"positive", true}});
  const double relative = bound_->tolerance(ElementType::float32);
  const ErrorBound errors = bound({1e-3, 1});
  const auto within = [&](double value, double expected) {
    return errors.error(value, expected) <= errors.tolerance(value, expected);
  };
  EXPECT_TRUE(within(1e-3 * (1 + 0.9 * relative), 1e-3));
  EXPECT_FALSE(within(1e-3 * (1 + 1.1 * relative), 1e-3));
}

TEST_F(ErrorBoundTest, SlackIsAddedToWhatEachElementMayBeOff) {
  use(nullptr);
  const std::vector<double> expected{1, 1, 1};
  const ErrorBound errors(*bound_, ElementType::float32, expected, {0, 0.25, 0});
  EXPECT_TRUE(errors.compare(std::vector<double>{1, 1.25, 1}, expected).within);
  EXPECT_TRUE(errors.compare(std::vector<double>{1, 0.75, 1}, expected).within);
  EXPECT_FALSE(errors.compare(std::vector<double>{1, 1.26, 1}, expected).within);
  const ErrorBound::Verdict other = errors.compare(std::vector<double>{1, 1.25, 1.25}, expected);
  EXPECT_FALSE(other.within) << "another element has none";
  EXPECT_EQ(other.at, 2U);
  EXPECT_DOUBLE_EQ(errors.tolerance(1.25, 1, 1), errors.tolerance(1.25, 1, 2) + 0.25 / 2);
  EXPECT_FALSE(errors.compare(std::vector<double>{1, std::nan(""), 1}, expected).within);
}

// Of elements as they lie in memory, in parts as they are read back, and longer than what one processor takes at a
// time.
TEST_F(ErrorBoundTest, PartsOfAnOutputAreComparedAsTheWholeIs) {
  use(nullptr);
  constexpr std::size_t kCount = 300'000;
  std::vector<double> expected(kCount);
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values[i] = static_cast<float>(i % 1000) / 8 - 50;
    expected[i] = values[i];
  }
  const ErrorBound errors(*bound_, ElementType::float32, expected);
  const auto whole = [&] { return errors.compare(ElementType::float32, std::as_bytes(std::span(values)), expected); };
  const auto in_parts = [&] {
    ErrorBound::Verdict worst;
    for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 131'072}, {131'072, kCount}}) {
      const std::span<const float> part = std::span(values).subspan(begin, end - begin);
      worst.keep_worse(errors.compare(ElementType::float32, std::as_bytes(part), expected, begin));
    }
    return worst;
  };
  EXPECT_TRUE(whole().within);
  EXPECT_EQ(whole().error, 0);
  values[299'999] += 7;
  values[70'000] += 9;  // the largest error, and later the same of the same number
  expected[131'072] = expected[70'000];
  values[131'072] = values[70'000];
  for (const ErrorBound::Verdict& found : {whole(), in_parts()}) {
    EXPECT_FALSE(found.within);
    EXPECT_EQ(found.at, 70'000U) << "the first of those that say the same";
    EXPECT_EQ(found.value, values[70'000]);
    EXPECT_EQ(found.error, errors.error(values[70'000], expected[70'000]));
    EXPECT_EQ(found.tolerance, errors.tolerance(values[70'000], expected[70'000]));
  }
  const std::vector<double> widened(values.begin(), values.end());
  EXPECT_EQ(errors.compare(widened, expected).at, 70'000U);
}

TEST_F(ErrorBoundTest, MembersInTurnHaveTheirOwnTypesAndScales) {
  json_["tolerance"] = {{"float32", 0.125}, {"float16", 0.5}, {"int32", 0}};
  use(nullptr);
  const std::array types{ElementType::float32, ElementType::int32, ElementType::float16};
  const std::vector<double> expected{1, 1000, 8, -1, 2000, 8};
  const ErrorBound errors(*bound_, types, expected);
  EXPECT_EQ(errors.error(1.5, 1, 3), 0.25) << "in parts of the first members alone";
  EXPECT_EQ(errors.tolerance(1.5, 1, 3), 0.125);
  EXPECT_EQ(errors.error(12, 8, 2), 0.25);
  EXPECT_FALSE(errors.limits());
  EXPECT_TRUE(errors.compare(std::vector<double>{1.25, 1000, 15, -1, 2000, 1}, expected).within);
  const ErrorBound::Verdict found = errors.compare(std::vector<double>{1, 1000, 8, -1, 2001, 8}, expected);
  EXPECT_FALSE(found.within);
  EXPECT_EQ(found.at, 4U);
  EXPECT_FALSE(errors.compare(std::vector<double>{1.5, 1000, 8, -1, 2000, 8}, expected).within);
}

// What a device compares by says of every number what the bound says.
TEST_F(ErrorBoundTest, LimitsAreTheBoundAsNumbers) {
  json_["types"][0]["values"] = {"float32", "float16", "bfloat16", "int8"};
  json_["tolerance"].update({{"bfloat16", 1e-2}, {"int8", 1e-5}});
  for (const char* const type : {"float32", "float16", "bfloat16", "int8"}) {
    use({{"terms", "N"}}, type);
    std::vector<double> expected(1000);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = std::ldexp(static_cast<double>(i % 17) - 8, static_cast<int>(i % 40) - 30);
    }
    const ErrorBound errors = bound(expected);
    const std::optional<ElementLimits> limits = errors.limits();
    ASSERT_TRUE(limits);
    for (const double right : expected) {
      const double size = std::abs(right);
      const double most = limits->largest_distance(size, size);
      for (const double value : {right + most * 0.99, right - most * 0.99, right + most * 1.1, right - most * 1.1}) {
        const double far = std::abs(value - right);
        EXPECT_EQ(errors.error(value, right), far / (size + limits->unit));
        EXPECT_EQ(far <= limits->largest_distance(size, std::max(std::abs(value), size)),
                  errors.compare(std::vector<double>{value}, std::vector<double>{right}).within)
            << type << " " << value << " " << right;
      }
    }
  }
  EXPECT_FALSE(ErrorBound(*bound_, ElementType::float32, std::vector<double>{1}, {0.5}).limits());
}

TEST_F(ErrorBoundTest, LargestErrorIsThatToTheLastBit) {
  use(nullptr);
  std::vector<double> expected(20'000);
  std::vector<double> values(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::ldexp(static_cast<double>(i * 7919 % 1000) + 1, -10);
    values[i] = expected[i] + std::ldexp(expected[i] + 0.5, -22) * (1 + std::ldexp(static_cast<double>(i % 3), -52));
  }
  const ErrorBound errors = bound(expected);
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, errors.error(values[i], expected[i]));
  }
  EXPECT_EQ(errors.compare(values, expected).error, largest);
}

TEST_F(ErrorBoundTest, ElementsOfEveryTypeAreCompared) {
  use(nullptr);
  const std::vector<double> expected{1, -2, 3};
  const ErrorBound errors(*bound_, ElementType::float32, expected);
  const auto at_of = [&](ElementType type, auto one, auto two, auto other) {
    const std::array values{one, two, other};
    const ErrorBound::Verdict found = errors.compare(type, std::as_bytes(std::span(values)), expected);
    EXPECT_FALSE(found.within) << name_of(type);
    EXPECT_EQ(found.value, 100) << name_of(type);
    return found.at;
  };
  EXPECT_EQ(at_of(ElementType::float64, 1.0, -2.0, 100.0), 2U);
  EXPECT_EQ(at_of(ElementType::float32, 1.0F, 100.0F, 3.0F), 1U);
  EXPECT_EQ(at_of(ElementType::float16, half_from_float(100), half_from_float(-2), half_from_float(3)), 0U);
  EXPECT_EQ(at_of(ElementType::bfloat16, bfloat_from_float(1), bfloat_from_float(-2), bfloat_from_float(100)), 2U);
  EXPECT_EQ(at_of(ElementType::int32, 1, 100, 3), 1U);
  EXPECT_EQ(at_of(ElementType::int8, std::int8_t{1}, std::int8_t{-2}, std::int8_t{100}), 2U);
}

TEST_F(ErrorBoundTest, LeastNumbersMayBeFlushedToZero) {
  json_["tolerance"]["bfloat16"] = 1e-6;
  use({{"terms", "N"}, {"positive", true}});
  for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
    // As softmax gives of what is far below the largest.
    const ErrorBound errors(*bound_, type, std::vector<double>{0x1p-127, 1});
    EXPECT_TRUE(errors.compare(std::vector<double>{0, 1}, std::vector<double>{0x1p-127, 1}).within) << name_of(type);
    EXPECT_TRUE(errors.compare(std::vector<double>{0x1p-127, 1}, std::vector<double>{0, 1}).within) << name_of(type);
    EXPECT_FALSE(errors.compare(std::vector<double>{0, 1}, std::vector<double>{0x1p-124, 1}).within) << name_of(type);
  }
}

TEST_F(ErrorBoundTest, ErrorsAmongTheLargestNumbersAreErrors) {
  json_["arguments"][1]["buffer"] = "float64";
  json_["tolerance"]["float64"] = 1e-12;
  use(nullptr);
  for (const double size : {1e155, 1.5e308, 1e-200}) {
    const std::vector<double> expected{size, -size};
    const ErrorBound errors(*bound_, ElementType::float64, expected);
    EXPECT_DOUBLE_EQ(errors.error(0, size), 0.5) << size;
    EXPECT_TRUE(errors.compare(expected, expected).within) << size;
    EXPECT_TRUE(errors.compare(std::vector<double>{size * (1 - 1e-14), -size}, expected).within) << size;
    EXPECT_FALSE(errors.compare(std::vector<double>{size, 0}, expected).within) << size;
    EXPECT_FALSE(errors.compare(std::vector<double>{size, size}, expected).within) << size;
    EXPECT_FALSE(errors.compare(std::vector<double>{size * (1 - 1e-10), -size}, expected).within) << size;
  }
}

TEST_F(ErrorBoundTest, ResultsOfANarrowTypeMayBeRoundedOnceAndNoMore) {
  json_["tolerance"]["float16"] = 0;
  use({{"terms", 1}, {"positive", true}}, "float16");
  const ErrorBound errors = bound({1.5});
  const auto within = [&](double value, double expected) {
    return errors.error(value, expected) <= errors.tolerance(value, expected);
  };
  const double spacing = 0x1p-10;  // of numbers from 1 to 2
  EXPECT_TRUE(within(1.5, 1.5 + 0.499 * spacing));
  EXPECT_FALSE(within(1.5, 1.5 + 0.51 * spacing)) << "the next number is nearer";
  EXPECT_TRUE(within(0, 0x1p-26)) << "below half the least number";
  EXPECT_FALSE(within(0, 0x1p-24));
  EXPECT_TRUE(within(kInfinity, 1e5)) << "beyond the type's numbers";
  EXPECT_FALSE(within(-kInfinity, 1e5));
  EXPECT_FALSE(within(kInfinity, 6e4));
  EXPECT_FALSE(within(65504, 1e5));
}

TEST_F(ErrorBoundTest, IntegersMayBeEitherNeighbourOfATieAndNoOthers) {
  json_["types"][0]["values"] = {"float32", "int8"};
  json_["tolerance"]["int8"] = 1e-5;
  use({{"terms", "N"}}, "int8");
  const std::vector<double> expected{126.5, -3.49, 0, 127};
  const ErrorBound errors = bound(expected);
  EXPECT_TRUE(errors.compare(std::vector<double>{126, -3, 0, 127}, expected).within);
  EXPECT_TRUE(errors.compare(std::vector<double>{127, -3, 0, 127}, expected).within);
  EXPECT_FALSE(errors.compare(std::vector<double>{126, -4, 0, 127}, expected).within);
  EXPECT_FALSE(errors.compare(std::vector<double>{126, -3, 1, 127}, expected).within);
  EXPECT_FALSE(errors.compare(std::vector<double>{126, -3, 0, 126}, expected).within);
  EXPECT_FALSE(errors.compare(std::vector<double>{125, -3, 0, 127}, expected).within);
}

TEST_F(ErrorBoundTest, WhatIsComparedWithTheDefaultIsRoundedTwice) {
  json_["reference"] = {{"default", true}};
  use({{"terms", "N"}});
  EXPECT_DOUBLE_EQ(bound_->tolerance(ElementType::float32), 2 * (1e-6 + 4 * kRoundoff * 32));
}

TEST_F(ErrorBoundTest, TheVerdictIsTheFurthestBeyondOrElseTheLargestError) {
  use(nullptr);
  std::vector<double> expected(200'000, 1);
  std::vector<double> values = expected;
  const ErrorBound errors = bound(expected);
  EXPECT_TRUE(errors.compare(values, expected).within);
  EXPECT_EQ(errors.compare(values, expected).error, 0);
  values[7] = 1 + 1e-8;
  values[150'000] = 1 - 1e-7;
  values[150'001] = 1 + 1e-7;
  const ErrorBound::Verdict good = errors.compare(values, expected);
  EXPECT_TRUE(good.within);
  EXPECT_NEAR(good.error, 0.5e-7, 1e-15);
  EXPECT_EQ(good.tolerance, 1e-6);
  EXPECT_TRUE(good.at == 150'000 || good.at == 150'001);
  values[190'000] = 1.5;
  values[100] = std::nan("");
  const ErrorBound::Verdict bad = errors.compare(values, expected);
  EXPECT_FALSE(bad.within);
  EXPECT_EQ(bad.at, 100U);
  EXPECT_EQ(bad.error, kInfinity);
}

}  // namespace
}  // namespace pascaline::testing
