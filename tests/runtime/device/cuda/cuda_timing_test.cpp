#include "tests/runtime/device/cuda/gpu_fixture.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kKernels = R"(
extern "C" __global__ void nothing() {}
extern "C" __global__ void copy(const float4* from, float4* to, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}
extern "C" __global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {}
})";

class CudaTimingTest : public GpuTest {};

TEST_F(CudaTimingTest, LaunchLatencyIsNotMeasured) {
  const Kernel nothing = load(kKernels, "nothing");
  for (const bool cold : {false, true}) {
    const double time_us = median_us(21, cold, nothing, {{1, 1, 1}, {32, 1, 1}, 0});
    EXPECT_GT(time_us, 0);
    EXPECT_LT(time_us, 15) << "cold: " << cold;
  }
}

TEST_F(CudaTimingTest, TimesGrowWithTheWork) {
  const Kernel spin = load(kKernels, "spin");
  const double short_us = median_us(5, false, spin, {{1, 1, 1}, {1, 1, 1}, 0}, 200000LL);
  const double long_us = median_us(5, false, spin, {{1, 1, 1}, {1, 1, 1}, 0}, 2000000LL);
  EXPECT_GT(short_us, 200000 / 4000.0);  // no GPU clocks higher than 4 GHz
  EXPECT_NEAR(long_us / short_us, 10, 2);
}

TEST_F(CudaTimingTest, TheCanaryTakesTheSameTimeAgain) {
  double fastest_us = device_->time_canary_us();
  for (int i = 0; i < 200; ++i) {  // clocks rise
    fastest_us = std::min(fastest_us, device_->time_canary_us());
  }
  EXPECT_GT(fastest_us, 50);
  EXPECT_LT(fastest_us, 500);
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    times.push_back(device_->time_canary_us());
  }
  std::sort(times.begin(), times.end());
  EXPECT_NEAR(times[10], fastest_us, 0.05 * fastest_us);
  RecordProperty("canary_us", std::to_string(times[10]));
}

TEST_F(CudaTimingTest, TheCanaryWorksAfterAReset) {
  EXPECT_GT(device_->time_canary_us(), 0);
  device_->reset();
  EXPECT_GT(device_->time_canary_us(), 0);
}

TEST_F(CudaTimingTest, BandwidthOfACopyIsPlausible) {
  constexpr int kCount = 8 << 20;
  constexpr double kBytes = 2.0 * kCount * 16;
  const Kernel copy = load(kKernels, "copy");
  const Buffer from = device_->allocate(std::size_t{kCount} * 16);
  const Buffer to = device_->allocate(std::size_t{kCount} * 16);
  device_->fill(from, 1);
  const auto blocks = static_cast<std::uint32_t>(device_->info().limits.sm_count * 8);
  const double time_us = median_us(9, true, copy, {{blocks, 1, 1}, {256, 1, 1}, 0}, from.data(), to.data(), kCount);
  const double gigabytes_per_second = kBytes / time_us / 1000.0;
  EXPECT_GT(gigabytes_per_second, 20);
  EXPECT_LT(gigabytes_per_second, 9000);
  RecordProperty("gigabytes_per_second", std::to_string(gigabytes_per_second));
}

TEST_F(CudaTimingTest, ColdLaunchesPayForTheMemory) {
  const auto bytes = static_cast<std::size_t>(device_->info().limits.l2_bytes / 8 / 16 * 16);
  const Kernel copy = load(kKernels, "copy");
  const Buffer from = device_->allocate(bytes);
  const Buffer to = device_->allocate(bytes);
  device_->fill(from, 1);
  const auto blocks = static_cast<std::uint32_t>(device_->info().limits.sm_count * 4);
  const Geometry geometry{{blocks, 1, 1}, {256, 1, 1}, 0};
  const int count = static_cast<int>(bytes / 16);
  const double warm_us = median_us(21, false, copy, geometry, from.data(), to.data(), count);
  const double cold_us = median_us(21, true, copy, geometry, from.data(), to.data(), count);
  EXPECT_GT(cold_us, warm_us);
}

}  // namespace
}  // namespace pascaline::testing
