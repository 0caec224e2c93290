#include <bit>
#include <numeric>

#include "support.hpp"

namespace pascaline::testing {
namespace {

const std::unique_ptr<Device> kDevice = open_emulated_device();

TEST(EmulatorWarp, ShufflesReadTheLaneTheyName) {
  Device& device = *kDevice;
  const Kernel kernel = load(device, "warp.cu", "shuffles");
  const Buffer indexed = device.allocate(128), up = device.allocate(128), down = device.allocate(128);
  const Buffer crossed = device.allocate(128), wide = device.allocate(256), longs = device.allocate(256);
  const Buffer reals = device.allocate(128), unsigneds = device.allocate(128);
  run(device, kernel, {{1, 1, 1}, {32, 1, 1}, 0}, indexed.data(), up.data(), down.data(), crossed.data(), wide.data(),
      longs.data(), reals.data(), unsigneds.data());
  for (int lane = 0; lane < 32; ++lane) {
    const auto i = static_cast<std::size_t>(lane);
    EXPECT_EQ(to_host<int>(device, indexed)[i], (lane / 8 * 8 + (lane + 1) % 8) * 10);
    EXPECT_EQ(to_host<int>(device, up)[i], lane % 16 >= 3 ? lane - 3 : lane);
    EXPECT_EQ(to_host<int>(device, down)[i], lane + 5 < 32 ? lane + 5 : lane);
    EXPECT_EQ(to_host<int>(device, crossed)[i], lane ^ 9);
    EXPECT_EQ(to_host<double>(device, wide)[i], 15.5);
    EXPECT_EQ(to_host<long long>(device, longs)[i], (1LL << 40) + 2);
    EXPECT_EQ(to_host<float>(device, reals)[i], 0.25F * static_cast<float>(lane % 4 < 3 ? lane + 1 : lane));
    EXPECT_EQ(to_host<unsigned>(device, unsigneds)[i], 0x80000000U + static_cast<unsigned>(lane > 0 ? lane - 1 : 0));
  }
}

TEST(EmulatorWarp, VotesCountTheLanesOfTheirMask) {
  Device& device = *kDevice;
  const Kernel kernel = load(device, "warp.cu", "votes");
  const Buffer ballots = device.allocate(128), any = device.allocate(128), every = device.allocate(128);
  const Buffer active = device.allocate(128), halves = device.allocate(128);
  run(device, kernel, {{1, 1, 1}, {32, 1, 1}, 0}, ballots.data(), any.data(), every.data(), active.data(),
      halves.data());
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(to_host<unsigned>(device, ballots)[lane], 0x49249249U);
    EXPECT_EQ(to_host<int>(device, any)[lane], 1);
    EXPECT_EQ(to_host<int>(device, every)[lane], 1);
    EXPECT_EQ(to_host<unsigned>(device, active)[lane], lane % 4 == 1 ? 0x22222222U : 0xddddddddU);
    EXPECT_EQ(to_host<int>(device, halves)[lane], lane < 16 ? static_cast<int>(lane ^ 1U) : 108);
  }
}

TEST(EmulatorWarp, LanesThatLeftAreNotWaitedFor) {
  Device& device = *kDevice;
  const Kernel kernel = load(device, "warp.cu", "ragged_sum");
  for (const int n : {1, 31, 45, 300}) {
    std::vector<float> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 1.0F);
    const Buffer in = to_device(device, values);
    const Buffer out = to_device(device, std::vector<float>{0.0F});
    run(device, kernel, {{5, 1, 1}, {72, 1, 1}, 0}, in.data(), out.data(), n);
    EXPECT_EQ(to_host<float>(device, out)[0], static_cast<float>(n * (n + 1) / 2)) << n;
  }
}

TEST(EmulatorWarp, ALaneMissingFromItsMaskIsAnError) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "warp.cu", "wrong_mask");
  const Buffer out = device->allocate(128);
  try {
    run(*device, kernel, {{1, 1, 1}, {16, 1, 1}, 0}, out.data());
    FAIL() << "no error";
  } catch (const EmulatorError& error) {
    EXPECT_NE(std::string(error.what()).find("mask 0x0000fffe"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("thread (0,0,0) of block (0,0,0)"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace pascaline::testing
