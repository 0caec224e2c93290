#include <numeric>

#include "runtime/device/emulator/emulated_module.hpp"
#include "runtime/device/emulator/grid_runner.hpp"
#include "support.hpp"

namespace pascaline::testing {
namespace {

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(EmulatorBlock, StaticSharedMemoryIsOnePerBlock) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "static_shared");
  EXPECT_EQ(kernel.resources().static_shared_bytes, 64 * 4 + 16) << "also what is only written";
  const Buffer in = to_device(*device, ramp(64 * 500));
  const Buffer out = device->allocate(in.bytes());
  run(*device, kernel, {{500, 1, 1}, {64, 1, 1}, 0}, in.data(), out.data());
  const auto values = to_host<float>(*device, out);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i / 64 * 64 + 63 - i % 64));
  }
}

TEST(EmulatorBlock, DynamicSharedMemoryOfFileAndFunctionIsTheSame) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "dynamic_shared");
  const Buffer in = to_device(*device, ramp(100 * 96));
  const Buffer out = device->allocate(in.bytes());
  run(*device, kernel, {{100, 1, 1}, {96, 1, 1}, 96 * 4}, in.data(), out.data());
  const auto values = to_host<float>(*device, out);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i / 96 * 96 + 95 - i % 96) + 1000.0F);
  }
  const Kernel matrix = load(*device, "block.cu", "matrix_shared");
  const Buffer transposed = device->allocate(64 * 4);
  run(*device, matrix, {{1, 1, 1}, {8, 8, 1}, 256}, transposed.data());
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(to_host<int>(*device, transposed)[i], static_cast<int>(i % 8 * 8 + i / 8));
  }
}

TEST(EmulatorBlock, SharedMemoryBeginsWithWhatNoKernelCanUse) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "unwritten_shared");
  const Buffer in_function = device->allocate(50 * 33 * 4);
  const Buffer of_launch = device->allocate(50 * 33 * 4);
  const auto look = [&] {
    run(*device, kernel, {{50, 1, 1}, {33, 1, 1}, 33 * 4}, in_function.data(), of_launch.data());
    EXPECT_EQ(to_host<int>(*device, in_function), to_host<int>(*device, of_launch));
    return to_host<int>(*device, in_function);
  };
  const std::vector<int> first = look();
  const std::vector<int> second = look();
  bool some_nan = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(first[i] >= 0x7F000000 || first[i] <= -4063295) << "no index of an array: " << first[i];
    EXPECT_NE(first[i], second[i]);
    EXPECT_NE(first[i], first[(i + 33) % first.size()]) << "in the next block";
    some_nan = some_nan || first[i] == 0x7FFFFFFF;
  }
  EXPECT_TRUE(some_nan);
}

TEST(EmulatorBlock, SharedMemoryThatNoCodeWritesIsNotZero) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "never_written_shared");
  const Buffer out = device->allocate(8 * 4);
  run(*device, kernel, {{8, 1, 1}, {1, 1, 1}, 0}, out.data(), 1);
  for (const int value : to_host<int>(*device, out)) {
    EXPECT_NE(value, 0);
  }
}

