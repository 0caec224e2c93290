#include "runtime/formats/packed_matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "core/elements.hpp"
#include "core/error.hpp"
#include "runtime/formats/draw.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline::testing {
namespace {

class PackedMatrixTest : public ::testing::TestWithParam<ElementType> {
 protected:
  [[nodiscard]] std::size_t group_bytes(std::int64_t columns) const {
    return static_cast<std::size_t>(layout_of(format_).group_bytes(columns));
  }
  std::vector<std::byte> drawn_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(generator_()); });
    return bytes;
  }

  ElementType format_ = GetParam();
  std::mt19937 generator_{11};
};

// 10^5 rows of random bytes, each at its place of a full group.
TEST_P(PackedMatrixTest, PackingLosesNoBit) {
  std::int64_t rows = 0;
  while (rows < 100'000) {
    const std::int64_t columns = 1 + static_cast<std::int64_t>(generator_() % 300);
    std::vector<std::byte> group(group_bytes(columns));
    std::vector<std::vector<std::byte>> all;
    for (std::int64_t i = 0; i < 32; ++i, ++rows) {
      all.push_back(drawn_bytes(file_row_bytes(format_, columns)));
      pack_row(format_, all.back(), columns, i, group);
    }
    std::vector<std::byte> row(all[0].size());
    for (std::int64_t i = 0; i < 32; ++i) {
      unpack_row(format_, group, columns, i, row);
      ASSERT_EQ(row, all[static_cast<std::size_t>(i)]) << "row " << i << " of " << columns << " columns";
    }
  }
}

TEST_P(PackedMatrixTest, ARowWritesItsOwnPlaceOnly) {
  for (const std::int64_t columns : {1, 64, 300}) {
    const std::vector<std::byte> row = drawn_bytes(file_row_bytes(format_, columns));
    std::vector<std::byte> group(group_bytes(columns));
    pack_row(format_, row, columns, 17, group);
    std::vector<std::byte> other(row.size());
    for (const std::int64_t place : {0, 16, 18, 31}) {
      unpack_row(format_, group, columns, place, other);
      EXPECT_TRUE(std::all_of(other.begin(), other.end(), [](std::byte bits) { return bits == std::byte{0}; }));
    }
  }
}

TEST_P(PackedMatrixTest, WidenedRowsAreThoseOfTheFile) {
  for (const auto& [rows, columns] : {std::array<std::int64_t, 2>{1, 1}, {33, 100}, {64, 256}, {70, 257}}) {
    const std::vector<std::byte> packed = draw_matrix(format_, rows, columns, Fill::uniform, -2, 2, 3);
    ASSERT_EQ(packed.size(), static_cast<std::size_t>(layout_of(format_).bytes(rows, columns)));
    const std::vector<double> values = widen_matrix(format_, packed, rows, columns);
    ASSERT_EQ(values.size(), static_cast<std::size_t>(rows * columns));
    std::vector<std::byte> row(file_row_bytes(format_, columns));
    std::vector<float> floats(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < rows; ++i) {
      unpack_row(
          format_,
          std::span(packed).subspan(static_cast<std::size_t>(i / 32) * group_bytes(columns), group_bytes(columns)),
          columns, i % 32, row);
      dequantize_row(format_, row, floats);
      EXPECT_TRUE(std::equal(floats.begin(), floats.end(), values.begin() + i * columns,
                             [](float a, double b) { return double{a} == b; }));
    }
  }
}

TEST_P(PackedMatrixTest, DrawnValuesFillTheRangeAndDependOnTheSeed) {
  constexpr std::int64_t kRows = 64;
  constexpr std::int64_t kColumns = 512;
  const std::vector<std::byte> packed = draw_matrix(format_, kRows, kColumns, Fill::uniform, -2, 2, 5);
  const std::vector<double> values = widen_matrix(format_, packed, kRows, kColumns);
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  EXPECT_GT(*largest, 1.0);
  EXPECT_LT(*largest, 4.5);
  EXPECT_LT(*least, -1.0);
  EXPECT_GT(*least, -4.5);
  EXPECT_EQ(packed, draw_matrix(format_, kRows, kColumns, Fill::uniform, -2, 2, 5));
  EXPECT_NE(packed, draw_matrix(format_, kRows, kColumns, Fill::uniform, -2, 2, 6));
  const std::vector<std::byte> zeros = draw_matrix(format_, kRows, kColumns, Fill::zero, -2, 2, 5);
  for (const double value : widen_matrix(format_, zeros, kRows, kColumns)) {
    ASSERT_EQ(value, 0.0);
  }
}

TEST_P(PackedMatrixTest, RaggedRowsAreQuantizedAsIfZerosFollowed) {
  const double step = std::max(0.15, 2.0 / static_cast<double>(1U << bits_of(format_)));
  for (const std::int64_t columns : {1, 33, 130, 300}) {
    std::vector<float> values(static_cast<std::size_t>(columns));
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::generate(values.begin(), values.end(), [&] { return distribution(generator_); });
    std::vector<std::byte> row(file_row_bytes(format_, columns));
    ASSERT_FALSE(quantize_row(format_, values, row));
    std::vector<float> back(values.size());
    dequantize_row(format_, row, back);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(back[i], values[i], step) << i << " of " << columns;
    }
  }
}

TEST_P(PackedMatrixTest, RowsThatCannotBeHeldSayWhere) {
  for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(300, 0.5F);
    values[290] = odd;
    std::vector<std::byte> row(file_row_bytes(format_, 300));
    const auto unfit = quantize_row(format_, values, row);
    ASSERT_TRUE(unfit);
    EXPECT_EQ(unfit->value, 290U);
    EXPECT_EQ(unfit->reason, "is not finite");
  }
}

TEST_P(PackedMatrixTest, WrongLengthsAreRefused) {
  std::vector<std::byte> row(file_row_bytes(format_, 64));
  std::vector<std::byte> group(group_bytes(64));
  std::vector<float> values(64);
  EXPECT_THROW(pack_row(format_, std::span(row).first(row.size() - 1), 64, 0, group), Error);
  EXPECT_THROW(pack_row(format_, row, 64, 32, group), Error);
  EXPECT_THROW(pack_row(format_, row, 64, -1, group), Error);
  EXPECT_THROW(unpack_row(format_, std::span(group).first(group.size() - 1), 64, 0, row), Error);
  EXPECT_THROW(dequantize_row(format_, std::span(row).first(row.size() - 1), values), Error);
  EXPECT_THROW(static_cast<void>(quantize_row(format_, values, std::span(row).first(row.size() - 1))), Error);
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedMatrixTest, ::testing::ValuesIn(kPackedTypes),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST(PlainMatrixTest, ElementsByThemselvesAreDrawnAndWidenedAsSuch) {
  EXPECT_EQ(widen(ElementType::int32, draw_matrix(ElementType::int32, 2, 4, Fill::row_ramp, 0, 10, 9)),
            (std::vector<double>{0, 3, 6, 10, 0, 3, 6, 10}));
  const std::vector<std::byte> drawn = draw_matrix(ElementType::float16, 3, 5, Fill::uniform, -1, 1, 9);
  EXPECT_EQ(drawn, draw_elements(ElementType::float16, 15, Fill::uniform, -1, 1, 9));
  EXPECT_EQ(widen_matrix(ElementType::float16, drawn, 3, 5), widen(ElementType::float16, drawn));
  EXPECT_THROW(static_cast<void>(file_row_bytes(ElementType::float32, 8)), Error);
}

}  // namespace
}  // namespace pascaline::testing
