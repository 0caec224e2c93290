#include "model/residency/residency.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "model/checkpoint/model_config.hpp"
#include "model/residency/device_weights.hpp"
#include "runtime/memory/pool.hpp"

namespace pascaline::testing {
namespace {

constexpr std::uint64_t kMega = 1'000'000;

// Layers of ragged sizes, whose sums show which of them were counted.
ResidencySizes ragged_sizes() {
  ResidencySizes sizes;
  for (const std::uint64_t size : {10, 20, 30, 40, 50, 60, 70}) {
    sizes.layers.push_back({size * kMega, size * kMega});
  }
  sizes.embedding = {200 * kMega, 200 * kMega};
  sizes.head = {1, 0};
  sizes.tied = true;
  sizes.layer_cache = kMega;
  sizes.full_cache = 3 * kMega;
  sizes.fixed = 5 * kMega;
  sizes.decoder = 7 * kMega;
  sizes.reserve = 2 * kMega;
  sizes.chunk = 128;
  return sizes;
}

ResidencySizes with_vision(ResidencySizes sizes) {
  sizes.tower = {{20 * kMega, 20 * kMega}, {50 * kMega, 50 * kMega}, {50 * kMega, 50 * kMega}, {30 * kMega, 8 * kMega}};
  sizes.images = 11 * kMega;
  sizes.features = 2 * kMega;
  return sizes;
}

// A small card behind a slow bus, beside a processor of a laptop.
ResidencyRates laptop() { return {6e9, 15e9, 100e9, 80e9, 1500e9}; }

std::uint64_t with_slabs(std::uint64_t bytes) { return bytes + 2 * MemoryPool::slab_bytes_for(bytes); }

std::string residency_text(const ModelResidency& residency) {
  std::string text;
  for (const Residency where : residency.layers) {
    text += name_of(where)[0];
  }
  return text;
}

TEST(ResidencyTest, WhatFitsIsAllOnTheDevice) {
  const ResidencySizes sizes = with_vision(ragged_sizes());
  const ModelResidency whole = ModelResidency::on_device(7);
  const std::uint64_t needed = device_bytes(sizes, whole, false);
  EXPECT_EQ(needed, with_slabs((280 + 200 + 150 + 7 + 5 + 7 + 11) * kMega + 1));
  const auto exact = residency_choices(sizes, {}, laptop(), needed);
  ASSERT_EQ(exact.size(), 1U);
  EXPECT_EQ(exact.front().residency, whole);
  EXPECT_TRUE(exact.front().residency.all_on_device());
  EXPECT_FALSE(exact.front().filled_device);
  EXPECT_EQ(host_bytes(sizes, whole, false), 0U);
  EXPECT_FALSE(residency_choices(sizes, {}, laptop(), needed - 1).front().residency.all_on_device());
}

TEST(ResidencyTest, EveryChoiceFitsAndIsFull) {
  for (const ResidencySizes& sizes : {ragged_sizes(), with_vision(ragged_sizes())}) {
    for (std::uint64_t free = 20 * kMega; free < 700 * kMega; free += 7 * kMega) {
      const auto choices = residency_choices(sizes, {}, laptop(), free);
      for (const ResidencyChoice& choice : choices) {
        EXPECT_LE(device_bytes(sizes, choice.residency, choice.filled_device), free);
        EXPECT_GE(choice.times.answer() * kProcessorDoubt, choices.front().times.answer())
            << "the fastest is the first";
      }
    }
  }
}

TEST(ResidencyTest, TheProcessorTakesTheLastLayersAndStreamedOnesAreSpread) {
  const ResidencySizes sizes = ragged_sizes();
  for (const std::int64_t kept : {0, 1, 3, 4, 6, 7}) {
    ResidencyOptions options;
    options.gpu_layers = kept;
    options.offload = Offload::processor;
    const auto computed = residency_choices(sizes, options, laptop(), 10'000 * kMega);
    ASSERT_FALSE(computed.empty());
    EXPECT_EQ(residency_text(computed.front().residency),
              std::string(static_cast<std::size_t>(kept), 'd') + std::string(static_cast<std::size_t>(7 - kept), 'p'));
    options.offload = Offload::stream;
    const auto streamed = residency_choices(sizes, options, laptop(), 10'000 * kMega);
    ASSERT_FALSE(streamed.empty());
    EXPECT_EQ(streamed.front().residency.count(Residency::streamed), static_cast<std::size_t>(7 - kept));
  }
  ResidencyOptions options;
  options.gpu_layers = 4;
  options.offload = Offload::stream;
  EXPECT_EQ(residency_text(residency_choices(sizes, options, laptop(), 10'000 * kMega).front().residency), "ddsdsds");
}

TEST(ResidencyTest, SlotsCacheAndHostAreCounted) {
  const ResidencySizes sizes = ragged_sizes();
  ModelResidency residency = ModelResidency::on_device(7);
  residency.layers[1] = residency.layers[4] = residency.layers[5] = Residency::streamed;
  EXPECT_EQ(slot_bytes(sizes, residency), 2 * 60 * kMega);
  EXPECT_EQ(device_bytes(sizes, residency, false), with_slabs((280 - 130 + 120 + 200 + 7 + 5 + 7) * kMega + 1));
  EXPECT_EQ(host_bytes(sizes, residency, false), 130 * kMega);
  residency.layers[4] = residency.layers[5] = Residency::processor;
  EXPECT_EQ(slot_bytes(sizes, residency), 20 * kMega) << "one layer needs one slot";
  EXPECT_EQ(device_bytes(sizes, residency, true), with_slabs((150 + 20 + 200 + 5 * 3 + 5 + 7 + 2) * kMega + 1));
  EXPECT_EQ(host_bytes(sizes, residency, true), (130 + 2 * 3 + 7) * kMega);
}

TEST(ResidencyTest, NothingOfTheDecoderOnTheDeviceNeedsNothingThereForIt) {
  const ResidencySizes sizes = ragged_sizes();
  const auto choices = residency_choices(sizes, {}, laptop(), with_slabs(7 * kMega));
  ASSERT_FALSE(choices.empty());
  const ModelResidency& residency = choices.front().residency;
  EXPECT_FALSE(residency.device_decodes());
  EXPECT_TRUE(residency.processor_decodes());
  EXPECT_EQ(residency.count(Residency::processor), 7U);
  EXPECT_TRUE(residency_choices(sizes, {}, laptop(), 5 * kMega).empty()) << "not even that fits";
}

TEST(ResidencyTest, WhatIsAskedForIsKeptOrNothingFits) {
  const ResidencySizes sizes = with_vision(ragged_sizes());
  ResidencyOptions options;
  options.gpu_layers = 5;
  options.vision = VisionResidency::device;
  const auto choices = residency_choices(sizes, options, laptop(), 400 * kMega);
  ASSERT_FALSE(choices.empty());
  for (const ResidencyChoice& choice : choices) {
    EXPECT_EQ(choice.residency.count(Residency::device), 5U);
    EXPECT_EQ(choice.residency.vision, Residency::device);
    EXPECT_FALSE(choice.filled_device);
  }
  EXPECT_TRUE(residency_choices(sizes, options, laptop(), 200 * kMega).empty());
  options = {};
  options.vision = VisionResidency::processor;
  const auto elsewhere = residency_choices(sizes, options, laptop(), 10'000 * kMega);
  ASSERT_FALSE(elsewhere.empty());
  EXPECT_EQ(elsewhere.front().residency.vision, Residency::processor);
  EXPECT_EQ(elsewhere.front().residency.count(Residency::device), 7U) << "all layers stay";
}

TEST(ResidencyTest, TheFasterWayIsTaken) {
  const ResidencySizes sizes = ragged_sizes();
  const std::uint64_t free = 420 * kMega;
  ResidencyRates rates = laptop();
  rates.copy = 1e9;
  EXPECT_EQ(residency_choices(sizes, {}, rates, free).front().residency.count(Residency::streamed), 0U);
  rates.copy = 60e9;
  rates.processor_bytes = 2e9;
  rates.processor_flops = 10e9;
  EXPECT_GT(residency_choices(sizes, {}, rates, free).front().residency.count(Residency::streamed), 0U);
  ResidencyOptions options;
  options.offload = Offload::processor;
  EXPECT_EQ(residency_choices(sizes, options, rates, free).front().residency.count(Residency::streamed), 0U);
}

TEST(ResidencyTest, TimesAreThoseOfTheSlowerOfCopiesAndWork) {
  ResidencySizes sizes;
  sizes.layers.assign(4, {80 * kMega, 40 * kMega});
  sizes.embedding = {160 * kMega, 80 * kMega};
  sizes.tied = true;
  sizes.chunk = 256;
  const ResidencyRates rates{8e9, 16e9, 100e9, 80e9, 1000e9};
  ModelResidency residency = ModelResidency::on_device(4);
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).token, 4e-3 + 2e-3);
  residency.layers.assign(4, Residency::streamed);
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).token, 40e-3 + 2e-3);
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).prompt, 2 * 4 * 20.48e-3 + 2e-3) << "copies are hidden";
  residency.layers = {Residency::device, Residency::device, Residency::streamed, Residency::streamed};
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).token, 4e-3 + 2e-3) << "two stay in their slots";
  residency.layers = {Residency::device, Residency::device, Residency::device, Residency::processor};
  residency.head = residency.embedding = Residency::processor;
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).token, 3e-3 + 5e-3 + 10e-3);
}

