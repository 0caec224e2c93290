#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "runtime/device/cuda/cuda_device.hpp"
#include "tests/tuner/kernels/ragged_sweep.hpp"

namespace pascaline::testing {
namespace {

/// A kernel and the target.
class RaggedGpuTest : public ::testing::TestWithParam<std::tuple<RaggedKernel, std::string>> {};

TEST_P(RaggedGpuTest, AgreesWithTheReference) {
  std::string note;
  if (list_cuda_devices(&note).empty()) {
    GTEST_SKIP() << "no CUDA device: " << note;
  }
  const auto device = open_device("cuda:0");
  const auto& [kernel, target] = GetParam();
  RaggedSweep(*device, target, RaggedSource::shipped(kernel), {40, 24, 40, 4}).run();
}

INSTANTIATE_TEST_SUITE_P(Kernels, RaggedGpuTest,
                         ::testing::Combine(::testing::ValuesIn(RaggedShapes::kernels(data_folder("search_spaces"))),
                                            ::testing::Values("", "sm_61")),
                         [](const auto& tested) {
                           const std::string& target = std::get<1>(tested.param);
                           return std::get<0>(tested.param).text() + "_" + (target.empty() ? "native" : target);
                         });

}  // namespace
}  // namespace pascaline::testing
