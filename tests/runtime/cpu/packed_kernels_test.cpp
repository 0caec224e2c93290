#include "runtime/cpu/packed_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/elements.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/formats/int8_activations.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline::cpu {
namespace {

// Activations as integers, in memory of their own.
struct Activations {
  Activations(const PackedKernels& kernels, ElementType weight, const std::vector<float>& floats, std::int64_t width)
      : floats_width(width) {
    const std::int64_t rows = std::ssize(floats) / width;
    const MatrixLayout layout = layout_of(weight);
    const std::int64_t columns = layout.chunks(width) * layout.chunk_columns;
    const auto blocks = static_cast<std::size_t>(rows * columns / 32);
    values.assign(static_cast<std::size_t>(rows * columns), 99);
    scales.assign(blocks, -1);
    sums.assign(blocks, -1);
    halves.assign(2 * blocks, -1);
    view = {values.data(), scales.data(), sums.data(), halves.data(), rows, columns, weight == ElementType::int8_row};
    kernels.round_rows(floats.data(), width, view);
  }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    const std::int64_t scale = view.by_row ? row : (row * view.columns + column) / 32;
    return double{scales[static_cast<std::size_t>(scale)]} *
           values[static_cast<std::size_t>(row * view.columns + column)];
  }
  std::int64_t floats_width;
  std::vector<std::int8_t> values;
  std::vector<float> scales;
  std::vector<float> sums;
  std::vector<std::int16_t> halves;
  Int8Rows view{};
};

struct PackedMatrix {
  PackedMatrix(ElementType type, std::int64_t rows, std::int64_t columns)
      : PackedMatrix(type, rows, columns, draw_matrix(type, rows, columns, Fill::uniform, -2, 2, 7)) {}
  PackedMatrix(ElementType type, std::int64_t rows, std::int64_t columns, std::vector<std::byte> packed)
      : bytes(std::move(packed)), view(bytes.data(), type, {rows, columns}) {}

  [[nodiscard]] std::vector<double> values() const {
    return widen_matrix(view.type, bytes, view.shape[0], view.shape[1]);
  }
  std::vector<std::byte> bytes;
  TensorView view;
};

// Rows whose bytes in a file are all the same but for their scales, which are as `set_scales` writes them.
PackedMatrix filled_matrix(ElementType type, std::int64_t rows, std::int64_t columns, std::byte fill,
                           std::uint16_t half) {
  std::vector<std::byte> row(file_row_bytes(type, columns), fill);
  const FormatTraits::Block& block = traits_of(type).block;
  for (std::size_t at = 0; at < row.size() && type != ElementType::int8_row; at += block.bytes) {
    if (block.exponent_reach > 0) {
      row[at + block.scales_at] = static_cast<std::byte>(128 + std::ilogb(float_from_half(half)));
    }
    for (std::size_t i = 0; i < block.scales(); ++i) {
      std::memcpy(row.data() + at + block.scales_at + 2 * i, &half, sizeof half);
    }
    if (type == ElementType::int4_g128) {
      row[at + 66] = fill & std::byte{0x0F};
      row[at + 67] = std::byte{0};
    }
  }
  if (type == ElementType::int8_row) {
    const float scale = float_from_half(half);
    std::memcpy(row.data() + columns, &scale, sizeof scale);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout_of(type).bytes(rows, columns)));
  const auto group = static_cast<std::size_t>(layout_of(type).group_bytes(columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    pack_row(type, row, columns, i % 32, std::span(bytes).subspan(static_cast<std::size_t>(i / 32) * group, group));
  }
  return {type, rows, columns, std::move(bytes)};
}

std::vector<float> drawn_floats(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-3, 3);
  std::vector<float> result(static_cast<std::size_t>(count));
  std::generate(result.begin(), result.end(), [&] { return values(generator); });
  return result;
}

std::vector<float> products(const PackedKernels& kernels, const PackedMatrix& matrix, const Activations& with) {
  const std::int64_t rows = matrix.view.shape[0];
  std::vector<float> sums(static_cast<std::size_t>(rows * with.view.rows), std::nanf(""));
  kernels.dot(matrix.view, 0, rows, with.view, {sums.data(), rows});
  return sums;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) || (std::isnan(x) && std::isnan(y));
  });
}

class PackedKernelsTest : public ::testing::TestWithParam<std::tuple<ElementType, bool>> {
 protected:
  void SetUp() override {
    kernels_ = std::get<1>(GetParam()) ? avx2_packed_kernels() : &portable_packed_kernels();
    if (kernels_ == nullptr) {
      GTEST_SKIP() << "this processor has not both AVX2 and F16C";
    }
  }

