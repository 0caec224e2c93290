#include "runtime/cpu/vector_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/elements.hpp"

namespace pascaline::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What each path must do by itself, which makes them equal within rounding.
class VectorKernelsTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    kernels_ = GetParam() ? avx2_kernels() : &portable_kernels();
    if (kernels_ == nullptr) {
      GTEST_SKIP() << "this processor has not all of AVX2, FMA and F16C";
    }
  }
  std::vector<float> drawn(std::size_t count, float low = -1, float high = 1) {
    std::vector<float> values(count);
    std::uniform_real_distribution<float> distribution(low, high);
    std::generate(values.begin(), values.end(), [&] { return distribution(generator_); });
    return values;
  }
  const VectorKernels* kernels_ = nullptr;
  std::mt19937 generator_{5};
};

float widened(float value) { return value; }
float widened(Half value) { return float_from_half(static_cast<std::uint16_t>(value)); }
float widened(std::int8_t value) { return value; }
float widened(Bfloat value) { return float_from_bfloat(static_cast<std::uint16_t>(value)); }

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

template <typename Element>
void expect_widens_everything(const ElementKernels<Element>& kernels) {
  std::vector<Element> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = Element{static_cast<std::uint16_t>(i)};
  }
  all.resize(all.size() - 3);  // a tail
  std::vector<float> values(all.size());
  kernels.widen(all.data(), values.data(), static_cast<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(same(values[i], widened(all[i]))) << "bits " << i << ": " << values[i];
  }
}

TEST_P(VectorKernelsTest, EveryNarrowValueIsWidenedExactly) {
  expect_widens_everything(kernels_->float16);
  expect_widens_everything(kernels_->bfloat16);
}

TEST_P(VectorKernelsTest, EveryCodeOfFloat16xIsWidenedExactly) {
  std::vector<Code16x> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = Code16x{static_cast<std::uint16_t>(i)};
  }
  all.resize(all.size() - 3);  // a tail
  std::vector<float> values(all.size());
  for (int exponent_bits = 4; exponent_bits <= 8; ++exponent_bits) {
    for (Float16x format{exponent_bits, exponent_bits == 8 ? 127 : 0}; format.is_valid(); ++format.bias) {
      kernels_->float16x.widen(format, all.data(), values.data(), static_cast<std::int64_t>(all.size()));
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_TRUE(same(values[i], float_from_16x(format, static_cast<std::uint16_t>(i))))
            << "code " << i << " of " << exponent_bits << " bits and bias " << format.bias;
      }
    }
  }
}

// Sums depend neither on how rows are cut nor on what else is asked for, in every width.
TEST_P(VectorKernelsTest, ProductsOfRowsInFloat16x) {
  for (const Float16x format :
       {Float16x{4, 15}, Float16x{5, 31}, Float16x{6, 63}, Float16x{7, 127}, Float16x{8, 127}}) {
    for (const auto& [count, vectors, depth] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {3, 2, 7}, {4, 1, 8}, {5, 3, 9}, {11, 5, 31}, {2, 9, 1000}}) {
      const std::int64_t stride = depth + 3;
      const std::vector<float> numbers = drawn(static_cast<std::size_t>((count - 1) * stride + depth));
      std::vector<Code16x> rows(numbers.size());
      to_float16x(format, numbers, std::as_writable_bytes(std::span(rows)));
      const std::vector<float> with = drawn(static_cast<std::size_t>((vectors - 1) * stride + depth));
      std::vector<float> sums(static_cast<std::size_t>(vectors * count), kNan);
      kernels_->float16x.dot({rows.data(), stride, count, depth, {format}}, {with.data(), stride, vectors, depth},
                             {sums.data(), count});
      for (std::int64_t i = 0; i < vectors; ++i) {
        for (std::int64_t r = 0; r < count; ++r) {
          double expected = 0;
          for (std::int64_t d = 0; d < depth; ++d) {
            const Code16x code = rows[static_cast<std::size_t>(r * stride + d)];
            expected += static_cast<double>(float_from_16x(format, static_cast<std::uint16_t>(code))) *
                        static_cast<double>(with[static_cast<std::size_t>(i * stride + d)]);
          }
          const float sum = sums[static_cast<std::size_t>(i * count + r)];
          ASSERT_NEAR(sum, expected, 1e-6 * std::sqrt(static_cast<double>(depth)) + 1e-7) << i << "," << r;
          float alone = kNan;
          kernels_->float16x.dot({rows.data() + r * stride, stride, 1, depth, {format}},
                                 {with.data() + i * stride, stride, 1, depth}, {&alone, 1});
          ASSERT_TRUE(same(alone, sum)) << "a product depends on its neighbours";
        }
      }
    }
  }
}

template <typename Element>
void expect_narrows(const ElementKernels<Element>& kernels, const std::vector<float>& values,
                    std::uint16_t (*expected)(float)) {
  std::vector<Element> narrow(values.size());
  kernels.narrow(values.data(), narrow.data(), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(same(widened(narrow[i]), widened(Element{expected(values[i])})))
        << std::hexfloat << values[i] << " became " << widened(narrow[i]);
  }
}

