#include <gtest/gtest.h>

#include "runtime/device/cuda/cuda_device.hpp"
#include "tests/tuner/kernels/ragged_sweep.hpp"

namespace pascaline::testing {
namespace {

/// A kernel, the type its first type variable stands for, and the target.
class RaggedGpuTest : public ::testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

TEST_P(RaggedGpuTest, AgreesWithTheReference) {
  std::string note;
  if (list_cuda_devices(&note).empty()) {
    GTEST_SKIP() << "no CUDA device: " << note;
  }
  const auto device = open_device("cuda:0");
  const auto& [kernel, storage, target] = GetParam();
  RaggedSweep(*device, target, kernel, *element_type_from(storage), {40, 24, 72, 6}).run();
}

INSTANTIATE_TEST_SUITE_P(Kernels, RaggedGpuTest,
                         ::testing::Combine(::testing::ValuesIn(RaggedShapes::kernels()),
                                            ::testing::Values("float32", "float16"), ::testing::Values("", "sm_61")),
                         [](const auto& tested) {
                           const std::string& target = std::get<2>(tested.param);
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param) + "_" +
                                  (target.empty() ? "native" : target);
                         });

}  // namespace
}  // namespace pascaline::testing
