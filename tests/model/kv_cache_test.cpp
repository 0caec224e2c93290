#include "model/decoder/kv_cache.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/error.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "runtime/ops/operands.hpp"

namespace pascaline {
namespace {

class KvCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  TextConfig config_;

  KvCacheTest() {
    config_.layers = 2;
    config_.kv_heads = 2;
    config_.head_dim = 16;
  }
};

TEST_F(KvCacheTest, GrowsInPlaceAndKeepsWhatItHolds) {
  KvCache cache(host_->memory(), config_, ElementType::float16, 1000);
  EXPECT_EQ(cache.capacity(), 0);
  EXPECT_EQ(cache.token_bytes(), 2 * 2 * 2 * 16 * 2);
  cache.reserve(1);
  EXPECT_EQ(cache.capacity(), KvCache::kStep);
  const TensorView before = cache.values(1);
  host_->memory().fill({}, span_of(before), 7);
  cache.reserve(KvCache::kStep + 1);
  EXPECT_EQ(cache.capacity(), 2 * KvCache::kStep);
  const TensorView after = cache.values(1);
  EXPECT_EQ(after.data, before.data);
  EXPECT_EQ(after.shape[0], 2 * KvCache::kStep);
  std::vector<std::byte> held(bytes_of(before));
  host_->memory().download({}, held, span_of(before));
  EXPECT_EQ(held, std::vector<std::byte>(held.size(), std::byte{7}));
  cache.reserve(1000);
  EXPECT_EQ(cache.capacity(), 1000) << "no more than the context";
  EXPECT_GE(cache.bytes(), 1000 * cache.token_bytes());
}

TEST_F(KvCacheTest, ScalesOfInt8GrowAndKeepWhatTheyHold) {
  KvCache cache(host_->memory(), config_, ElementType::int8, 1000);
  EXPECT_EQ(cache.token_bytes(), 2 * 2 * (2 * 16 + 2 * 4)) << "an integer for each value, a scale for each head";
  cache.reserve(1);
  EXPECT_EQ(cache.keys(0).type, ElementType::int8);
  for (const std::int64_t layer : {0, 1}) {
    host_->memory().fill({}, span_of(cache.key_scales(layer)), static_cast<std::uint8_t>(10 + layer));
    host_->memory().fill({}, span_of(cache.value_scales(layer)), static_cast<std::uint8_t>(20 + layer));
    host_->memory().fill({}, span_of(cache.values(layer)), static_cast<std::uint8_t>(30 + layer));
  }
  cache.reserve(1000);
  ASSERT_EQ(cache.capacity(), 1000);
  EXPECT_EQ(cache.bytes(), KvCache::bytes_for(host_->memory(), config_, ElementType::int8, 1000, 1000));
  EXPECT_GE(cache.bytes(), 1000 * cache.token_bytes());
  const auto expect_held = [&](const TensorView& tensor, std::uint8_t byte) {
    EXPECT_EQ(tensor.shape[0], 1000);
    std::vector<std::byte> held(bytes_of(tensor) / 1000 * KvCache::kStep);
    host_->memory().download({}, held, {tensor.data, held.size()});
    EXPECT_EQ(held, std::vector<std::byte>(held.size(), std::byte{byte}));
  };
  for (const std::int64_t layer : {0, 1}) {
    expect_held(cache.key_scales(layer), static_cast<std::uint8_t>(10 + layer));
    expect_held(cache.value_scales(layer), static_cast<std::uint8_t>(20 + layer));
    expect_held(cache.values(layer), static_cast<std::uint8_t>(30 + layer));
    EXPECT_EQ(cache.key_scales(layer).shape[1], 2);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(cache.value_scales(layer).data) % 16, 0U);
  }
}

TEST_F(KvCacheTest, OnlyInt8HasScales) {
  KvCache cache(host_->memory(), config_, ElementType::float16, 64);
  cache.reserve(64);
  EXPECT_FALSE(ops::is_given(cache.key_scales(0)));
  EXPECT_FALSE(ops::is_given(cache.value_scales(1)));
}