TEST_P(VectorKernelsTest, Int8IsWidenedExactlyAndNarrowedToTheNearest) {
  std::vector<std::int8_t> all(256 - 3);  // a tail
  std::vector<float> values;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::int8_t>(static_cast<int>(i) - 128);
  }
  std::vector<float> wide(all.size());
  kernels_->int8.widen(all.data(), wide.data(), static_cast<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(wide[i], static_cast<float>(all[i]));
  }
  for (int i = -127 * 8; i <= 127 * 8; ++i) {
    values.push_back(static_cast<float>(i) / 8);
  }
  std::vector<std::int8_t> narrow(values.size());
  kernels_->int8.narrow(values.data(), narrow.data(), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(static_cast<float>(narrow[i]), std::nearbyint(values[i])) << values[i];
  }
}

TEST_P(VectorKernelsTest, ValuesAreNarrowedToTheNearest) {
  std::vector<float> values{0.0F, -0.0F, 65519.0F, 65520.0F, -65520.0F, 0x1p-25F, 0x1.8p-25F, 3.4e38F, kNan, kInfinity};
  for (int i = 0; i < 100'003; ++i) {
    const auto bits = static_cast<std::uint32_t>(generator_());
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(std::bit_cast<float>((bits & 0xFFFF8000U) | 0x1000U));  // half way, of the other bits none
    values.push_back(std::bit_cast<float>((bits & 0xFFFF0000U) | 0x8000U));
    values.push_back(std::ldexp(static_cast<float>(bits % 4096) + 0.5F, static_cast<int>(bits % 40) - 36));
  }
  expect_narrows(kernels_->float16, values, half_from_float);
  expect_narrows(kernels_->bfloat16, values, bfloat_from_float);
}

// Of one kind of rows: sizes with and without tails, rows apart, in memory that ends with the last element.
template <typename Element>
void expect_products(const ElementKernels<Element>& kernels, const std::vector<float>& numbers) {
  for (const auto& [count, vectors, depth] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {3, 2, 7}, {4, 1, 8}, {5, 3, 9}, {9, 4, 16}, {11, 5, 31}, {2, 9, 1000}}) {
    const std::int64_t stride = depth + 3;
    std::vector<Element> rows(static_cast<std::size_t>((count - 1) * stride + depth));
    kernels.narrow(numbers.data(), rows.data(), static_cast<std::int64_t>(rows.size()));
    const std::vector<float> with(numbers.end() - ((vectors - 1) * stride + depth), numbers.end());
    std::vector<float> sums(static_cast<std::size_t>(vectors * count), kNan);
    kernels.dot({rows.data(), stride, count, depth}, {with.data(), stride, vectors, depth}, {sums.data(), count});
    for (std::int64_t i = 0; i < vectors; ++i) {
      for (std::int64_t r = 0; r < count; ++r) {
        double expected = 0;
        for (std::int64_t d = 0; d < depth; ++d) {
          expected += static_cast<double>(widened(rows[static_cast<std::size_t>(r * stride + d)])) *
                      static_cast<double>(with[static_cast<std::size_t>(i * stride + d)]);
        }
        const float sum = sums[static_cast<std::size_t>(i * count + r)];
        ASSERT_NEAR(sum, expected, 1e-6 * std::sqrt(static_cast<double>(depth)) + 1e-7) << i << "," << r;
        float alone = kNan;
        kernels.dot({rows.data() + r * stride, stride, 1, depth}, {with.data() + i * stride, stride, 1, depth},
                    {&alone, 1});
        ASSERT_TRUE(same(alone, sum)) << "a product depends on its neighbours";
      }
    }
  }
}

TEST_P(VectorKernelsTest, ProductsOfRowsAndVectors) {
  const std::vector<float> numbers = drawn(20'000);
  expect_products(kernels_->float32, numbers);
  expect_products(kernels_->float16, numbers);
  expect_products(kernels_->bfloat16, numbers);
  expect_products(kernels_->int8, numbers);
}

template <typename Element>
void expect_weighted(const ElementKernels<Element>& kernels, const std::vector<float>& numbers) {
  for (const auto& [count, vectors, depth] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {3, 2, 7}, {4, 1, 8}, {5, 3, 20}, {257, 4, 64}}) {
    const std::int64_t stride = depth + 5;
    std::vector<Element> rows(static_cast<std::size_t>((count - 1) * stride + depth));
    kernels.narrow(numbers.data(), rows.data(), static_cast<std::int64_t>(rows.size()));
    const std::vector<float> factors(numbers.end() - vectors * count, numbers.end());
    std::vector<float> sums(static_cast<std::size_t>((vectors - 1) * stride + depth), 0.25F);
    kernels.add_weighted({rows.data(), stride, count, depth}, {factors.data(), count, vectors, count},
                         {sums.data(), stride});
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(sums.size()); ++at) {
      double expected = 0.25;
      for (std::int64_t r = 0; r < count && at % stride < depth; ++r) {
        expected += static_cast<double>(factors[static_cast<std::size_t>(at / stride * count + r)]) *
                    static_cast<double>(widened(rows[static_cast<std::size_t>(r * stride + at % stride)]));
      }
      ASSERT_NEAR(sums[static_cast<std::size_t>(at)], expected, 3e-6 * std::sqrt(static_cast<double>(count))) << at;
    }
  }
}