// What a warp does to others without a barrier shows only where they are not side by side.
TEST(EmulatorBlock, WarpsOfShuffledBlocksRunFarAhead) {
  const CompileResult compiled = compile(kernel_source("block.cu"), "order_of_warps");
  ASSERT_TRUE(compiled.ok) << compiled.log;
  const EmulatedModule code(compiled.binary.code, "order_of_warps");
  const auto run_with = [&](std::optional<std::uint64_t> shuffle) {
    std::vector<int> order(4 * 3, -1);
    int next = 0;
    int* to_order = order.data();
    int* to_next = &next;
    const std::vector<void*> arguments{&to_order, &to_next};
    EXPECT_EQ(GridRunner(1, shuffle).run({&code.entry(), code.shared(), {{1, 1, 1}, {128, 1, 1}, 0}, arguments}),
              std::nullopt);
    return order;
  };
  EXPECT_EQ(run_with(std::nullopt), (std::vector<int>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(run_with(1), (std::vector<int>{9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(run_with(2), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(EmulatorBlock, BarriersWaitOnlyForThreadsThatHaveNotLeft) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "leaving");
  const Buffer in = to_device(*device, std::vector<int>(256, 3));
  const Buffer out = device->allocate(4);
  run(*device, kernel, {{1, 1, 1}, {256, 1, 1}, 0}, in.data(), out.data());
  EXPECT_EQ(to_host<int>(*device, out)[0], 768);
}

TEST(EmulatorBlock, BarriersCountPredicates) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "counts");
  const Buffer count = device->allocate(100 * 4), every = device->allocate(100 * 4), some = device->allocate(100 * 4);
  run(*device, kernel, {{1, 1, 1}, {100, 1, 1}, 0}, count.data(), every.data(), some.data());
  EXPECT_EQ(to_host<int>(*device, count), std::vector<int>(100, 20));
  EXPECT_EQ(to_host<int>(*device, every), std::vector<int>(100, 1));
  EXPECT_EQ(to_host<int>(*device, some), std::vector<int>(100, 1));
}

TEST(EmulatorBlock, RaggedGridsOfThreeDimensionsCoverEveryElement) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "indices");
  constexpr int kWidth = 37, kHeight = 11;
  const Buffer out = device->allocate(kWidth * kHeight * 6 * 4);
  device->fill(out, 0);
  run(*device, kernel, {{5, 3, 3}, {8, 4, 2}, 0}, out.data(), kWidth, kHeight);
  const auto values = to_host<unsigned>(*device, out);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto z = static_cast<unsigned>(i / (kWidth * kHeight));
    ASSERT_EQ(values[i], 50300 + z / 2 * 10 + z % 2);
  }
}

TEST(EmulatorBlock, ADeadlockIsReportedAndTheDeviceWorksAfterReset) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "deadlock");
  const Kernel fine = load(*device, "block.cu", "many_barriers");
  const Buffer out = device->allocate(1024 * 4);
  try {
    run(*device, kernel, {{4, 1, 1}, {32, 1, 1}, 0}, out.data());
    FAIL() << "no error";
  } catch (const EmulatorError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("barrier deadlock in block ("), std::string::npos) << text;
    EXPECT_NE(text.find("16 threads wait at __syncthreads, the first is (0,0,0)"), std::string::npos) << text;
    EXPECT_NE(text.find("the first is (16,0,0) in a shuffle with mask 0xffffffff"), std::string::npos) << text;
  }
  EXPECT_THROW(run(*device, fine, {{1, 1, 1}, {32, 1, 1}, 0}, out.data(), 1), EmulatorError);
  device->reset();
  run(*device, fine, {{8, 1, 1}, {1024, 1, 1}, 0}, out.data(), 20);
  EXPECT_EQ(to_host<int>(*device, out), std::vector<int>(1024, 20));
}

TEST(EmulatorBlock, AssertAndTrapEndTheLaunchWithTheirPlace) {
  const auto device = open_emulated_device();
  const Buffer out = device->allocate(4);
  try {
    run(*device, load(*device, "block.cu", "asserting"), {{1, 1, 1}, {32, 1, 1}, 0}, out.data());
    FAIL() << "no error";
  } catch (const EmulatorError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("block.cu:"), std::string::npos) << text;
    EXPECT_NE(text.find("assertion failed: out == nullptr || threadIdx.x < 5"), std::string::npos) << text;
    EXPECT_NE(text.find("thread (5,0,0)"), std::string::npos) << text;
  }
  device->reset();
  EXPECT_THROW(run(*device, load(*device, "block.cu", "trapping"), {{4, 1, 1}, {1, 1, 1}, 0}, out.data()),
               EmulatorError);
}

}  // namespace
}  // namespace pascaline::testing