TEST_F(KvCacheTest, ShortMemoryHasRoomForTheScalesToo) {
  const EmulatedState state;
  EmulatedMemory memory(state, 1000 << 10);
  KvCache cache(memory, config_, ElementType::int8, 8192);
  cache.reserve(2048);
  EXPECT_EQ(cache.capacity(), 2048);
  cache.reserve(4097);
  EXPECT_GE(cache.capacity(), 4097);
  EXPECT_LT(cache.capacity(), 8192);
  EXPECT_EQ(cache.key_scales(0).shape[0], cache.capacity());
  EXPECT_LE(cache.bytes(), 1000 << 10);
  EXPECT_THROW(cache.reserve(8192), OutOfMemoryError);
  EXPECT_EQ(cache.key_scales(0).shape[0], cache.capacity());
}

TEST_F(KvCacheTest, LayersAreApart) {
  KvCache cache(host_->memory(), config_, ElementType::float32, 64);
  cache.reserve(64);
  EXPECT_NE(cache.keys(0).data, cache.values(0).data);
  EXPECT_NE(cache.keys(0).data, cache.keys(1).data);
  EXPECT_EQ(cache.keys(1).shape[1], 2);
  EXPECT_EQ(cache.keys(1).shape[2], 16);
}

TEST_F(KvCacheTest, LongRoomsGrowByTheSameSteps) {
  KvCache cache(host_->memory(), config_, ElementType::float16, 30000);
  const std::vector<std::pair<std::int64_t, std::int64_t>> rooms{{1, 256},      {257, 512},     {5000, 8192},
                                                                 {8193, 12288}, {12289, 16384}, {29000, 30000}};
  for (const auto& [tokens, room] : rooms) {
    cache.reserve(tokens);
    EXPECT_EQ(cache.capacity(), room) << tokens;
    EXPECT_EQ(cache.bytes(), KvCache::bytes_for(host_->memory(), config_, ElementType::float16, 30000, tokens))
        << "what was said before is what it takes";
    EXPECT_GE(cache.bytes(), static_cast<std::uint64_t>(room) * cache.token_bytes());
  }
}

TEST_F(KvCacheTest, ShortMemoryGivesWhatJustHoldsTheTokens) {
  // 256 bytes a token in all: 1 MiB for a room of 4096.
  const EmulatedState state;
  EmulatedMemory memory(state, 1400 << 10);
  KvCache cache(memory, config_, ElementType::float16, 8192);
  cache.reserve(2048);
  EXPECT_EQ(cache.capacity(), 2048);
  cache.reserve(3000);
  EXPECT_EQ(cache.capacity(), 4096);
  cache.reserve(4097);
  EXPECT_GE(cache.capacity(), 4097);
  EXPECT_LT(cache.capacity(), 8192) << "twice the room would not fit";
  EXPECT_LE(cache.bytes(), 1400 << 10);
  const std::int64_t before = cache.capacity();
  EXPECT_EQ(cache.keys(0).shape[0], before);
  try {
    cache.reserve(8192);
    ADD_FAILURE() << "reserved";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("8192 tokens"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("--kv-cache float16"), std::string::npos) << "it is float16 already";
    EXPECT_NE(std::string(error.what()).find("--kv-cache int8"), std::string::npos) << error.what();
    EXPECT_GT(error.needed_bytes(), error.free_bytes());
  }
  EXPECT_EQ(cache.capacity(), before);
  EXPECT_NO_THROW(cache.reserve(before));
}

TEST_F(KvCacheTest, ContextIsTheLimit) {
  EXPECT_THROW(KvCache(host_->memory(), config_, ElementType::float32, 0), Error);
  KvCache cache(host_->memory(), config_, ElementType::float32, 64);
  EXPECT_THROW(cache.reserve(65), Error);
  EXPECT_EQ(cache.capacity(), 0);
}

}  // namespace
}  // namespace pascaline
