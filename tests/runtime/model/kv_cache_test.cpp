#include "runtime/model/kv_cache.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.hpp"
#include "runtime/gpu/device.hpp"
#include "runtime/model/tensor_memory.hpp"

namespace pascaline {
namespace {

class KvCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("host");
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

TEST_F(KvCacheTest, LayersAreApart) {
  KvCache cache(host_->memory(), config_, ElementType::float32, 64);
  cache.reserve(64);
  EXPECT_NE(cache.keys(0).data, cache.values(0).data);
  EXPECT_NE(cache.keys(0).data, cache.keys(1).data);
  EXPECT_EQ(cache.keys(1).shape[1], 2);
  EXPECT_EQ(cache.keys(1).shape[2], 16);
}

TEST_F(KvCacheTest, ContextIsTheLimit) {
  EXPECT_THROW(KvCache(host_->memory(), config_, ElementType::float32, 0), Error);
  KvCache cache(host_->memory(), config_, ElementType::float32, 64);
  EXPECT_THROW(cache.reserve(65), Error);
  EXPECT_EQ(cache.capacity(), 0);
}

}  // namespace
}  // namespace pascaline
