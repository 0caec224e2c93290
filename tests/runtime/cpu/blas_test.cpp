#include "runtime/cpu/blas.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace pascaline::cpu {
namespace {

std::vector<float> ramp(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::sin(static_cast<float>(i) * step);
  }
  return values;
}

// Rows lie 3 elements farther apart than they are long.
void check_product(bool transposed) {
  constexpr std::int64_t kM = 13;
  constexpr std::int64_t kN = 21;
  constexpr std::int64_t kK = 37;
  const std::vector<float> a = ramp(kM * (kK + 3), 0.3F);
  const std::int64_t b_stride = (transposed ? kK : kN) + 3;
  const std::vector<float> b = ramp(static_cast<std::size_t>((transposed ? kN : kK) * b_stride), 0.7F);
  std::vector<float> c(kM * (kN + 3), 2.0F);
  const Product product{kM, kN, kK, a.data(), kK + 3, b.data(), b_stride, c.data(), kN + 3, 0.5F, 3.0F};
  transposed ? Blas::get().multiply_transposed(product) : Blas::get().multiply(product);
  for (std::int64_t i = 0; i < kM; ++i) {
    for (std::int64_t j = 0; j < kN + 3; ++j) {
      double expected = 2;
      if (j < kN) {
        double sum = 0;
        for (std::int64_t k = 0; k < kK; ++k) {
          const float other = b[static_cast<std::size_t>(transposed ? j * b_stride + k : k * b_stride + j)];
          sum += static_cast<double>(a[static_cast<std::size_t>(i * (kK + 3) + k)]) * static_cast<double>(other);
        }
        expected = 0.5 * sum + 6;
      }
      EXPECT_NEAR(c[static_cast<std::size_t>(i * (kN + 3) + j)], expected, 1e-5) << i << "," << j;
    }
  }
}

TEST(BlasTest, Multiplies) { check_product(false); }
TEST(BlasTest, MultipliesTransposed) { check_product(true); }

TEST(BlasTest, SeveralThreadsMayMultiply) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        check_product(round % 2 == 0);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(BlasTest, WithoutItTheErrorSaysWhatToInstall) {
  try {
    const Blas blas("libnosuchblas.so.0");
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("libnosuchblas.so.0"), std::string::npos) << message;
    EXPECT_NE(message.find("libopenblas0-pthread"), std::string::npos) << message;
  }
}

TEST(BlasTest, AnotherLibraryIsRefused) {
  try {
    const Blas blas("libm.so.6");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cblas_sgemm"), std::string::npos) << error.what();
  }
}

TEST(BlasTest, SaysWhatItIs) { EXPECT_NE(Blas::get().config().find("OpenBLAS"), std::string::npos); }

}  // namespace
}  // namespace pascaline::cpu