  // Against float64 of exactly these integers and scales. A block's term is rounded thrice, or six times with a
  // minimum, and each addition once.
  void expect_products(const PackedMatrix& matrix, const Activations& with) const {
    const std::int64_t rows = matrix.view.shape[0];
    const std::int64_t width = matrix.view.shape[1];
    const std::vector<double> values = matrix.values();
    const std::vector<float> sums = products(*kernels_, matrix, with);
    const double roundings = 6 + 2 * static_cast<double>(width / 32 + 1);
    for (std::int64_t j = 0; j < with.view.rows; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        double expected = 0;
        double magnitude = 0;
        for (std::int64_t column = 0; column < width; ++column) {
          const double with_value = with.at(j, column);
          expected += values[static_cast<std::size_t>(i * width + column)] * with_value;
          magnitude += largest_ * std::fabs(with_value);
        }
        ASSERT_NEAR(double{sums[static_cast<std::size_t>(j * rows + i)]}, expected, roundings * 0x1p-24 * magnitude)
            << "row " << i << " of " << rows << " x " << width << " with " << j << " of " << with.view.rows;
      }
    }
  }

  ElementType format_ = std::get<0>(GetParam());
  const PackedKernels* kernels_ = nullptr;
  double largest_ = 8;  // more than any value of the matrix, and a minimum beside it
};

TEST_P(PackedKernelsTest, ProductsAreThoseOfTheIntegersAndTheirScales) {
  for (const std::int64_t width : {1, 31, 64, 100, 256, 1000}) {
    for (const std::int64_t rows : {1, 31, 32, 77}) {
      for (const std::int64_t count : {1, 2, 3, 8}) {
        const PackedMatrix matrix(format_, rows, width);
        ASSERT_NO_FATAL_FAILURE(
            expect_products(matrix, Activations(*kernels_, format_, drawn_floats(count * width, 3), width)));
      }
    }
  }
}

TEST_P(PackedKernelsTest, ExtremeIntegersDoNotOverflow) {
  constexpr std::int64_t kWidth = 512;
  std::vector<float> floats(2 * kWidth, 127.0F);
  std::fill(floats.begin() + kWidth, floats.end(), -127.0F);
  const Activations with(*kernels_, format_, floats, kWidth);
  for (const std::byte fill : {std::byte{0x80}, std::byte{0x7F}, std::byte{0xFF}, std::byte{0x00}, std::byte{0x81}}) {
    largest_ = 2.0 * 64 * 128;
    ASSERT_NO_FATAL_FAILURE(expect_products(filled_matrix(format_, 40, kWidth, fill, 0x3C00), with));
    largest_ *= 65504;
    ASSERT_NO_FATAL_FAILURE(expect_products(filled_matrix(format_, 40, kWidth, fill, 0x7BFF), with));
  }
}

TEST_P(PackedKernelsTest, AProductDependsOnItsRowAndActivationsOnly) {
  constexpr std::int64_t kWidth = 300;
  constexpr std::int64_t kRows = 100;
  const PackedMatrix matrix(format_, kRows, kWidth);
  const std::vector<float> floats = drawn_floats(19 * kWidth, 5);
  const std::vector<float> all = products(*kernels_, matrix, Activations(*kernels_, format_, floats, kWidth));
  for (std::int64_t j = 0; j < 19; ++j) {
    const std::vector<float> one(floats.begin() + j * kWidth, floats.begin() + (j + 1) * kWidth);
    const Activations with(*kernels_, format_, one, kWidth);
    for (std::int64_t first = 0; first < kRows; first += 32) {
      const std::int64_t count = std::min<std::int64_t>(32, kRows - first);
      std::vector<float> sums(static_cast<std::size_t>(count));
      kernels_->dot(matrix.view, first, count, with.view, {sums.data(), count});
      const auto expected = all.begin() + j * kRows + first;
      ASSERT_TRUE(same_bits(sums, {expected, expected + count})) << j << ", " << first;
    }
  }
}

TEST_P(PackedKernelsTest, AllKindsOfProcessorsGiveTheSameBits) {
  for (const std::int64_t width : {5, 64, 333, 2048}) {
    const PackedMatrix matrix(format_, 70, width);
    std::vector<float> floats = drawn_floats(5 * width, 9);
    floats[1] = 1e30F;
    floats[static_cast<std::size_t>(width)] = 1e-42F;
    const Activations with(*kernels_, format_, floats, width);
    const Activations plain(portable_packed_kernels(), format_, floats, width);
    EXPECT_EQ(with.values, plain.values);
    EXPECT_EQ(with.scales, plain.scales);
    EXPECT_EQ(with.sums, plain.sums);
    EXPECT_EQ(with.halves, plain.halves);
    EXPECT_TRUE(same_bits(products(*kernels_, matrix, with), products(portable_packed_kernels(), matrix, plain)))
        << width;
  }
}

