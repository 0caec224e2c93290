#include "model/residency/placement.hpp"

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
PlacementSizes ragged_sizes() {
  PlacementSizes sizes;
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

PlacementSizes with_vision(PlacementSizes sizes) {
  sizes.tower = {{20 * kMega, 20 * kMega}, {50 * kMega, 50 * kMega}, {50 * kMega, 50 * kMega}, {30 * kMega, 8 * kMega}};
  sizes.images = 11 * kMega;
  sizes.features = 2 * kMega;
  return sizes;
}

// A small card behind a slow bus, beside a processor of a laptop.
PlaceRates laptop() { return {6e9, 15e9, 100e9, 80e9, 1500e9}; }

std::uint64_t with_slabs(std::uint64_t bytes) { return bytes + 2 * MemoryPool::slab_bytes_for(bytes); }

std::string text_of(const Placement& placement) {
  std::string text;
  for (const Place place : placement.layers) {
    text += name_of(place)[0];
  }
  return text;
}

TEST(PlacementTest, WhatFitsIsAllOnTheDevice) {
  const PlacementSizes sizes = with_vision(ragged_sizes());
  const Placement whole = Placement::on_device(7);
  const std::uint64_t needed = device_bytes(sizes, whole, false);
  EXPECT_EQ(needed, with_slabs((280 + 200 + 150 + 7 + 5 + 7 + 11) * kMega + 1));
  const auto exact = place_model(sizes, {}, laptop(), needed);
  ASSERT_EQ(exact.size(), 1U);
  EXPECT_EQ(exact.front().placement, whole);
  EXPECT_TRUE(exact.front().placement.all_on_device());
  EXPECT_FALSE(exact.front().filled_device);
  EXPECT_EQ(host_bytes(sizes, whole, false), 0U);
  EXPECT_FALSE(place_model(sizes, {}, laptop(), needed - 1).front().placement.all_on_device());
}

TEST(PlacementTest, EveryChoiceFitsAndIsFull) {
  for (const PlacementSizes& sizes : {ragged_sizes(), with_vision(ragged_sizes())}) {
    for (std::uint64_t free = 20 * kMega; free < 700 * kMega; free += 7 * kMega) {
      const auto choices = place_model(sizes, {}, laptop(), free);
      for (const PlacementChoice& choice : choices) {
        EXPECT_LE(device_bytes(sizes, choice.placement, choice.filled_device), free);
        EXPECT_GE(choice.times.answer() * kProcessorDoubt, choices.front().times.answer())
            << "the fastest is the first";
      }
    }
  }
}

TEST(PlacementTest, TheProcessorTakesTheLastLayersAndStreamedOnesAreSpread) {
  const PlacementSizes sizes = ragged_sizes();
  for (const std::int64_t kept : {0, 1, 3, 4, 6, 7}) {
    PlacementOptions options;
    options.gpu_layers = kept;
    options.offload = Offload::processor;
    const auto computed = place_model(sizes, options, laptop(), 10'000 * kMega);
    ASSERT_FALSE(computed.empty());
    EXPECT_EQ(text_of(computed.front().placement),
              std::string(static_cast<std::size_t>(kept), 'd') + std::string(static_cast<std::size_t>(7 - kept), 'p'));
    options.offload = Offload::stream;
    const auto streamed = place_model(sizes, options, laptop(), 10'000 * kMega);
    ASSERT_FALSE(streamed.empty());
    EXPECT_EQ(streamed.front().placement.count(Place::streamed), static_cast<std::size_t>(7 - kept));
  }
  PlacementOptions options;
  options.gpu_layers = 4;
  options.offload = Offload::stream;
  EXPECT_EQ(text_of(place_model(sizes, options, laptop(), 10'000 * kMega).front().placement), "ddsdsds");
}

TEST(PlacementTest, SlotsCacheAndHostAreCounted) {
  const PlacementSizes sizes = ragged_sizes();
  Placement placement = Placement::on_device(7);
  placement.layers[1] = placement.layers[4] = placement.layers[5] = Place::streamed;
  EXPECT_EQ(slot_bytes(sizes, placement), 2 * 60 * kMega);
  EXPECT_EQ(device_bytes(sizes, placement, false), with_slabs((280 - 130 + 120 + 200 + 7 + 5 + 7) * kMega + 1));
  EXPECT_EQ(host_bytes(sizes, placement, false), 130 * kMega);
  placement.layers[4] = placement.layers[5] = Place::processor;
  EXPECT_EQ(slot_bytes(sizes, placement), 20 * kMega) << "one layer needs one slot";
  EXPECT_EQ(device_bytes(sizes, placement, true), with_slabs((150 + 20 + 200 + 5 * 3 + 5 + 7 + 2) * kMega + 1));
  EXPECT_EQ(host_bytes(sizes, placement, true), (130 + 2 * 3 + 7) * kMega);
}

TEST(PlacementTest, NothingOfTheDecoderOnTheDeviceNeedsNothingThereForIt) {
  const PlacementSizes sizes = ragged_sizes();
  const auto choices = place_model(sizes, {}, laptop(), with_slabs(7 * kMega));
  ASSERT_FALSE(choices.empty());
  const Placement& placement = choices.front().placement;
  EXPECT_FALSE(placement.device_decodes());
  EXPECT_TRUE(placement.processor_decodes());
  EXPECT_EQ(placement.count(Place::processor), 7U);
  EXPECT_TRUE(place_model(sizes, {}, laptop(), 5 * kMega).empty()) << "not even that fits";
}

TEST(PlacementTest, WhatIsAskedForIsKeptOrNothingFits) {
  const PlacementSizes sizes = with_vision(ragged_sizes());
  PlacementOptions options;
  options.gpu_layers = 5;
  options.vision = VisionPlace::device;
  const auto choices = place_model(sizes, options, laptop(), 400 * kMega);
  ASSERT_FALSE(choices.empty());
  for (const PlacementChoice& choice : choices) {
    EXPECT_EQ(choice.placement.count(Place::device), 5U);
    EXPECT_EQ(choice.placement.vision, Place::device);
    EXPECT_FALSE(choice.filled_device);
  }
  EXPECT_TRUE(place_model(sizes, options, laptop(), 200 * kMega).empty());
  options = {};
  options.vision = VisionPlace::processor;
  const auto elsewhere = place_model(sizes, options, laptop(), 10'000 * kMega);
  ASSERT_FALSE(elsewhere.empty());
  EXPECT_EQ(elsewhere.front().placement.vision, Place::processor);
  EXPECT_EQ(elsewhere.front().placement.count(Place::device), 7U) << "all layers stay";
}

TEST(PlacementTest, TheFasterWayIsTaken) {
  const PlacementSizes sizes = ragged_sizes();
  const std::uint64_t free = 420 * kMega;
  PlaceRates rates = laptop();
  rates.copy = 1e9;
  EXPECT_EQ(place_model(sizes, {}, rates, free).front().placement.count(Place::streamed), 0U);
  rates.copy = 60e9;
  rates.processor_bytes = 2e9;
  rates.processor_flops = 10e9;
  EXPECT_GT(place_model(sizes, {}, rates, free).front().placement.count(Place::streamed), 0U);
  PlacementOptions options;
  options.offload = Offload::processor;
  EXPECT_EQ(place_model(sizes, options, rates, free).front().placement.count(Place::streamed), 0U);
}

TEST(PlacementTest, TimesAreThoseOfTheSlowerOfCopiesAndWork) {
  PlacementSizes sizes;
  sizes.layers.assign(4, {80 * kMega, 40 * kMega});
  sizes.embedding = {160 * kMega, 80 * kMega};
  sizes.tied = true;
  sizes.chunk = 256;
  const PlaceRates rates{8e9, 16e9, 100e9, 80e9, 1000e9};
  Placement placement = Placement::on_device(4);
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).token, 4e-3 + 2e-3);
  placement.layers.assign(4, Place::streamed);
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).token, 40e-3 + 2e-3);
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).prompt, 2 * 4 * 20.48e-3 + 2e-3) << "copies are hidden";
  placement.layers = {Place::device, Place::device, Place::streamed, Place::streamed};
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).token, 4e-3 + 2e-3) << "two stay in their slots";
  placement.layers = {Place::device, Place::device, Place::device, Place::processor};
  placement.head = placement.embedding = Place::processor;
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).token, 3e-3 + 5e-3 + 10e-3);
}