TEST_P(VectorKernelsTest, WeightedSumsOfRows) {
  const std::vector<float> numbers = drawn(20'000);
  expect_weighted(kernels_->float32, numbers);
  expect_weighted(kernels_->float16, numbers);
  expect_weighted(kernels_->bfloat16, numbers);
  expect_weighted(kernels_->int8, numbers);
}

TEST_P(VectorKernelsTest, ExponentialsOfTheWholeRange) {
  std::vector<float> values;
  for (int i = -110'000; i < 95'000; i += 3) {
    values.push_back(static_cast<float>(i) * 0.001F);
  }
  std::vector<float> results = values;
  kernels_->exp_sum(results.data(), static_cast<std::int64_t>(results.size()), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = std::exp(static_cast<double>(values[i]));
    if (expected > static_cast<double>(std::numeric_limits<float>::max())) {
      ASSERT_EQ(results[i], kInfinity) << values[i];
    } else {
      ASSERT_NEAR(results[i], expected, expected * 2.5e-7 + 1.5e-45) << values[i];
    }
  }
}

TEST_P(VectorKernelsTest, ExponentialsAreShiftedAndSummed) {
  for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 100U}) {
    const std::vector<float> values = drawn(count, -5, 5);
    std::vector<float> results = values;
    const double sum = kernels_->exp_sum(results.data(), static_cast<std::int64_t>(count), 5);
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      expected += static_cast<double>(results[i]);
      EXPECT_NEAR(results[i], std::exp(values[i] - 5), 1e-7);
    }
    EXPECT_NEAR(sum, expected, 1e-12 * static_cast<double>(count));
  }
  std::vector<float> odd{kNan, -kInfinity, kInfinity};
  kernels_->exp_sum(odd.data(), 3, 0);
  EXPECT_TRUE(std::isnan(odd[0]));
  EXPECT_EQ(odd[1], 0);
  EXPECT_EQ(odd[2], kInfinity);
}

TEST_P(VectorKernelsTest, MaximumAndSums) {
  EXPECT_EQ(kernels_->maximum(nullptr, 0), -kInfinity);
  for (std::size_t count = 1; count < 40; ++count) {
    const std::vector<float> values = drawn(count, -7, -3);
    const auto size = static_cast<std::int64_t>(count);
    EXPECT_EQ(kernels_->maximum(values.data(), size), *std::max_element(values.begin(), values.end()));
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      sum += static_cast<double>(value);
      squares += (static_cast<double>(value) + 4) * (static_cast<double>(value) + 4);
    }
    EXPECT_NEAR(kernels_->sum(values.data(), size), sum, 1e-12 * std::abs(sum));
    EXPECT_NEAR(kernels_->squares(values.data(), size, -4), squares, 1e-12 * squares);
  }
}

TEST_P(VectorKernelsTest, Activations) {
  std::vector<float> x = drawn(1003, -12, 12);
  x.insert(x.end(), {0.0F, -0.0F, 100.0F, -100.0F, 1e-20F, 3e4F, -3e4F});
  const std::vector<float> factor = drawn(x.size());
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<float> silu(x.size());
  std::vector<float> gelu = x;
  kernels_->silu_multiply(x.data(), factor.data(), silu.data(), count);
  kernels_->gelu_tanh(gelu.data(), gelu.data(), count);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<double>(x[i]);
    const double expected = value / (1 + std::exp(-value)) * static_cast<double>(factor[i]);
    EXPECT_NEAR(silu[i], expected, 1e-6 * std::abs(expected) + 1e-37) << value;
    const double inner = std::sqrt(2 / std::acos(-1.0)) * (value + 0.044715 * value * value * value);
    EXPECT_NEAR(gelu[i], value / (1 + std::exp(-2 * inner)), 1e-6 * std::abs(value)) << value;
  }
  float odd = kNan;
  kernels_->gelu_tanh(&odd, &odd, 1);
  EXPECT_TRUE(std::isnan(odd));
}

INSTANTIATE_TEST_SUITE_P(Paths, VectorKernelsTest, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Avx2" : "Portable"; });

TEST(VectorKernelsChoiceTest, TheBestIsTaken) {
  EXPECT_EQ(&vector_kernels(), avx2_kernels() != nullptr ? avx2_kernels() : &portable_kernels());
}

}  // namespace
}  // namespace pascaline::cpu