TEST_P(PackedKernelsTest, ActivationsThatAreNoNumbersGiveNone) {
  constexpr std::int64_t kWidth = 200;
  const PackedMatrix matrix(format_, 33, kWidth);
  for (const float odd : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> floats = drawn_floats(2 * kWidth, 2);
    floats[150] = odd;
    const std::vector<float> sums = products(*kernels_, matrix, Activations(*kernels_, format_, floats, kWidth));
    EXPECT_TRUE(std::all_of(sums.begin(), sums.begin() + 33, [](float sum) { return std::isnan(sum); }));
    EXPECT_TRUE(std::all_of(sums.begin() + 33, sums.end(), [](float sum) { return std::isfinite(sum); }));
  }
}

TEST_P(PackedKernelsTest, LongRowsAddUp) {
  constexpr std::int64_t kWidth = 140'000;  // more than 32 bits hold the sums of
  const PackedMatrix matrix = filled_matrix(format_, 2, kWidth, std::byte{0x7F}, 0x3C00);
  const Activations with(*kernels_, format_, std::vector<float>(kWidth, 1.0F), kWidth);
  const Activations plain(portable_packed_kernels(), format_, std::vector<float>(kWidth, 1.0F), kWidth);
  const std::vector<float> sums = products(*kernels_, matrix, with);
  EXPECT_TRUE(same_bits(sums, products(portable_packed_kernels(), matrix, plain)));
  if (format_ == ElementType::int8_row) {
    EXPECT_FLOAT_EQ(sums[0], 127.0F * kWidth);
  }
}

TEST_P(PackedKernelsTest, WidenedValuesAreExact) {
  for (const std::int64_t width : {1, 40, 256, 1000}) {
    const PackedMatrix matrix(format_, 70, width);
    const std::vector<double> values = matrix.values();
    for (const std::int64_t column : {std::int64_t{0}, width / 256 * 256}) {
      for (const auto& [first, count] : {std::array<std::int64_t, 2>{0, 70}, {31, 2}, {69, 1}}) {
        const std::int64_t part = width - column;
        const std::int64_t stride = part + 3;
        std::vector<float> to(static_cast<std::size_t>(count * stride), 77);
        kernels_->widen(matrix.view, {first, count, column, part}, {to.data(), stride});
        for (std::int64_t i = 0; i < count * stride; ++i) {
          const bool inside = i % stride < part;
          const double expected =
              inside ? values[static_cast<std::size_t>((first + i / stride) * width + column + i % stride)] : 77.0;
          ASSERT_EQ(double{to[static_cast<std::size_t>(i)]}, expected) << first << ", " << i << " of " << width;
        }
      }
    }
  }
}

TEST_P(PackedKernelsTest, RoundedRowsAreWidened) {
  for (const std::int64_t width : {3, 32, 777}) {
    const Activations with(*kernels_, format_, drawn_floats(3 * width, 4), width);
    std::vector<float> to(static_cast<std::size_t>(3 * width));
    kernels_->widen_rounded(with.view, width, to.data());
    for (std::int64_t i = 0; i < 3 * width; ++i) {
      ASSERT_EQ(to[static_cast<std::size_t>(i)], static_cast<float>(with.at(i / width, i % width)));
    }
    for (std::int64_t row = 0; row < 3; ++row) {
      EXPECT_TRUE(std::all_of(with.values.begin() + row * with.view.columns + width,
                              with.values.begin() + (row + 1) * with.view.columns,
                              [](std::int8_t value) { return value == 0; }));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedKernelsTest,
                         ::testing::Combine(::testing::ValuesIn(pascaline::testing::kPackedTypes), ::testing::Bool()),
                         [](const auto& tested) {
                           return std::string(name_of(std::get<0>(tested.param))) +
                                  (std::get<1>(tested.param) ? "_avx2" : "_portable");
                         });

TEST(PackedKernelsChoiceTest, TheBestIsTaken) {
  EXPECT_EQ(&packed_kernels(), avx2_packed_kernels() != nullptr ? avx2_packed_kernels() : &portable_packed_kernels());
}

}  // namespace
}  // namespace pascaline::cpu
