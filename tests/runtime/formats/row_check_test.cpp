#include "runtime/formats/row_check.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "runtime/formats/packed_matrix.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kColumns = 512;

std::vector<std::byte> quantized_row(ElementType format) {
  std::vector<float> values(kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 17) - 8.0F;
  }
  std::vector<std::byte> row(file_row_bytes(format, kColumns));
  EXPECT_FALSE(quantize_row(format, values, row));
  return row;
}

TEST(RowCheckTest, WhatIsQuantizedIsGood) {
  for (const ElementType format : testing::kPackedTypes) {
    EXPECT_FALSE(check_row(format, quantized_row(format))) << name_of(format);
  }
}

// With a scale made infinite the values are not finite, and where no scale is they stay as many as they were.
TEST(RowCheckTest, ARowIsBadWhereItsValuesAreNotFinite) {
  for (const ElementType format : testing::kPackedTypes) {
    const std::vector<std::byte> good = quantized_row(format);
    std::size_t bad_rows = 0;
    for (std::size_t at = 0; at + 1 < good.size(); ++at) {
      std::vector<std::byte> row = good;
      row[at] = std::byte{0xFE};
      row[at + 1] = std::byte{0x7F};
      std::vector<float> values(kColumns);
      dequantize_row(format, row, values);
      bool finite = true;
      for (const float value : values) {
        finite = finite && value >= -std::numeric_limits<float>::max() && value <= std::numeric_limits<float>::max();
      }
      const auto bad = check_row(format, row);
      bad_rows += bad ? 1 : 0;
      EXPECT_TRUE(finite || bad) << name_of(format) << " byte " << at;
    }
    EXPECT_GT(bad_rows, 0U) << name_of(format);
  }
}

TEST(RowCheckTest, ExponentsOfScalesAreLimited) {
  std::vector<std::byte> row = quantized_row(ElementType::mxfp4);
  row[2 * 17] = std::byte{192};
  EXPECT_FALSE(check_row(ElementType::mxfp4, row));
  row[2 * 17] = std::byte{193};
  const auto bad = check_row(ElementType::mxfp4, row);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->value, 64U);
  EXPECT_EQ(bad->reason, "has a scale beyond 2^64");
}

TEST(RowCheckTest, TheBlockIsNamed) {
  std::vector<std::byte> row = quantized_row(ElementType::q8_0);
  row[3 * 34] = std::byte{0};
  row[3 * 34 + 1] = std::byte{0x7C};
  const auto bad = check_row(ElementType::q8_0, row);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->value, 96U);
  EXPECT_EQ(bad->reason, "has a scale that is not finite");
  row = quantized_row(ElementType::int4_g128);
  row[68 + 66] = std::byte{16};
  ASSERT_TRUE(check_row(ElementType::int4_g128, row));
  EXPECT_EQ(check_row(ElementType::int4_g128, row)->value, 128U);
}

}  // namespace
}  // namespace pascaline
