#include "cli/model/model_work.hpp"

#include <gtest/gtest.h>

#include "core/util/paths.hpp"

namespace pascaline::cli {
namespace {

PassWork shipped_work(const std::string& kernel, const std::vector<std::pair<std::string, std::string>>& values,
                      std::int64_t cached = 0) {
  const Space space = Space::load(data_folder("search_spaces") / (kernel + ".json"));
  return work_of(space, space.problem(values), DeviceLimits{}, cached);
}

TEST(ModelWork, IsWhatTheSearchSpaceSays) {
  const PassWork product = shipped_work("matvec", {{"M", "1"}, {"N", "2048"}, {"K", "6144"}, {"WEIGHT", "float16"}});
  EXPECT_DOUBLE_EQ(product.flops, 2.0 * 2048 * 6144);
  EXPECT_DOUBLE_EQ(product.bytes, 2.0 * 2048 * 6144 + 4.0 * (2048 + 6144));
}

TEST(ModelWork, ProductsOfQuantizedWeightsAreOfInt8) {
  const PassWork product = shipped_work("matmul_q", {{"M", "4"}, {"N", "64"}, {"K", "256"}, {"WEIGHT", "q8_0"}});
  EXPECT_DOUBLE_EQ(product.flops, 2.0 * 4 * 64 * 256);
  EXPECT_DOUBLE_EQ(product.int8_ops, product.flops);
  EXPECT_DOUBLE_EQ(shipped_work("matmul", {{"M", "4"}, {"N", "64"}, {"K", "256"}}).int8_ops, 0);
}

TEST(ModelWork, DecodingReadsWhatTheCacheHolds) {
  const auto decode = [](const char* room, std::int64_t cached) {
    return shipped_work("attention_decode", {{"HEADS", "16"}, {"KV_HEADS", "8"}, {"HEAD_DIM", "128"}, {"KEYS", room}},
                        cached);
  };
  const PassWork half_full = decode("1024", 512);
  EXPECT_DOUBLE_EQ(half_full.flops, 4.0 * 16 * 128 * 512);
  EXPECT_DOUBLE_EQ(half_full.bytes, decode("512", 512).bytes);
  EXPECT_DOUBLE_EQ(decode("1024", 4096).flops, 2 * half_full.flops) << "no more than there is room for";
}

TEST(ModelWork, PeakIsThatOfTheHighestClock) {
  DeviceInfo device;
  device.kind = DeviceKind::cuda;
  device.architecture = "sm_61";
  device.limits.sm_count = 20;
  Sensors sensors;
  EXPECT_FALSE(peak_flops(device, sensors)) << "the card does not tell its clock";
  sensors.sm_clock_mhz = 139;  // at rest
  sensors.sm_clock_limit_mhz = 1911;
  ASSERT_TRUE(peak_flops(device, sensors));
  EXPECT_DOUBLE_EQ(*peak_flops(device, sensors), 20 * 128 * 2 * 1911e6);
  EXPECT_DOUBLE_EQ(*peak_int8_ops(device, sensors), 20 * 128 * 8 * 1911e6) << "four times as many";
  device.architecture = "sm_80";
  EXPECT_FALSE(peak_int8_ops(device, sensors)) << "not known";
  EXPECT_DOUBLE_EQ(*peak_flops(device, sensors), 20 * 64 * 2 * 1911e6);
  device.architecture = "sm_999";
  EXPECT_FALSE(peak_flops(device, sensors));
  device.architecture = "sm_61";
  device.kind = DeviceKind::emulator;
  EXPECT_FALSE(peak_flops(device, sensors));
}

}  // namespace
}  // namespace pascaline::cli
