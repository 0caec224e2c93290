#include "runtime/model/memory_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "runtime/model/model.hpp"
#include "tests/runtime/model/golden.hpp"
#include "tests/tuner/measure/relay_device.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

// The emulated device with little memory.
class ShortDevice : public RelayDevice {
 public:
  explicit ShortDevice(std::uint64_t bytes) : memory_(state_, bytes) {}
  [[nodiscard]] DeviceMemory& memory() noexcept override { return memory_; }

 private:
  EmulatedState state_;
  EmulatedMemory memory_;
};

class MemoryPlanTest : public ::testing::Test {
 protected:
  ModelConfig config_ = golden_model_a().config;
  ModelOptions options_;

  MemoryPlanTest() {
    options_.weights = options_.cache = ElementType::float32;
    options_.context = 2048;
    options_.chunk = 512;
  }
  [[nodiscard]] std::uint64_t needed() const {
    ShortDevice device(std::uint64_t{1} << 30);
    std::uint64_t sum = 0;
    for (const MemoryPart& part : memory_parts(device.memory(), config_, options_)) {
      sum += part.bytes;
    }
    return sum;
  }
  // Of making a model on a device with so much memory.
  [[nodiscard]] std::string refusal(std::uint64_t bytes) const {
    ShortDevice device(bytes);
    Executor executor(device);
    WeightSource source(
        hash_weights(config_).tensors(),
        [](std::size_t, ElementType, std::int64_t, std::span<std::byte>) { ADD_FAILURE() << "weights were read"; });
    try {
      const Model model(executor, config_, source, options_);
    } catch (const OutOfMemoryError& error) {
      EXPECT_EQ(error.needed_bytes(), needed());
      EXPECT_EQ(device.memory().state().free_bytes, bytes) << "something was taken";
      return error.what();
    }
    ADD_FAILURE() << "made";
    return {};
  }
};

TEST_F(MemoryPlanTest, WhatIsCountedIsWhatIsTaken) {
  config_.text.hidden = config_.vision.out_hidden = 512;
  config_.text.intermediate = 1024;
  options_.request = {.tokens = 700, .pictures = 1, .patches = 256, .longest_side = 16};
  ShortDevice device(std::uint64_t{1} << 30);
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  const std::vector<float> pixels(static_cast<std::size_t>(256 * config_.vision.patch_values()));
  const PatchView picture{16, 16, pixels};
  Tokens tokens(600, 1);
  std::fill(tokens.begin() + 10, tokens.begin() + 74, 500);
  (void)model.append({tokens, {&picture, 1}});
  const ModelMemory memory = model.memory();
  const auto taken = static_cast<double>(memory.weights + memory.activations + memory.cache);
  EXPECT_NEAR(taken / static_cast<double>(needed()), 1, 0.02);
}

TEST_F(MemoryPlanTest, RefusalNamesThePartsAndWhatHelps) {
  options_.request = {.tokens = 100, .pictures = 2, .patches = 4096, .longest_side = 64};
  const std::string text = refusal(std::uint64_t{2} << 20);
  for (const char* part :
       {"emulator has 2.0 MiB free", "weights, matrices in float32", "activations of 512 tokens", "context of 2048",
        "logits", "cache for 100 tokens in float32", "pictures of 4096 patches", "--weights float16", "--chunk 64",
        "--context 1024", "--max-image-tokens 128", "all of these"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("--device cpu"), std::string::npos) << "it is there already";
}

TEST_F(MemoryPlanTest, OptionsThatDoNotHelpAreNotNamed) {
  options_.weights = options_.cache = ElementType::float16;
  options_.context = 256;
  options_.chunk = 64;
  const std::string text = refusal(10000);
  for (const char* part : {"--weights", "--kv-cache", "--chunk", "--context", "--max-image-tokens", "all of these"}) {
    EXPECT_EQ(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_NE(text.find("a smaller model"), std::string::npos) << text;
}

TEST_F(MemoryPlanTest, JustEnoughIsEnough) {
  options_.request.tokens = 40;
  ShortDevice device(needed() + (std::uint64_t{64} << 10));  // small tensors' alignment
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  EXPECT_TRUE(model.append({Tokens(40, 7), {}}));
  EXPECT_EQ(model.length(), 40);
}

TEST_F(MemoryPlanTest, PicturesGiveTheirMemoryToALongerConversation) {
  options_.request = {.tokens = 200, .pictures = 1, .patches = 1024, .longest_side = 32};
  options_.chunk = 64;
  ShortDevice device(needed() + (std::uint64_t{64} << 10));
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  const std::vector<float> pixels(static_cast<std::size_t>(1024 * config_.vision.patch_values()));
  const PatchView picture{32, 32, pixels};
  (void)model.encode({&picture, 1});
  EXPECT_LT(device.memory().state().free_bytes, 512U << 10);
  EXPECT_TRUE(model.append({Tokens(1800, 7), {}}));
  EXPECT_THROW((void)model.encode({&picture, 1}), OutOfMemoryError);
}

TEST_F(MemoryPlanTest, ThePicturesMemoryIsReused) {
  ShortDevice device(std::uint64_t{1} << 30);
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  std::vector<float> pixels(static_cast<std::size_t>(64 * config_.vision.patch_values()));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = hash_weight("pixel_values", i);
  }
  const PatchView large{8, 8, pixels};
  const PatchView small{4, 6, std::span(pixels).first(pixels.size() / 64 * 24)};
  const auto first_of = [&](const PatchView& picture) {
    const ImageFeatures features = model.encode({&picture, 1});
    std::vector<float> values(4);
    device.memory().download({}, std::as_writable_bytes(std::span(values)), {features.embeddings.data, 16});
    device.memory().synchronize(StreamId{});
    return values;
  };
  const std::vector<float> before = first_of(small);
  (void)first_of(large);
  const std::uint64_t free = device.memory().state().free_bytes;
  EXPECT_EQ(first_of(small), before);
  (void)first_of(large);
  EXPECT_EQ(device.memory().state().free_bytes, free) << "nothing is allocated for pictures that were seen before";
  const std::vector<float> expected = golden_model_a().first_feature;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(before[i], expected[i], 1e-4);
  }
}

}  // namespace
}  // namespace pascaline::testing
