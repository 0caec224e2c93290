#include "runtime/formats/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "kernel_templates/inputs/draw.cuh"
#include "runtime/formats/packed_matrix.hpp"

namespace pascaline {
namespace {

using Values = std::vector<double>;

Values drawn(ElementType type, std::size_t count, Fill fill, double low, double high, std::uint64_t seed = 7) {
  return widen(type, draw_elements(type, count, fill, low, high, seed));
}

TEST(DrawTest, ARampGoesFromLowToHighInEqualSteps) {
  EXPECT_EQ(drawn(ElementType::float32, 5, Fill::ramp, -1, 1), (Values{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(drawn(ElementType::float16, 3, Fill::ramp, 4, 2), (Values{4, 3, 2})) << "it may fall";
  EXPECT_EQ(drawn(ElementType::float64, 1, Fill::ramp, 3, 9), (Values{3})) << "one element is low";
  EXPECT_TRUE(drawn(ElementType::float32, 0, Fill::ramp, 0, 1).empty());
  EXPECT_EQ(drawn(ElementType::int32, 4, Fill::row_ramp, 0, 10), (Values{0, 3, 6, 10})) << "one row of it";
}

TEST(DrawTest, ARampOfIntegersIsRoundedDown) {
  EXPECT_EQ(drawn(ElementType::int32, 4, Fill::ramp, 0, 10), (Values{0, 3, 6, 10}));
  EXPECT_EQ(drawn(ElementType::int32, 3, Fill::ramp, 17, 17), (Values{17, 17, 17}));
  const Values numbers = drawn(ElementType::int32, 100'000, Fill::ramp, 0, 99'999);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(numbers[i], static_cast<double>(i)) << "every whole number once";
  }
}

TEST(DrawTest, AConstantIsTheSameEverywhere) {
  EXPECT_EQ(drawn(ElementType::float16, 3, Fill::constant, 2.5, 9), (Values{2.5, 2.5, 2.5}));
  EXPECT_EQ(drawn(ElementType::uint8, 1, Fill::constant, 7, 0), (Values{7}));
}

TEST(DrawTest, IntegersOf16And64BitsAndBoolsHoldTheirRanges) {
  EXPECT_EQ(drawn(ElementType::int16, 2, Fill::ramp, -32768, 32767), (Values{-32768, 32767}));
  EXPECT_EQ(drawn(ElementType::uint16, 2, Fill::ramp, 0, 65535), (Values{0, 65535}));
  EXPECT_EQ(drawn(ElementType::uint64, 3, Fill::ramp, 0, 0x1p64), (Values{0, 0x1p63, 0x1.fffffffffffffp63}));
  EXPECT_EQ(drawn(ElementType::uint64, 1, Fill::constant, -1, 0), (Values{0x1p64}));
  EXPECT_EQ(drawn(ElementType::boolean, 4, Fill::ramp, -1, 2), (Values{1, 0, 1, 1}));
  const Values bools = drawn(ElementType::boolean, 1000, Fill::uniform, 0, 2);
  const auto set = std::count(bools.begin(), bools.end(), 1.0);
  EXPECT_EQ(set + std::count(bools.begin(), bools.end(), 0.0), 1000);
  EXPECT_NEAR(static_cast<double>(set), 500, 80);
}

TEST(DrawTest, SortedNumbersRiseFromLowToHighInUnequalSteps) {
  const Values offsets = drawn(ElementType::int32, 1001, Fill::sorted, 0, 8000);
  EXPECT_EQ(offsets.front(), 0);
  EXPECT_EQ(offsets.back(), 8000) << "offsets of the rows of a sparse matrix with 8000 elements";
  EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
  Values lengths;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    lengths.push_back(offsets[i] - offsets[i - 1]);
  }
  EXPECT_LT(*std::min_element(lengths.begin(), lengths.end()), 3);
  EXPECT_GT(*std::max_element(lengths.begin(), lengths.end()), 13);
  EXPECT_NE(offsets, drawn(ElementType::int32, 1001, Fill::sorted, 0, 8000, 8));
  EXPECT_EQ(drawn(ElementType::float32, 1, Fill::sorted, 3, 9), (Values{3}));
}

TEST(DrawTest, APermutationHasEveryNumberOnce) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{1000}, std::size_t{4097}}) {
    Values numbers = drawn(ElementType::int32, count, Fill::permutation, 5, 0);
    if (count >= 63) {
      EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end())) << count;
      EXPECT_NE(numbers, drawn(ElementType::int32, count, Fill::permutation, 5, 0, 8)) << count;
    }
    std::sort(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(numbers[i], static_cast<double>(5 + i)) << count;
    }
  }
}

