#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/formats/float16x.hpp"
#include "runtime/ops/gather.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/ops/element_types.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kCodes = 1 << 16;

// All codes as a matrix on the emulated device, and what kernels make of them.
class Float16xOpsTest : public ::testing::Test {
 protected:
  static DispatcherOptions with_cache() {
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    return options;
  }

  // Codes that are no values are zeros if `values_only`.
  TensorView matrix_of(Float16x format, std::int64_t columns, bool values_only) {
    std::vector<std::byte> bytes(128 + 2 * kCodes);
    put_float16x_header(format, bytes);
    for (std::size_t i = 0; i < kCodes; ++i) {
      const bool is_value = (i & 0x7FFFU) <= format.largest_code();
      const auto code = static_cast<std::uint16_t>(is_value || !values_only ? i : 0);
      std::memcpy(bytes.data() + 128 + 2 * i, &code, sizeof code);
    }
    device_->upload(matrix_, bytes);
    return {matrix_.data(), ElementType::float16x, {static_cast<std::int64_t>(kCodes) / columns, columns}};
  }
  [[nodiscard]] std::vector<float> result(std::size_t count) {
    std::vector<float> values(count);
    device_->synchronize();
    device_->download(std::as_writable_bytes(std::span(values)), result_);
    return values;
  }
  Buffer uploaded(std::span<const std::byte> bytes) {
    Buffer buffer = device_->allocate(bytes.size());
    device_->upload(buffer, bytes);
    return buffer;
  }
  // Rows that take one column each; further rows take none.
  Buffer one_hot_rows(std::int64_t rows, std::int64_t columns, std::int64_t first) {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    for (std::int64_t i = 0; i < rows && first + i < columns; ++i) {
      values[static_cast<std::size_t>(i * columns + first + i)] = 1;
    }
    return uploaded(std::as_bytes(std::span(values)));
  }
  // Of a product of `rows` one-hot rows, which is exact, with all codes in rows of that length.
  void expect_columns(Float16x format, std::int64_t rows, std::int64_t columns, std::int64_t first) {
    const TensorView matrix = matrix_of(format, columns, true);
    const Buffer a = one_hot_rows(rows, columns, first);
    const std::int64_t outputs = matrix.shape[0];
    device_->fill(result_, 0xFF);
    ops::run(dispatcher_,
             ops::Matmul{{a.data(), kFloat, {rows, columns}}, matrix, {result_.data(), kFloat, {rows, outputs}}});
    const std::vector<float> got = result(static_cast<std::size_t>(rows * outputs));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t n = 0; n < outputs; ++n) {
        const auto code = static_cast<std::uint16_t>(n * columns + first + i);
        const bool is_value = first + i < columns && (code & 0x7FFFU) <= format.largest_code();
        ASSERT_EQ(got[static_cast<std::size_t>(i * outputs + n)], is_value ? float_from_16x(format, code) : 0.0F)
            << format.exponent_bits << " bits, bias " << format.bias << ", code " << code;
      }
    }
  }

  std::unique_ptr<Device> device_ = open_device("emulator");
  Dispatcher dispatcher_{*device_, with_cache()};
  Buffer matrix_ = device_->allocate(128 + 2 * kCodes);
  Buffer result_ = device_->allocate(9 * kCodes * sizeof(float));
};

std::vector<Float16x> formats_of_each_width() {
  std::vector<Float16x> formats;
  for (int bits = 4; bits <= 8; ++bits) {
    const Float16x format{bits, 0};
    for (const int bias : {format.least_bias(), (1 << bits) - 1, format.most_bias()}) {
      formats.push_back({bits, std::clamp(bias, format.least_bias(), format.most_bias())});
    }
  }
  return formats;
}

TEST_F(Float16xOpsTest, EveryCodeOfEveryFormatIsGatheredExactly) {
  constexpr std::int64_t kRows = 64;
  std::vector<std::int32_t> rows(kRows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<std::int32_t>(i);
  }
  const Buffer indices = uploaded(std::as_bytes(std::span(rows)));
  const std::int64_t width = static_cast<std::int64_t>(kCodes) / kRows;
  for (int bits = 4; bits <= 8; ++bits) {
    for (Float16x format{bits, bits == 8 ? 127 : 0}; format.is_valid(); ++format.bias) {
      const TensorView table = matrix_of(format, width, false);
      ops::run(dispatcher_,
               ops::Gather{table, {indices.data(), kInt, {kRows}}, {result_.data(), kFloat, {kRows, width}}});
      const std::vector<float> got = result(kCodes);
      for (std::size_t code = 0; code < kCodes; ++code) {
        const float expected = float_from_16x(format, static_cast<std::uint16_t>(code));
        ASSERT_TRUE(std::bit_cast<std::uint32_t>(got[code]) == std::bit_cast<std::uint32_t>(expected) ||
                    (std::isnan(got[code]) && std::isnan(expected)))
            << bits << " bits, bias " << format.bias << ", code " << code;
      }
    }
  }
}

TEST_F(Float16xOpsTest, EveryCodeIsExactInProductsOfOneRow) {
  for (const Float16x& format : formats_of_each_width()) {
    for (std::int64_t column = 0; column < 8; ++column) {
      expect_columns(format, 1, 8, column);
    }
  }
}

TEST_F(Float16xOpsTest, EveryCodeIsExactInProductsOfManyRows) {
  for (const Float16x& format : formats_of_each_width()) {
    expect_columns(format, 9, 8, 0);
  }
}

// Rows that begin at no whole vectors are read element by element.
TEST_F(Float16xOpsTest, CodesOfOddRowsAreExactToo) {
  expect_columns({4, 15}, 1, 1, 0);
  expect_columns({7, 130}, 9, 1, 0);
}

}  // namespace
}  // namespace pascaline::testing
