#include "tests/tuner/kernels/long_sums.hpp"

#include <gtest/gtest.h>

#include "tests/share.hpp"

namespace pascaline::testing {
namespace {

/// The real kernels, on the emulated device, with long sums.
class LongSumsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_device("emulator");

  void expect_right(const std::string& kernel, const LongSums::Sizes& sizes) {
    LongSums(*device_, "", kernel).expect_right(sizes);
  }

  void expect_wrong(const std::string& kernel, const std::string& from, const std::string& to,
                    const LongSums::Sizes& sizes) {
    LongSums sums(*device_, "", kernel);
    ASSERT_NO_FATAL_FAILURE(sums.damage(from, to));
    for (const Trial& trial : sums.run(sizes)) {
      EXPECT_EQ(trial.status, TrialStatus::wrong_result) << trial.problem.text() << ": " << trial.reason;
    }
  }
};

TEST_F(LongSumsTest, RightKernelsAreNotRefused) {
  for (const char* type : share_of<const char*>({"float32", "float16"}, "types")) {
    for (const char* k : share_of<const char*>({"65536", "12288"}, "lengths")) {
      expect_right("matmul", {{"M", "4"}, {"N", "16"}, {"K", k}, {"STORAGE", type}});
      expect_right("matmul", {{"M", "4"}, {"N", "16"}, {"K", k}, {"EPILOGUE", "5"}, {"STORAGE", type}});
      expect_right("matvec", {{"M", "1"}, {"N", "16"}, {"K", k}, {"STORAGE", type}});
      expect_right("attention_decode",
                   {{"HEADS", "1"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "16"}, {"KEYS", k}, {"STORAGE", type}});
      expect_right("rmsnorm", {{"ROWS", "4"}, {"WIDTH", k}, {"STORAGE", type}});
      expect_right("layernorm", {{"ROWS", "4"}, {"WIDTH", k}, {"STORAGE", type}});
      expect_right("softmax", {{"ROWS", "4"}, {"WIDTH", k}, {"STORAGE", type}});
    }
  }
}

TEST_F(LongSumsTest, OneProductLeftOutOfEachSumIsFound) {
  for (const char* type : {"float32", "float16"}) {
    for (const char* k : {"1", "16", "12288", "65536"}) {
      expect_wrong("matmul", "k_of(i) + v < filled", "k_of(i) + v < filled - 1",
                   {{"M", "4"}, {"N", "16"}, {"K", k}, {"STORAGE", type}});
    }
    expect_wrong("matvec", "for (; k < end; k += kStep)", "for (; k < end - 1; k += kStep)",
                 {{"M", "1"}, {"N", "16"}, {"K", "12289"}, {"STORAGE", type}});
  }
}

TEST_F(LongSumsTest, ALastRowLeftOutAndSwappedElementsAreFound) {
  for (const char* type : {"float32", "float16"}) {
    for (const char* k : {"1", "65536"}) {
      expect_wrong("matmul", "if (row < m) {", "if (row < m - 1) {",
                   {{"M", "4"}, {"N", "16"}, {"K", k}, {"STORAGE", type}});
      expect_wrong("matvec", "    c[static_cast<long long>(row_a) * n + column] =",
                   "    c[static_cast<long long>(row_a) * n + (column ^ 1)] =",
                   {{"M", "1"}, {"N", "16"}, {"K", k}, {"STORAGE", type}});
    }
  }
}

TEST_F(LongSumsTest, AVectorLeftOutOfARowIsFound) {
  for (const char* type : {"float32", "float16"}) {
    expect_wrong("rmsnorm", "sum += sum_of_squares(value);",
                 "sum += column + kVector < end ? sum_of_squares(value) : 0;",
                 {{"ROWS", "4"}, {"WIDTH", "65536"}, {"STORAGE", type}});
    expect_wrong("softmax", "sum += exponentiate(value, most);",
                 "const float part = exponentiate(value, most); sum += column + kVector < end ? part : 0.0f;",
                 {{"ROWS", "16"}, {"WIDTH", "65536"}, {"STORAGE", type}});
  }
}

}  // namespace
}  // namespace pascaline::testing