TEST(PlacementTest, AnUntiedEmbeddingLeavesItsRoomToLayers) {
  PlacementSizes sizes = ragged_sizes();
  sizes.tied = false;
  sizes.head = {200 * kMega, 200 * kMega};
  EXPECT_TRUE(place_model(sizes, {}, laptop(), 10'000 * kMega).front().placement.all_on_device());
  for (const PlacementChoice& choice : place_model(sizes, {}, laptop(), 600 * kMega)) {
    EXPECT_EQ(choice.placement.embedding, Place::processor);
  }
  EXPECT_EQ(place_model(sizes, {}, laptop(), 600 * kMega).front().placement.count(Place::device), 7U);
}

TEST(PlacementTest, AStreamedTowerTakesSlotsAndImagesAndSharesThemWithLayers) {
  const PlacementSizes sizes = with_vision(ragged_sizes());
  Placement placement = Placement::on_device(7);
  placement.vision = Place::streamed;
  placement.tower = {Place::streamed, Place::device, Place::streamed, Place::streamed};
  EXPECT_EQ(placement.streamed_of_tower(), 3U);
  EXPECT_EQ(slot_bytes(sizes, placement), 2 * 50 * kMega);
  EXPECT_EQ(device_bytes(sizes, placement, false), with_slabs((280 + 200 + 7 + 5 + 7 + 50 + 100 + 11) * kMega + 1));
  EXPECT_EQ(host_bytes(sizes, placement, false), 100 * kMega) << "its activations are on the device";
  placement.layers[5] = Place::streamed;
  EXPECT_EQ(slot_bytes(sizes, placement), 2 * 60 * kMega) << "the largest of both";
  EXPECT_TRUE(!placement.all_on_device() && !placement.all_decodes_on_device());
  placement.layers[5] = Place::device;
  EXPECT_TRUE(placement.all_decodes_on_device()) << "steps are recorded";
  placement.vision = Place::processor;
  placement.tower.clear();
  EXPECT_EQ(host_bytes(sizes, placement, false), (150 + 11) * kMega);
}

TEST(PlacementTest, AStreamedTowerIsTimedAsTheSlowerOfCopiesAndWork) {
  PlacementSizes sizes = with_vision(ragged_sizes());
  sizes.expected_patches = 100;
  const PlaceRates rates{10e9, 15e9, 100e9, 75e9, 1000e9};
  Placement placement = Placement::on_device(7);
  const double working = 2 * 128e6 * 100 / 1000e9;  // merged patches are fewer rows
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).images, working);
  placement.vision = Place::streamed;
  placement.tower.assign(4, Place::streamed);
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).images, working) << "copies take 15 ms, beside it";
  sizes.expected_patches = 10;
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).images, 150e6 / 10e9);
  placement.tower[1] = Place::device;
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).images, 100e6 / 10e9);
  placement.tower = {Place::device, Place::streamed, Place::streamed, Place::device};
  EXPECT_NEAR(expected_times(sizes, placement, rates).images, 0.4e-3 + 1e-3 + 1e-3 + 0.4e-3, 1e-9)
      << "two stay in slots";
  placement.layers[0] = Place::streamed;
  EXPECT_DOUBLE_EQ(expected_times(sizes, placement, rates).images, 100e6 / 10e9) << "but for a layer in between";
  placement.layers[0] = Place::device;
  placement.vision = Place::processor;
  placement.tower.clear();
  EXPECT_NEAR(expected_times(sizes, placement, rates).images, 4e-3 + 10e-3 + 10e-3 + 2e-3, 1e-9);
  sizes.expected_patches = 0;
  EXPECT_EQ(expected_times(sizes, placement, rates).images, 0);
}

