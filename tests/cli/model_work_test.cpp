#include "cli/model/model_work.hpp"

#include <gtest/gtest.h>

namespace pascaline::cli {
namespace {

// Sizes of Qwen3-VL-2B.
ModelConfig two_billion() {
  ModelConfig config;
  config.text.hidden = 2048;
  config.text.layers = 28;
  config.text.heads = 16;
  config.text.kv_heads = 8;
  config.text.head_dim = 128;
  config.text.intermediate = 6144;
  config.text.vocab = 151936;
  VisionConfig& vision = config.vision.emplace();
  vision.hidden = 1024;
  vision.depth = 24;
  vision.heads = 16;
  vision.intermediate = 4096;
  vision.in_channels = 3;
  vision.patch = 16;
  vision.temporal_patch = 2;
  vision.merge = 2;
  vision.out_hidden = 2048;
  vision.deepstack_indexes = {5, 11, 17};
  return config;
}

TEST(ModelWork, IsThatOfTheModelsMatricesAndAttention) {
  const ModelConfig config = two_billion();
  EXPECT_DOUBLE_EQ(prefill_work(config, 512).flops, 2818572288.0 * 512 + 114688.0 * 512 * 513 + 622329856.0);
  ModelOptions options;
  options.weights = ElementType::float16;
  options.cache = ElementType::float32;
  const PassWork decode = decode_work(config, options, 511);
  EXPECT_DOUBLE_EQ(decode.flops, 3440902144.0 + 229376.0 * 512);
  EXPECT_DOUBLE_EQ(decode.bytes, 3440902144.0 + 229376.0 * 512);
  EXPECT_NEAR(image_work(*config.vision, 256).flops, 174.8e9, 0.6e9);
  EXPECT_NEAR(image_work(*config.vision, 4096).flops, 4342.2e9, 0.01 * 4342.2e9);
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
  device.architecture = "sm_80";
  EXPECT_DOUBLE_EQ(*peak_flops(device, sensors), 20 * 64 * 2 * 1911e6);
  device.architecture = "sm_999";
  EXPECT_FALSE(peak_flops(device, sensors));
  device.architecture = "sm_61";
  device.kind = DeviceKind::emulator;
  EXPECT_FALSE(peak_flops(device, sensors));
}

}  // namespace
}  // namespace pascaline::cli
