#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/device/cuda/cuda_device.hpp"
#include "runtime/device/device.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {

/// Opens the first CUDA device, or skips the test saying why there is none.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string note;
    if (list_cuda_devices(&note).empty()) {
      GTEST_SKIP() << "no CUDA device: " << note;
    }
    device_ = open_device("cuda:0");
    if (nvrtc_for(device_->info().architecture).empty()) {
      GTEST_SKIP() << "no NVRTC compiles for " << device_->info().architecture;
    }
  }

  /// Compiles for `target` ("": the device itself) without loading.
  [[nodiscard]] Binary compile(const std::string& text, const std::string& function, const std::string& target = {},
                               std::vector<std::string> options = {}) const {
    const CompileTarget plan = compile_target(device_->info(), target);
    const KernelSource source = source_of(text);
    CompileRequest request = request_for(source, function, plan.architecture, std::move(options));
    request.kind = plan.kind;
    CompileResult result = Toolchain::find(plan.architecture).compile(request);
    EXPECT_TRUE(result.ok) << result.log;
    return std::move(result.binary);
  }
  [[nodiscard]] Kernel load(const std::string& text, const std::string& function, const std::string& target = {},
                            std::vector<std::string> options = {}) {
    return device_->load(compile(text, function, target, std::move(options)));
  }
  /// Launches with these argument values.
  template <typename... Values>
  void launch(const Kernel& kernel, const Geometry& geometry, Values... values) {
    void* arguments[] = {static_cast<void*>(&values)..., nullptr};
    device_->launch(kernel, geometry, std::span<void* const>(arguments, sizeof...(values)));
  }
  /// Median of `rounds` timed launches.
  template <typename... Values>
  double median_us(int rounds, bool cold, const Kernel& kernel, const Geometry& geometry, Values... values) {
    void* arguments[] = {static_cast<void*>(&values)..., nullptr};
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      times.push_back(
          device_->time_launch_us(kernel, geometry, std::span<void* const>(arguments, sizeof...(values)), cold));
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[static_cast<std::size_t>(rounds) / 2];
  }
  /// Uploads ones, doubles them on the device, and says whether twos came back.
  [[nodiscard]] bool device_works() {
    constexpr int kCount = 1000;
    const Kernel kernel = load(kDouble, "twice");
    const std::vector<float> ones(kCount, 1.0F);
    const Buffer buffer = device_->allocate(kCount * sizeof(float));
    device_->upload(buffer, std::as_bytes(std::span(ones)));
    launch(kernel, {{4, 1, 1}, {256, 1, 1}, 0}, buffer.data(), kCount);
    std::vector<float> back(kCount);
    device_->download(std::as_writable_bytes(std::span(back)), buffer);
    return std::all_of(back.begin(), back.end(), [](float x) { return x == 2.0F; }) && device_->guards_intact(buffer);
  }

  static constexpr const char* kDouble = R"(
extern "C" __global__ void twice(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.0f;
})";

  std::unique_ptr<Device> device_;
};

}  // namespace pascaline::testing
