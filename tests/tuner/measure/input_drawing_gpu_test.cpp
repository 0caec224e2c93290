#include <gtest/gtest.h>

#include "runtime/device/cuda/cuda_device.hpp"
#include "tests/tuner/drawn_matrices.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// With the device's own code, and with PTX of sm_61 that the driver translates.
class InputDrawingGpuTest : public ::testing::TestWithParam<const char*> {};

TEST_P(InputDrawingGpuTest, TheDeviceDrawsWhatTheProcessorDraws) {
  std::string note;
  if (list_cuda_devices(&note).empty()) {
    GTEST_SKIP() << "no CUDA device: " << note;
  }
  const auto device = open_cuda_device(0);
  DispatcherOptions options;
  options.cache = test_cache();
  options.target = GetParam();
  InputDrawing drawing(*device, drawing_code(device->info(), options));
  InputDrawing uploading(*device, std::nullopt);
  for (const DrawnMatrix& matrix : drawn_matrices(19)) {
    expect_drawn_alike(*device, drawing, matrix);
    expect_drawn_alike(*device, uploading, matrix);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, InputDrawingGpuTest, ::testing::Values("", "sm_61"));

}  // namespace
}  // namespace pascaline::testing
