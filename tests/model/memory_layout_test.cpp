#include "model/memory_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "model/model.hpp"
#include "model/requirements.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "runtime/memory/pool.hpp"
#include "tests/model/golden.hpp"
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

class MemoryLayoutTest : public ::testing::Test {
 protected:
  ModelConfig config_ = golden_model_a().config;
  ModelOptions options_;

  MemoryLayoutTest() {
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

TEST_F(MemoryLayoutTest, WhatIsCountedIsWhatIsTaken) {
  config_.text.hidden = config_.vision.value().out_hidden = 512;
  config_.text.intermediate = 1024;
  options_.request = {.tokens = 700, .images = 1, .patches = 256, .longest_side = 16};
  ShortDevice device(std::uint64_t{1} << 30);
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  const std::vector<float> pixels(static_cast<std::size_t>(256 * config_.vision.value().patch_values()));
  const PatchView image{16, 16, pixels};
  Tokens tokens(600, 1);
  std::fill(tokens.begin() + 10, tokens.begin() + 74, 500);
  (void)model.append({tokens, {&image, 1}});
  const ModelMemory memory = model.memory();
  const auto taken = static_cast<double>(memory.weights + memory.activations + memory.cache);
  const MemoryPart rounding = memory_parts(device.memory(), config_, options_).back();
  EXPECT_EQ(rounding.name, "small tensors, rounded up");  // there is no pool here
  EXPECT_NEAR(taken / static_cast<double>(needed() - rounding.bytes), 1, 0.02);
}

TEST_F(MemoryLayoutTest, RefusalNamesThePartsAndWhatHelps) {
  options_.request = {.tokens = 100, .images = 2, .patches = 4096, .longest_side = 64};
  const std::string text = refusal(std::uint64_t{2} << 20);
  for (const char* part :
       {"the processor has 2.0 MiB free", "weights, matrices in float32", "activations of 512 tokens",
        "context of 2048", "logits", "cache for 100 tokens in float32", "images of 4096 patches", "--weights float16",
        "--chunk 64", "--context 1024", "--max-image-tokens 128", "all of these"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("--device cpu"), std::string::npos) << "it is there already";
}

TEST_F(MemoryLayoutTest, OptionsThatDoNotHelpAreNotNamed) {
  options_.weights = ElementType::float16;
  options_.cache = ElementType::int8;
  options_.context = 256;
  options_.chunk = 64;
  const std::string text = refusal(10000);
  for (const char* part : {"--weights", "--kv-cache", "--chunk", "--context", "--max-image-tokens", "all of these"}) {
    EXPECT_EQ(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_NE(text.find("a smaller model"), std::string::npos) << text;
}

TEST_F(MemoryLayoutTest, JustEnoughIsEnough) {
  options_.request.tokens = 40;
  ShortDevice device(needed() + (std::uint64_t{64} << 10));  // small tensors' alignment
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  EXPECT_TRUE(model.append({Tokens(40, 7), {}}));
  EXPECT_EQ(model.length(), 40);
}

TEST_F(MemoryLayoutTest, ImagesGiveTheirMemoryToALongerConversation) {
  options_.request = {.tokens = 200, .images = 1, .patches = 1024, .longest_side = 32};
  options_.chunk = 64;
  ShortDevice device(needed() + (std::uint64_t{64} << 10));
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  const std::vector<float> pixels(static_cast<std::size_t>(1024 * config_.vision.value().patch_values()));
  const PatchView image{32, 32, pixels};
  (void)model.encode({&image, 1});
  EXPECT_LT(device.memory().state().free_bytes, 512U << 10);
  EXPECT_TRUE(model.append({Tokens(1800, 7), {}}));
  EXPECT_THROW((void)model.encode({&image, 1}), OutOfMemoryError);
}

TEST_F(MemoryLayoutTest, ALimitIsKept) {
  options_.request = {.tokens = 600, .images = 1, .patches = 256, .longest_side = 16};
  const std::uint64_t limit = needed();
  ShortDevice device(std::uint64_t{1} << 30);
  MemoryPool pool(device.memory(), limit);
  {
    Executor executor(device, &pool);
    WeightSource source = hash_weights(config_);
    Model model(executor, config_, source, options_);
    const std::vector<float> pixels(static_cast<std::size_t>(256 * config_.vision->patch_values()));
    const PatchView image{16, 16, pixels};
    Tokens tokens(600, 1);
    std::fill(tokens.begin() + 10, tokens.begin() + 74, 500);
    EXPECT_TRUE(model.append({tokens, {&image, 1}}));
    const PoolStatistics after_first = pool.statistics();
    EXPECT_EQ(after_first.held_bytes, (std::uint64_t{1} << 30) - device.memory().state().free_bytes)
        << "all of it comes from the pool";
    for (int i = 0; i < 3; ++i) {
      (void)model.encode({&image, 1});
      EXPECT_EQ(pool.statistics().held_bytes, after_first.held_bytes) << "images that were seen take no more";
      EXPECT_EQ(pool.statistics().device_calls, after_first.device_calls);
    }
    EXPECT_THROW((void)model.append({Tokens(1400, 7), {}}), OutOfMemoryError) << "the cache does not grow beyond it";
    EXPECT_EQ(model.length(), 600);
    EXPECT_LE(pool.statistics().peak_held_bytes, limit);
    EXPECT_LT(pool.statistics().device_calls, pool.statistics().live_buffers) << "small tensors share slabs";
  }
  EXPECT_EQ(pool.statistics().live_buffers, 0U);
  EXPECT_LE(pool.statistics().held_bytes, MemoryPool::kMaxSlabBytes) << "an empty slab at most";
}

// The option's value in the last line of a message that names it.
std::int64_t last_value(const std::string& text, const std::string& option) {
  const std::size_t at = text.rfind(option + " ");
  return at == std::string::npos ? 0 : std::stoll(text.substr(at + option.size() + 1));
}

TEST_F(MemoryLayoutTest, ATooSmallLimitSaysWhatWouldFitAndThatFits) {
  options_.request.tokens = 200;
  const std::uint64_t limit = needed() * 6 / 10;
  std::string text;
  {
    ShortDevice device(std::uint64_t{1} << 30);
    MemoryPool pool(device.memory(), limit);
    Executor executor(device, &pool);
    WeightSource source = hash_weights(config_);
    try {
      const Model model(executor, config_, source, options_);
      FAIL() << "made";
    } catch (const OutOfMemoryError& error) {
      text = error.what();
      EXPECT_EQ(error.free_bytes(), limit);
    }
    EXPECT_EQ(pool.statistics().device_calls, 0U) << "nothing was taken";
  }
  EXPECT_NE(text.find("of which --memory-limit allows"), std::string::npos) << text;
  const std::size_t fits = text.find("what fits, with the context filled:");
  ASSERT_NE(fits, std::string::npos) << text;
  const std::string advice = text.substr(text.rfind('\n'));  // all that saves memory
  const auto advises = [&](const char* option) { return advice.find(option) != std::string::npos; };
  EXPECT_TRUE(advises("--weights float16") && advises("--chunk 64")) << text;
  options_.weights = advises("--weights float16") ? ElementType::float16 : options_.weights;
  options_.cache = advises("--kv-cache int8") ? ElementType::int8 : options_.cache;
  EXPECT_FALSE(advises("--kv-cache float16") && advises("--kv-cache int8")) << text;
  options_.chunk = 64;
  options_.context = options_.request.tokens = last_value(advice, "--context");
  ASSERT_GE(options_.context, 200);
  ShortDevice device(std::uint64_t{1} << 30);
  MemoryPool pool(device.memory(), limit);
  Executor executor(device, &pool);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  EXPECT_TRUE(model.append({Tokens(static_cast<std::size_t>(options_.context), 7), {}}));
  EXPECT_LE(pool.statistics().peak_held_bytes, limit);
}

TEST_F(MemoryLayoutTest, ALimitThatNothingFitsSaysWhatItTakes) {
  options_.request.tokens = 200;
  ShortDevice device(std::uint64_t{1} << 30);
  MemoryPool pool(device.memory(), 100'000);
  Executor executor(device, &pool);
  WeightSource source = hash_weights(config_);
  try {
    const Model model(executor, config_, source, options_);
    FAIL() << "made";
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("--memory-limit allows 0.1 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("nothing fits: the first request needs "), std::string::npos) << text;
  }
}

// On a device beside which there is the processor.
class SharedLayoutTest : public MemoryLayoutTest {
 protected:
  [[nodiscard]] MemoryLayout plan(std::uint64_t free, Measure measure = Measure::where_needed) const {
    ShortDevice device(std::uint64_t{1} << 30);
    MemoryPool pool(device.memory(), free);
    MemoryLayout result = lay_out_model({&device, &pool, false}, config_, options_, measure);
    EXPECT_EQ(pool.statistics().live_buffers, 0U) << "a plan keeps nothing";
    return result;
  }
  [[nodiscard]] std::string refused(std::uint64_t free) const {
    try {
      (void)plan(free);
    } catch (const OutOfMemoryError& error) {
      EXPECT_EQ(error.free_bytes(), free);
      EXPECT_GT(error.needed_bytes(), free);
      return error.what();
    }
    ADD_FAILURE() << "planned";
    return {};
  }
};

TEST_F(SharedLayoutTest, PartsAddUpAndRatesAreMeasuredWhereTheyMatter) {
  const MemoryLayout whole = plan(std::uint64_t{1} << 30);
  EXPECT_TRUE(whole.can_record());
  EXPECT_FALSE(whole.rates.has_value());
  EXPECT_TRUE(whole.host.empty());
  EXPECT_NEAR(static_cast<double>(whole.device_bytes), static_cast<double>(needed()), 16384) << "but for alignment";
  EXPECT_TRUE(plan(std::uint64_t{1} << 30, Measure::always).rates.has_value());
  const MemoryLayout shared = plan(whole.device_bytes / 2);
  ASSERT_TRUE(shared.rates.has_value());
  EXPECT_GT(shared.rates->copy, 0);
  EXPECT_GT(shared.rates->processor_bytes, 0);
  EXPECT_GT(shared.rates->processor_flops, 0);
  EXPECT_FALSE(shared.can_record());
  EXPECT_LE(shared.device_bytes, whole.device_bytes / 2);
  EXPECT_EQ(shared.device_bytes, device_bytes(shared.sizes, shared.residency, shared.filled_device));
  EXPECT_EQ(shared.host_bytes, host_bytes(shared.sizes, shared.residency, shared.filled_device));
}

TEST_F(SharedLayoutTest, AConversationThatMayGrowHasRoomForThat) {
  options_.request.tokens = 10;
  const std::uint64_t free = plan(std::uint64_t{1} << 30).device_bytes * 3 / 4;
  const MemoryLayout open = plan(free);
  EXPECT_GT(open.sizes.full_cache, open.sizes.layer_cache);
  options_.request.is_all = true;
  const MemoryLayout closed = plan(free);
  EXPECT_EQ(closed.sizes.full_cache, closed.sizes.layer_cache);
  EXPECT_GE(closed.residency.count(Residency::device), open.residency.count(Residency::device));
}

TEST_F(SharedLayoutTest, ARefusalNamesWhatWouldMakeItFit) {
  options_.request = {.tokens = 1900, .images = 1, .patches = 256, .longest_side = 16};
  options_.residency = {config_.text.layers, VisionResidency::device, Offload::automatic};
  const std::string text = refused(600'000);
  for (const char* part :
       {"device memory, with as much on the processor as the options allow", "--gpu-layers auto", "--vision stream",
        "--vision cpu", "--weights float16", "--kv-cache int8", "--chunk 64", "what fits"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  options_.residency = {};
  EXPECT_FALSE(plan(600'000).residency.all_on_device());
  const std::string nothing = refused(10'000);
  EXPECT_EQ(nothing.find("--gpu-layers"), std::string::npos) << nothing;
}

TEST_F(SharedLayoutTest, AStreamedTowerThatDoesNotFitNamesTheProcessor) {
  options_.request = {.tokens = 1900, .images = 1, .patches = 256, .longest_side = 16};
  options_.residency.vision = VisionResidency::stream;
  const std::string text = refused(300'000);
  for (const char* part : {"slots for ", "--vision cpu", "images of 256 patches"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("--vision stream"), std::string::npos) << text;
}

TEST_F(SharedLayoutTest, AConversationThatMayGetImagesCountsOne) {
  options_.request.tokens = 10;
  const std::uint64_t free = plan(std::uint64_t{1} << 30).device_bytes / 2;
  const MemoryLayout open = plan(free);
  EXPECT_EQ(open.sizes.expected_patches, 1024);
  EXPECT_GT(open.choices.front().times.images, 0);
  options_.request.is_all = true;
  EXPECT_EQ(plan(free).choices.front().times.images, 0) << "none will come";
}

TEST_F(SharedLayoutTest, ATowerThatTheModelLacksIsNotPlaced) {
  config_.vision.reset();
  for (const auto& [where, name] : {std::pair(VisionResidency::device, "gpu"),
                                    {VisionResidency::processor, "cpu"},
                                    {VisionResidency::stream, "stream"}}) {
    options_.residency.vision = where;
    try {
      (void)checked_options(config_, options_);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("--vision " + std::string(name) + ": this model only reads text"), 0U) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
  options_.residency.vision = VisionResidency::automatic;
  EXPECT_EQ(checked_options(config_, options_).residency.vision, VisionResidency::automatic);
}

TEST_F(SharedLayoutTest, LayersThatTheModelLacksAreRefused) {
  for (const std::int64_t layers : {config_.text.layers + 1, std::int64_t{-1}}) {
    options_.residency.gpu_layers = layers;
    try {
      (void)checked_options(config_, options_);
      ADD_FAILURE() << layers;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("--gpu-layers " + std::to_string(layers)), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST_F(MemoryLayoutTest, TheImagesMemoryIsReused) {
  ShortDevice device(std::uint64_t{1} << 30);
  Executor executor(device);
  WeightSource source = hash_weights(config_);
  Model model(executor, config_, source, options_);
  std::vector<float> pixels(static_cast<std::size_t>(64 * config_.vision.value().patch_values()));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = hash_pixel(i);
  }
  const PatchView large{8, 8, pixels};
  const PatchView small{4, 6, std::span(pixels).first(pixels.size() / 64 * 24)};
  const auto first_of = [&](const PatchView& image) {
    const ImageFeatures features = model.encode({&image, 1});
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
  EXPECT_EQ(device.memory().state().free_bytes, free) << "nothing is allocated for images that were seen before";
  const std::vector<float> expected = golden_model_a().first_feature;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(before[i], expected[i], 1e-4);
  }
}

}  // namespace
}  // namespace pascaline::testing