TEST(DrawTest, UniformStaysInItsRangeAndFillsIt) {
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

TEST(DrawTest, NormalHasItsMeanAndDeviation) {
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

TEST(DrawTest, TheSeedDecides) {
  const auto bytes = [](std::uint64_t seed) {
    return draw_elements(ElementType::float32, 100, Fill::uniform, 0, 1, seed);
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
  EXPECT_EQ(drawn(ElementType::float32, 3, Fill::zero, 1, 2), (Values{0, 0, 0}));
  EXPECT_EQ(drawn(ElementType::float32, 3, Fill::none, 1, 2), (Values{0, 0, 0}));
}

TEST(DrawTest, AnElementDependsOnItsIndexAndNotOnHowManyThereAre) {
  for (const Fill fill : {Fill::uniform, Fill::normal}) {
    const Values all = drawn(ElementType::float64, 200'001, fill, -3, 5);
    for (const std::size_t count : {0U, 1U, 7U, 65'537U}) {
      const Values some = drawn(ElementType::float64, count, fill, -3, 5);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << count;
    }
  }
}

// In numbers that any machine must give: they are exact in binary.
TEST(DrawTest, ValuesAreThoseOfEveryMachine) {
  EXPECT_EQ(splitmix(0), 0xE220A8397B1DCDAFU) << "the generator's published first number";
  EXPECT_EQ(drawn(ElementType::float64, 1, Fill::uniform, 0, 1, 0)[0],
            (static_cast<double>(0xE220A8397B1DCDAFU >> 11U) + 0.5) * 0x1p-53);
  const double normal = drawn(ElementType::float64, 1, Fill::normal, 0, 1, 0)[0];
  EXPECT_EQ(std::ldexp(normal, 21), std::floor(std::ldexp(normal, 21))) << "a sum of whole numbers";
}

TEST(DrawTest, NormalHasTheQuartilesAndTailsOfTheDistribution) {
  const Values values = drawn(ElementType::float64, 400'000, Fill::normal, 0, 1);
  const auto share_within = [&](double limit) {
    const auto within = std::ranges::count_if(values, [&](double value) { return std::abs(value) < limit; });
    return static_cast<double>(within) / static_cast<double>(values.size());
  };
  EXPECT_NEAR(share_within(0.6745), 0.5, 0.006);
  EXPECT_NEAR(share_within(1), 0.6827, 0.006);
  EXPECT_NEAR(share_within(2), 0.9545, 0.003);
  EXPECT_NEAR(share_within(3), 0.9973, 0.001);
  EXPECT_EQ(share_within(6), 1);
}

TEST(DrawTest, WhatAnIntegerTypeDoesNotHoldLosesItsUpperBits) {
  EXPECT_EQ(drawn(ElementType::uint8, 3, Fill::ramp, -2, 0), (Values{254, 255, 0}));
  EXPECT_EQ(drawn(ElementType::uint32, 2, Fill::ramp, -1, 4294967296.0), (Values{4294967295.0, 0}));
  EXPECT_EQ(drawn(ElementType::int8, 2, Fill::ramp, -129, 128), (Values{127, -128}));
  EXPECT_EQ(drawn(ElementType::int64, 2, Fill::ramp, -1e30, 1e30), (Values{-0x1p63, 0x1.fffffffffffffp62}))
      << "the last that both hold";
}

TEST(DrawTest, RowsOfARampAreAlike) {
  const auto ramp = [](ElementType type, std::int64_t rows, std::int64_t columns) {
    return widen_matrix(type, draw_matrix(type, rows, columns, Fill::row_ramp, 0, 3, 1), rows, columns);
  };
  EXPECT_EQ(ramp(ElementType::float16, 2, 4), (Values{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(ramp(ElementType::float16x, 2, 4), (Values{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(ramp(ElementType::int32, 3, 1), (Values{0, 0, 0}));
  EXPECT_TRUE(ramp(ElementType::float32, 0, 4).empty());
}

TEST(DrawTest, SizesThatDoNotFitAreRefused) {
  std::vector<std::byte> bytes(15);
  EXPECT_THROW(draw_into(bytes, {ElementType::float32, 4, 1}), Error);
  EXPECT_THROW(draw_into(bytes, {ElementType::q8_0, 1, 1}), Error);
  EXPECT_THROW(static_cast<void>(draw_elements(ElementType::q8_0, 32, Fill::uniform, 0, 1, 1)), Error);
}

struct NarrowHere {
  static std::uint16_t float16_bits(float value) { return half_from_float(value); }
  static std::uint16_t bfloat16_bits(float value) { return bfloat_from_float(value); }
};

// The address that a part of a buffer has begins that far before the part itself.
void* before(void* part, std::uint64_t bytes) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(part) - bytes);
}

TEST(DrawTest, IndicesBeyond32BitsAreKept) {
  constexpr std::uint64_t kFar = (std::uint64_t{1} << 33U) + 5;
  drawing::Plan plan = plan_of({ElementType::float32, 1, static_cast<std::int64_t>(kFar) + 8, Fill::uniform, -1, 1, 3});
  EXPECT_EQ(plan.units, kFar + 8);
  std::array<float, 8> part{};
  drawing::put_units<NarrowHere>(plan, before(part.data(), kFar * sizeof(float)), kFar, kFar + 8, 1);
  for (std::uint64_t i = 0; i < part.size(); ++i) {
    EXPECT_EQ(part.at(i), static_cast<float>(drawing::value_at(plan.values, kFar + i)));
    EXPECT_NE(part.at(i), static_cast<float>(drawing::value_at(plan.values, (kFar + i) & 0xFFFFFFFFU)));
  }
}

TEST(DrawTest, GroupsOfRowsBeyond32BitsAreKept) {
  constexpr std::int64_t kColumns = 64;
  const auto rows = static_cast<std::int64_t>(std::uint64_t{1} << 33U);
  drawing::Plan plan = plan_of({ElementType::q8_0, rows, kColumns, Fill::uniform, -1, 1, 3});
  const auto units = static_cast<std::uint64_t>(rows);
  EXPECT_EQ(plan.units, units);
  const std::uint64_t group_bytes = plan.packed.group_bytes;
  alignas(16) std::array<std::byte, std::size_t{2} * 2176> groups{};
  ASSERT_EQ(groups.size(), 2 * group_bytes);
  const std::uint64_t first = units / 32 - 2;
  drawing::put_units<NarrowHere>(plan, before(groups.data(), first * group_bytes), 32 * first, units, 1);
  EXPECT_NE(std::memcmp(groups.data(), groups.data() + group_bytes, group_bytes), 0);
  for (const double value : widen_matrix(ElementType::q8_0, groups, 64, kColumns)) {
    EXPECT_LT(std::abs(value), 1.01);
  }
}

class PackedDrawTest : public ::testing::TestWithParam<ElementType> {
 protected:
  const ElementType format_ = GetParam();
};

// Memory beside the matrix is 0, and nothing of the matrix is left out.
TEST_P(PackedDrawTest, WhatTheMatrixLacksOfItsGroupsIsZero) {
  for (const auto& [rows, columns] : {std::array<std::int64_t, 2>{1, 1}, {31, 31}, {33, 33}, {64, 256}, {70, 300}}) {
    const MatrixLayout layout = layout_of(format_);
    const auto group_bytes = static_cast<std::size_t>(layout.group_bytes(columns));
    std::vector<std::byte> packed(static_cast<std::size_t>(layout.bytes(rows, columns)), std::byte{0xA5});
    draw_into(packed, {format_, rows, columns, Fill::uniform, -2, 2, 11});
    std::vector<std::byte> again(packed.size());
    std::vector<std::byte> row(file_row_bytes(format_, columns));
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(packed.size() / group_bytes) * 32; ++i) {
      const std::size_t at = static_cast<std::size_t>(i / 32) * group_bytes;
      unpack_row(format_, std::span(packed).subspan(at, group_bytes), columns, i % 32, row);
      const bool zeros = std::ranges::all_of(row, [](std::byte byte) { return byte == std::byte{0}; });
      EXPECT_EQ(zeros, i >= rows) << i << " of " << rows;
      pack_row(format_, row, columns, i % 32, std::span(again).subspan(at, group_bytes));
    }
    EXPECT_EQ(packed, again) << "nothing but whole rows";
  }
}

TEST_P(PackedDrawTest, RowsDifferAndDoNotDependOnHowManyThereAre) {
  const std::vector<std::byte> one = draw_matrix(format_, 32, 300, Fill::uniform, -2, 2, 11);
  const std::vector<std::byte> two = draw_matrix(format_, 64, 300, Fill::uniform, -2, 2, 11);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin()));
  EXPECT_FALSE(std::equal(one.begin(), one.end(), two.begin() + static_cast<std::ptrdiff_t>(one.size())));
  const std::vector<double> values = widen_matrix(format_, two, 64, 300);
  for (std::ptrdiff_t row = 1; row < 64; ++row) {
    EXPECT_FALSE(std::equal(values.begin(), values.begin() + 300, values.begin() + 300 * row)) << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedDrawTest, ::testing::ValuesIn([] {
                           std::vector<ElementType> types;
                           for (const FormatTraits& format : packed_formats()) {
                             types.push_back(format.type);
                           }
                           return types;
                         }()),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace pascaline