TEST(ResidencyTest, AnUntiedEmbeddingLeavesItsRoomToLayers) {
  ResidencySizes sizes = ragged_sizes();
  sizes.tied = false;
  sizes.head = {200 * kMega, 200 * kMega};
  EXPECT_TRUE(residency_choices(sizes, {}, laptop(), 10'000 * kMega).front().residency.all_on_device());
  for (const ResidencyChoice& choice : residency_choices(sizes, {}, laptop(), 600 * kMega)) {
    EXPECT_EQ(choice.residency.embedding, Residency::processor);
  }
  EXPECT_EQ(residency_choices(sizes, {}, laptop(), 600 * kMega).front().residency.count(Residency::device), 7U);
}

TEST(ResidencyTest, AStreamedTowerTakesSlotsAndImagesAndSharesThemWithLayers) {
  const ResidencySizes sizes = with_vision(ragged_sizes());
  ModelResidency residency = ModelResidency::on_device(7);
  residency.vision = Residency::streamed;
  residency.tower = {Residency::streamed, Residency::device, Residency::streamed, Residency::streamed};
  EXPECT_EQ(residency.streamed_of_tower(), 3U);
  EXPECT_EQ(slot_bytes(sizes, residency), 2 * 50 * kMega);
  EXPECT_EQ(device_bytes(sizes, residency, false), with_slabs((280 + 200 + 7 + 5 + 7 + 50 + 100 + 11) * kMega + 1));
  EXPECT_EQ(host_bytes(sizes, residency, false), 100 * kMega) << "its activations are on the device";
  residency.layers[5] = Residency::streamed;
  EXPECT_EQ(slot_bytes(sizes, residency), 2 * 60 * kMega) << "the largest of both";
  EXPECT_TRUE(!residency.all_on_device() && !residency.all_decodes_on_device());
  residency.layers[5] = Residency::device;
  EXPECT_TRUE(residency.all_decodes_on_device()) << "steps are recorded";
  residency.vision = Residency::processor;
  residency.tower.clear();
  EXPECT_EQ(host_bytes(sizes, residency, false), (150 + 11) * kMega);
}

TEST(ResidencyTest, AStreamedTowerIsTimedAsTheSlowerOfCopiesAndWork) {
  ResidencySizes sizes = with_vision(ragged_sizes());
  sizes.expected_patches = 100;
  const ResidencyRates rates{10e9, 15e9, 100e9, 75e9, 1000e9};
  ModelResidency residency = ModelResidency::on_device(7);
  const double working = 2 * 128e6 * 100 / 1000e9;  // merged patches are fewer rows
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).images, working);
  residency.vision = Residency::streamed;
  residency.tower.assign(4, Residency::streamed);
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).images, working) << "copies take 15 ms, beside it";
  sizes.expected_patches = 10;
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).images, 150e6 / 10e9);
  residency.tower[1] = Residency::device;
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).images, 100e6 / 10e9);
  residency.tower = {Residency::device, Residency::streamed, Residency::streamed, Residency::device};
  EXPECT_NEAR(expected_times(sizes, residency, rates).images, 0.4e-3 + 1e-3 + 1e-3 + 0.4e-3, 1e-9)
      << "two stay in slots";
  residency.layers[0] = Residency::streamed;
  EXPECT_DOUBLE_EQ(expected_times(sizes, residency, rates).images, 100e6 / 10e9) << "but for a layer in between";
  residency.layers[0] = Residency::device;
  residency.vision = Residency::processor;
  residency.tower.clear();
  EXPECT_NEAR(expected_times(sizes, residency, rates).images, 4e-3 + 10e-3 + 10e-3 + 2e-3, 1e-9);
  sizes.expected_patches = 0;
  EXPECT_EQ(expected_times(sizes, residency, rates).images, 0);
}

