#include "runtime/formats/lost_blocks.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/formats/packed_matrix.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline {
namespace {

std::size_t lost_of(ElementType format, const std::vector<float>& values) {
  std::vector<std::byte> row(file_row_bytes(format, static_cast<std::int64_t>(values.size())));
  EXPECT_FALSE(quantize_row(format, values, row)) << name_of(format);
  return lost_blocks(format, values, row);
}

TEST(LostBlocksTest, ZerosAndUsualValuesAreNone) {
  for (const ElementType format : testing::kPackedTypes) {
    std::vector<float> values(512, 0.0F);
    EXPECT_EQ(lost_of(format, values), 0U) << name_of(format);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 1e-4F * static_cast<float>(static_cast<int>(i % 7) - 3);
    }
    EXPECT_EQ(lost_of(format, values), 0U) << name_of(format);
  }
}

TEST(LostBlocksTest, ABlockWhoseScaleIsTooSmallIsOne) {
  for (const ElementType format : testing::kPackedTypes) {
    if (format == ElementType::int8_row || format == ElementType::mxfp4) {
      continue;  // their scales have the exponents of float32
    }
    const std::size_t block = file_block_values(format, 512);
    ASSERT_EQ(512 % block, 0U) << name_of(format);
    std::vector<float> values(512, 0.5F);
    values.front() = -0.5F;
    std::fill(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(block), 0.0F);
    values[1] = 2e-9F;
    values[2] = -1e-9F;
    EXPECT_EQ(lost_of(format, values), 1U) << name_of(format);
  }
}

}  // namespace
}  // namespace pascaline