TEST(PlacementTest, TheTowerIsWhereItIsAskedFor) {
  const PlacementSizes sizes = with_vision(ragged_sizes());
  PlacementOptions options;
  options.vision = VisionPlace::stream;
  const auto streamed = place_model(sizes, options, laptop(), 10'000 * kMega);
  ASSERT_FALSE(streamed.empty());
  EXPECT_EQ(streamed.front().placement.vision, Place::streamed);
  EXPECT_EQ(streamed.front().placement.streamed_of_tower(), 4U) << "all of it, as it was asked for";
  EXPECT_TRUE(streamed.front().placement.all_decodes_on_device());
  options.vision = VisionPlace::automatic;
  const std::uint64_t whole = device_bytes(sizes, Placement::on_device(7), false);
  EXPECT_EQ(place_model(sizes, options, laptop(), whole).front().placement.vision, Place::device) << "it fits";
  // Of one that is streamed for want of memory, what fits stays: the more the more there is.
  Placement placement = Placement::on_device(7);
  placement.vision = Place::streamed;
  placement.tower.assign(4, Place::streamed);
  std::size_t last = 5;
  for (const std::uint64_t more : {0, 30, 60, 90}) {
    const std::uint64_t free = device_bytes(sizes, placement, true) + more * kMega;
    if (free >= whole) {
      break;
    }
    const auto choices = place_model(sizes, options, laptop(), free);
    const auto found = std::find_if(choices.begin(), choices.end(), [](const PlacementChoice& choice) {
      return choice.placement.vision == Place::streamed && choice.placement.all_decodes_on_device();
    });
    ASSERT_NE(found, choices.end()) << more;
    EXPECT_LE(found->placement.streamed_of_tower(), last);
    EXPECT_LE(device_bytes(sizes, found->placement, found->filled_device), free);
    last = found->placement.streamed_of_tower();
  }
  EXPECT_LT(last, 4U);
  EXPECT_GT(last, 0U);
}

TEST(PlacementTest, NothingLeavesTheDeviceForNothing) {
  PlacementSizes sizes = with_vision(ragged_sizes());
  sizes.expected_patches = 1000;
  PlacementOptions options;
  options.gpu_layers = 5;
  // Of a device that seems slower than the processor.
  const PlaceRates rates{6e9, 500e9, 10000e9, 80e9, 1500e9};
  for (const PlacementChoice& choice : place_model(sizes, options, rates, 10'000 * kMega)) {
    EXPECT_EQ(choice.placement.head, Place::device);
    EXPECT_EQ(choice.placement.vision, Place::device);
  }
}

TEST(PlacementTest, AnUntiedEmbeddingStaysWithAWholeDecoder) {
  PlacementSizes sizes = with_vision(ragged_sizes());
  sizes.tied = false;
  sizes.head = {200 * kMega, 200 * kMega};
  PlacementOptions options;
  options.vision = VisionPlace::stream;
  const Placement placement = place_model(sizes, options, laptop(), 10'000 * kMega).front().placement;
  EXPECT_EQ(placement.embedding, Place::device);
  EXPECT_TRUE(placement.all_decodes_on_device());
}

// Qwen3-VL-2B with weights in q4_k, a context of 2048 and an image of 512 x 512.
PlacementSizes real_sizes() {
  std::ifstream file(std::string(PASCALINE_CHECKPOINT_DATA) + "/qwen3_vl_2b.json");
  std::stringstream text;
  text << file.rdbuf();
  PlacementSizes sizes = weight_sizes(parse_model_config(text.str(), "qwen3_vl_2b.json"), WeightRecipe::named("q4_k"));
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
TEST(PlacementTest, ARealTowerIsStreamedWhereverItDoesNotFit) {
  const PlacementSizes sizes = real_sizes();
  EXPECT_EQ(sizes.tower.size(), 29U);
  constexpr std::uint64_t kMiB = 1 << 20;
  const PlaceRates small{12e9, 28.7e9, 202e9, 70e9, 1900e9};
  const PlaceRates few_threads{6e9, 22.2e9, 173.6e9, 48e9, 1100e9};
  const PlaceRates large{55e9, 64e9, 900e9, 3900e9, 60e12};
  for (const PlaceRates& rates : {small, few_threads, large}) {
    for (const std::uint64_t limit : {420, 476, 600, 800, 1000, 1300}) {
      const PlacementChoice choice = place_model(sizes, {}, rates, limit * kMiB).front();
      EXPECT_EQ(choice.placement.vision, Place::streamed) << limit;
      EXPECT_LT(choice.times.images, 0.7) << limit;
      PlacementOptions options;
      options.vision = VisionPlace::processor;
      const PlacementChoice there = place_model(sizes, options, rates, limit * kMiB).front();
      EXPECT_GT(there.times.images, 0.6) << limit;
      EXPECT_LT(choice.times.answer(), there.times.answer()) << limit;
    }
  }
  // A prompt does not take seconds for a few layers.
  for (const std::uint64_t limit : {476, 1000, 1376}) {
    const Placement placement = place_model(sizes, {}, large, limit * kMiB).front().placement;
    EXPECT_EQ(placement.count(Place::processor), 0U) << limit;
  }
}

}  // namespace
}  // namespace pascaline::testing