TEST(ResidencyTest, TheTowerIsWhereItIsAskedFor) {
  const ResidencySizes sizes = with_vision(ragged_sizes());
  ResidencyOptions options;
  options.vision = VisionResidency::stream;
  const auto streamed = residency_choices(sizes, options, laptop(), 10'000 * kMega);
  ASSERT_FALSE(streamed.empty());
  EXPECT_EQ(streamed.front().residency.vision, Residency::streamed);
  EXPECT_EQ(streamed.front().residency.streamed_of_tower(), 4U) << "all of it, as it was asked for";
  EXPECT_TRUE(streamed.front().residency.all_decodes_on_device());
  options.vision = VisionResidency::automatic;
  const std::uint64_t whole = device_bytes(sizes, ModelResidency::on_device(7), false);
  EXPECT_EQ(residency_choices(sizes, options, laptop(), whole).front().residency.vision, Residency::device)
      << "it fits";
  // Of one that is streamed for want of memory, what fits stays: the more the more there is.
  ModelResidency residency = ModelResidency::on_device(7);
  residency.vision = Residency::streamed;
  residency.tower.assign(4, Residency::streamed);
  std::size_t last = 5;
  for (const std::uint64_t more : {0, 30, 60, 90}) {
    const std::uint64_t free = device_bytes(sizes, residency, true) + more * kMega;
    if (free >= whole) {
      break;
    }
    const auto choices = residency_choices(sizes, options, laptop(), free);
    const auto found = std::find_if(choices.begin(), choices.end(), [](const ResidencyChoice& choice) {
      return choice.residency.vision == Residency::streamed && choice.residency.all_decodes_on_device();
    });
    ASSERT_NE(found, choices.end()) << more;
    EXPECT_LE(found->residency.streamed_of_tower(), last);
    EXPECT_LE(device_bytes(sizes, found->residency, found->filled_device), free);
    last = found->residency.streamed_of_tower();
  }
  EXPECT_LT(last, 4U);
  EXPECT_GT(last, 0U);
}

TEST(ResidencyTest, NothingLeavesTheDeviceForNothing) {
  ResidencySizes sizes = with_vision(ragged_sizes());
  sizes.expected_patches = 1000;
  ResidencyOptions options;
  options.gpu_layers = 5;
  // Of a device that seems slower than the processor.
  const ResidencyRates rates{6e9, 500e9, 10000e9, 80e9, 1500e9};
  for (const ResidencyChoice& choice : residency_choices(sizes, options, rates, 10'000 * kMega)) {
    EXPECT_EQ(choice.residency.head, Residency::device);
    EXPECT_EQ(choice.residency.vision, Residency::device);
  }
}

TEST(ResidencyTest, AnUntiedEmbeddingStaysWithAWholeDecoder) {
  ResidencySizes sizes = with_vision(ragged_sizes());
  sizes.tied = false;
  sizes.head = {200 * kMega, 200 * kMega};
  ResidencyOptions options;
  options.vision = VisionResidency::stream;
  const ModelResidency residency = residency_choices(sizes, options, laptop(), 10'000 * kMega).front().residency;
  EXPECT_EQ(residency.embedding, Residency::device);
  EXPECT_TRUE(residency.all_decodes_on_device());
}

// Qwen3-VL-2B with weights in q4_k, a context of 2048 and an image of 512 x 512.
ResidencySizes real_sizes() {
  std::ifstream file(std::string(PASCALINE_CHECKPOINT_DATA) + "/qwen3_vl_2b.json");
  std::stringstream text;
  text << file.rdbuf();
  ResidencySizes sizes = weight_sizes(parse_model_config(text.str(), "qwen3_vl_2b.json"), WeightRecipe::named("q4_k"));
  constexpr std::uint64_t kMiB = 1 << 20;
  sizes.layer_cache = sizes.full_cache = 4 * kMiB;
  sizes.reserve = 64 * kMiB;
  sizes.fixed = 2 * kMiB;
  sizes.decoder = 55 * kMiB;
  sizes.images = 32 * kMiB;
  sizes.features = 8 * kMiB;
  sizes.patches = sizes.expected_patches = 1024;
  sizes.chunk = 1024;
  return sizes;
}

// What was measured on two processors of a server, and a card of the kind that this is for on its bus; then of a large
// server beside a large card, whose processor seemed three times as fast when its weights lay in its caches.
TEST(ResidencyTest, ARealTowerIsStreamedWhereverItDoesNotFit) {
  const ResidencySizes sizes = real_sizes();
  EXPECT_EQ(sizes.tower.size(), 29U);
  constexpr std::uint64_t kMiB = 1 << 20;
  const ResidencyRates small{12e9, 28.7e9, 202e9, 70e9, 1900e9};
  const ResidencyRates few_threads{6e9, 22.2e9, 173.6e9, 48e9, 1100e9};
  const ResidencyRates large{55e9, 64e9, 900e9, 3900e9, 60e12};
  for (const ResidencyRates& rates : {small, few_threads, large}) {
    for (const std::uint64_t limit : {420, 476, 600, 800, 1000, 1300}) {
      const ResidencyChoice choice = residency_choices(sizes, {}, rates, limit * kMiB).front();
      EXPECT_EQ(choice.residency.vision, Residency::streamed) << limit;
      EXPECT_LT(choice.times.images, 0.7) << limit;
      ResidencyOptions options;
      options.vision = VisionResidency::processor;
      const ResidencyChoice there = residency_choices(sizes, options, rates, limit * kMiB).front();
      EXPECT_GT(there.times.images, 0.6) << limit;
      EXPECT_LT(choice.times.answer(), there.times.answer()) << limit;
    }
  }
  // A prompt does not take seconds for a few layers.
  for (const std::uint64_t limit : {476, 1000, 1376}) {
    const ModelResidency residency = residency_choices(sizes, {}, large, limit * kMiB).front().residency;
    EXPECT_EQ(residency.count(Residency::processor), 0U) << limit;
  }
}

}  // namespace
}  // namespace pascaline::testing
