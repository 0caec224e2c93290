#include <gtest/gtest.h>

#include "runtime/device/cuda/cuda_device.hpp"
#include "tests/tuner/kernels/long_sums.hpp"

namespace pascaline::testing {
namespace {

/// The type of the operands, and the target.
class LongSumsGpuTest : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::unique_ptr<Device> device_;

  void SetUp() override {
    std::string note;
    if (list_cuda_devices(&note).empty()) {
      GTEST_SKIP() << "no CUDA device: " << note;
    }
    device_ = open_device("cuda:0");
  }
  void expect_right(const std::string& kernel, LongSums::Sizes sizes, std::size_t drawn) {
    const auto& [type, target] = GetParam();
    sizes.emplace_back("STORAGE", type);
    LongSums(*device_, target, kernel).expect_right(sizes, drawn);
  }
};

TEST_P(LongSumsGpuTest, ProductsOfLongRowsAreNotRefused) {
  for (const char* k : {"12288", "16384", "32768", "65536"}) {
    expect_right("matmul", {{"M", "64"}, {"N", "256"}, {"K", k}}, 4);
    expect_right("matmul", {{"M", "16"}, {"N", "256"}, {"K", k}, {"EPILOGUE", "5"}}, 2);
    expect_right("matvec", {{"M", "1"}, {"N", "512"}, {"K", k}}, 4);
    expect_right("matvec", {{"M", "8"}, {"N", "64"}, {"K", k}}, 2);
  }
}

TEST_P(LongSumsGpuTest, LargeProductsAreNotRefused) {
  expect_right("matmul", {{"M", "512"}, {"N", "2048"}, {"K", "12288"}}, 6);
  expect_right("matmul", {{"M", "1024"}, {"N", "4096"}, {"K", "12288"}}, 2);
  expect_right("matmul", {{"M", "1024"}, {"N", "12288"}, {"K", "2048"}, {"EPILOGUE", "5"}}, 2);
}

TEST_P(LongSumsGpuTest, LongRowsAndContextsAreNotRefused) {
  for (const char* width : {"12288", "65536"}) {
    expect_right("rmsnorm", {{"ROWS", "512"}, {"WIDTH", width}}, 4);
    expect_right("layernorm", {{"ROWS", "512"}, {"WIDTH", width}}, 4);
    expect_right("softmax", {{"ROWS", "512"}, {"WIDTH", width}}, 4);
    expect_right("attention_decode", {{"HEADS", "16"}, {"KV_HEADS", "8"}, {"HEAD_DIM", "128"}, {"KEYS", width}}, 4);
    expect_right("attention_prefill",
                 {{"HEADS", "2"}, {"KV_HEADS", "1"}, {"HEAD_DIM", "128"}, {"QUERIES", "64"}, {"KEYS", width}}, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LongSumsGpuTest,
                         ::testing::Combine(::testing::Values("float32", "float16"), ::testing::Values("", "sm_61")),
                         [](const auto& tested) {
                           const std::string& target = std::get<1>(tested.param);
                           return std::get<0>(tested.param) + "_" + (target.empty() ? "native" : target);
                         });

}  // namespace
}  // namespace pascaline::testing
