#include "core/error.hpp"
#include "tests/runtime/device/cuda/gpu_fixture.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kFaults = R"(
extern "C" __global__ void illegal(int* p) { p[threadIdx.x] = 1; }
extern "C" __global__ void misaligned(char* p) { *reinterpret_cast<double*>(p + 1) = 1.0; }
extern "C" __global__ void trap() { asm volatile("trap;"); })";

class CudaResetTest : public GpuTest {
 protected:
  /// The CUresult that waiting for the faulty launch gives, 0 if none.
  template <typename... Values>
  int fault(const char* function, Values... values) {
    const Kernel kernel = load(kFaults, function);
    try {
      launch(kernel, {{1, 1, 1}, {32, 1, 1}, 0}, values...);
      device_->synchronize();
    } catch (const CudaError& error) {
      EXPECT_NE(std::string(error.what()).find("reset"), std::string::npos) << error.what();
      return error.code();
    }
    return 0;
  }

  void expect_honest_reset() {
    try {
      device_->reset();
    } catch (const DeviceLostError& error) {
      EXPECT_THROW((void)device_->allocate(16), CudaError) << error.what();
      return;
    }
    EXPECT_TRUE(device_works());
  }
};

// Whether the process gets the device back is the driver's choice; what must not happen is a device that pretends.
// Each fault has a test, and so a process, of its own.
TEST_F(CudaResetTest, IllegalAddressIsReportedAndResetIsHonest) {
  const Buffer before = device_->allocate(1024);
  EXPECT_EQ(fault("illegal", reinterpret_cast<void*>(0x10)), 700);
  EXPECT_THROW(device_->synchronize(), CudaError);
  EXPECT_THROW((void)device_->allocate(16), CudaError);
  expect_honest_reset();
}

TEST_F(CudaResetTest, MisalignedAddressIsReportedAndResetIsHonest) {
  const Buffer buffer = device_->allocate(1024);
  EXPECT_EQ(fault("misaligned", buffer.data()), 716);
  expect_honest_reset();
}

TEST_F(CudaResetTest, TrapIsReportedAndResetIsHonest) {
  EXPECT_NE(fault("trap"), 0);
  expect_honest_reset();
}

TEST_F(CudaResetTest, FaultInATimedLaunchThrows) {
  const Kernel kernel = load(kFaults, "illegal");
  EXPECT_THROW((void)median_us(1, true, kernel, {{1, 1, 1}, {32, 1, 1}, 0}, reinterpret_cast<void*>(0x10)), CudaError);
  expect_honest_reset();
}

TEST_F(CudaResetTest, WhatWasMadeBeforeIsRefusedAndHarmless) {
  Buffer old_buffer = device_->allocate(1 << 20U);
  Kernel old_kernel = load(kDouble, "twice");
  device_->reset();
  EXPECT_THROW(device_->fill(old_buffer, 1), CudaError);
  EXPECT_THROW((void)device_->guards_intact(old_buffer), CudaError);
  EXPECT_THROW(launch(old_kernel, {{1, 1, 1}, {32, 1, 1}, 0}, old_buffer.data(), 4), CudaError);

  // The driver likes to give the same addresses again: dropping the old ones must not take the new ones along.
  const Buffer new_buffer = device_->allocate(1 << 20U);
  const Kernel new_kernel = load(kDouble, "twice");
  old_buffer = Buffer();
  old_kernel = Kernel();
  device_->fill(new_buffer, 0);
  launch(new_kernel, {{1, 1, 1}, {32, 1, 1}, 0}, new_buffer.data(), 4);
  EXPECT_NO_THROW(device_->synchronize());
  EXPECT_TRUE(device_->guards_intact(new_buffer));
  EXPECT_TRUE(device_works());
}

TEST_F(CudaResetTest, MemoryIsGivenBack) {
  const std::size_t third = device_->info().memory_bytes / 3;
  for (int round = 0; round < 4; ++round) {
    const Buffer buffer = device_->allocate(third);
    EXPECT_NE(buffer.data(), nullptr);
    if (round % 2 == 1) {
      device_->reset();
    }
  }
  device_ = nullptr;
  device_ = open_device("cuda:0");
  EXPECT_TRUE(device_works());
}

}  // namespace
}  // namespace pascaline::testing
