#include "runtime/memory/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "tests/runtime/memory/manual_memory.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Host memory with a limit.
struct LimitedHost {
  explicit LimitedHost(std::uint64_t bytes) : memory(state, bytes) {}
  EmulatedState state;
  EmulatedMemory memory;
};

TEST(SizeClass, RoundsUpAndLosesLittle) {
  std::size_t before = 0;
  for (std::size_t bytes = 0; bytes <= 5 * kMiB; bytes += bytes < 5000 ? 1 : 997) {
    const SizeClass size = size_class_of(bytes);
    ASSERT_GE(size.block_bytes, std::max<std::size_t>(bytes, 1));
    ASSERT_EQ(size.block_bytes % DeviceMemory::kAlignment, 0U) << bytes;
    ASSERT_GE(size.block_bytes, before) << bytes;
    ASSERT_GE(size.most_bytes, size.block_bytes);
    ASSERT_EQ(size_class_of(size.block_bytes).block_bytes, size.block_bytes) << "a block is of its own class";
    if (bytes > kLargestSmallBlock) {
      ASSERT_LT(size.block_bytes - bytes, kBigBlockStep);
      ASSERT_EQ(size.blocks_per_chunk, 1U);
    } else {
      ASSERT_LE(size.block_bytes * size.blocks_per_chunk, kLargestSlab);
      ASSERT_GE(size.blocks_per_chunk, 2U);
      ASSERT_EQ(size.most_bytes, size.block_bytes);
      ASSERT_LE(size.block_bytes - bytes, std::max<std::size_t>(256, size.block_bytes / 5));
    }
    before = size.block_bytes;
  }
  EXPECT_EQ(size_class_of(0).block_bytes, 256U);
  EXPECT_EQ(size_class_of(1025).block_bytes, 1280U);
  EXPECT_EQ(size_class_of(kMiB).block_bytes, kMiB);
  EXPECT_EQ(size_class_of(kMiB + 1).block_bytes, 2 * kMiB);
  EXPECT_EQ(size_class_of(std::size_t{1} << 62).block_bytes, std::size_t{1} << 62);
}

TEST(StreamPool, GivesAlignedMemoryOfItsOwnToEveryBuffer) {
  LimitedHost host(64 * kMiB);
  StreamPool pool(host.memory);
  std::vector<PoolBuffer> buffers;
  for (std::size_t i = 0; i < 200; ++i) {
    buffers.push_back(pool.allocate(i * 37));
    EXPECT_EQ(buffers.back().bytes(), i * 37);
    EXPECT_NE(buffers.back().data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % 256, 0U);
    host.memory.fill({}, buffers.back().span(), static_cast<std::uint8_t>(i));
  }
  for (std::size_t i = 0; i < 200; ++i) {
    std::vector<std::byte> back(i * 37);
    host.memory.download({}, back, buffers[i].span());
    EXPECT_TRUE(std::all_of(back.begin(), back.end(), [&](std::byte byte) { return byte == std::byte(i); })) << i;
  }
}

TEST(StreamPool, BuffersMoveAndGoOnce) {
  LimitedHost host(64 * kMiB);
  StreamPool pool(host.memory);
  PoolBuffer a = pool.allocate(100);
  void* data = a.data();
  PoolBuffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): a moved-from buffer holds nothing
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(b.data(), data);
  b = pool.allocate(100);
  EXPECT_EQ(pool.statistics().live_buffers, 1U) << "what b held went";
  PoolBuffer& self = b;
  b = std::move(self);
  EXPECT_EQ(pool.statistics().live_buffers, 1U);
  EXPECT_TRUE(b);
  b = PoolBuffer();
  EXPECT_EQ(pool.statistics().live_buffers, 0U);
  EXPECT_THROW(b.hand_to({}), Error);
}

TEST(StreamPool, BigBlocksServeRequestsThatAreLittleSmaller) {
  LimitedHost host(256 * kMiB);
  StreamPool pool(host.memory);
  (void)pool.allocate(20 * kMiB);
  EXPECT_EQ(pool.statistics().held_bytes, 20 * kMiB);
  (void)pool.allocate(16 * kMiB);
  EXPECT_EQ(pool.statistics().misses, 1U) << "a quarter larger is taken";
  const PoolBuffer small = pool.allocate(14 * kMiB);
  EXPECT_EQ(pool.statistics().misses, 2U) << "more is not";
  const PoolBuffer a = pool.allocate(15 * kMiB + 1);
  EXPECT_EQ(a.bytes(), 15 * kMiB + 1);
  EXPECT_EQ(pool.statistics().misses, 2U);
}

TEST(StreamPool, StatisticsAddUp) {
  LimitedHost host(64 * kMiB);
  StreamPool pool(host.memory);
  EXPECT_EQ(pool.statistics().rounding_loss(), 0.0);
  EXPECT_EQ(pool.statistics().idle_share(), 0.0);
  EXPECT_EQ(pool.statistics().fragmentation(), 0.0);
  {
    const PoolBuffer a = pool.allocate(192);       // of 64 blocks of 256 bytes
    const PoolBuffer b = pool.allocate(3 * kMiB);  // of a block of 4 MiB
    const PoolStatistics both = pool.statistics();
    EXPECT_EQ(both.live_bytes, 192 + 3 * kMiB);
    EXPECT_EQ(both.live_block_bytes, 256 + 4 * kMiB);
    EXPECT_EQ(both.held_bytes, 64 * 256 + 4 * kMiB);
    EXPECT_EQ(both.stuck_bytes, 63U * 256);
    EXPECT_EQ(both.fragmentation(), 1.0) << "all that is idle lies in a slab in use";
    EXPECT_NEAR(both.rounding_loss(), 0.25, 1e-4);
  }
  const PoolStatistics after = pool.statistics();
  EXPECT_EQ(after.live_bytes, 0U);
  EXPECT_EQ(after.peak_live_bytes, 192 + 3 * kMiB);
  EXPECT_EQ(after.peak_held_bytes, after.held_bytes);
  EXPECT_EQ(after.idle_share(), 1.0);
  EXPECT_EQ(after.fragmentation(), 0.0);
  EXPECT_EQ(after.misses, 2U);
  EXPECT_EQ(after.trims, 0U);
}

TEST(StreamPool, TrimGivesBackWhatIsIdleAndKeepsWhatItIsTold) {
  LimitedHost host(64 * kMiB);
  StreamPool pool(host.memory);
  PoolBuffer in_slab = pool.allocate(100);
  (void)pool.allocate(4 * kMiB);
  (void)pool.allocate(8 * kMiB);
  const std::size_t slab = 64 * 256;
  EXPECT_EQ(pool.trim(9 * kMiB), 4 * kMiB);
  EXPECT_EQ(pool.statistics().held_bytes, 8 * kMiB + slab);
  EXPECT_EQ(pool.trim(), 8 * kMiB) << "the slab is in use";
  EXPECT_EQ(pool.trim(), 0U);
  EXPECT_EQ(pool.statistics().trims, 2U);
  in_slab = PoolBuffer();
  EXPECT_EQ(pool.trim(), slab);
  EXPECT_EQ(pool.statistics().held_bytes, 0U);
  EXPECT_NE(pool.allocate(100).data(), nullptr);
}

TEST(StreamPool, AtTheLimitGivesIdleMemoryBackAndThenRefuses) {
  LimitedHost host(64 * kMiB);
  StreamPool pool(host.memory, {10 * kMiB});
  (void)pool.allocate(6 * kMiB);
  const PoolBuffer eight = pool.allocate(8 * kMiB);
  EXPECT_EQ(pool.statistics().held_bytes, 8 * kMiB) << "the 6 MiB went back";
  EXPECT_EQ(pool.statistics().retries, 1U);
  try {
    (void)pool.allocate(3 * kMiB);
    FAIL() << "beyond the limit";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.needed_bytes(), 4 * kMiB);
    EXPECT_EQ(error.free_bytes(), 2 * kMiB);
    const std::string text = error.what();
    EXPECT_NE(text.find("buffer of 3145728 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("holds 8388608 bytes, 8388608 of them in use, its limit is 10485760"), std::string::npos)
        << text;
    EXPECT_TRUE(is_out_of_memory(error));
  }
  EXPECT_THROW((void)pool.allocate(11 * kMiB), OutOfMemoryError);
  EXPECT_THROW((void)pool.allocate(~std::size_t{0}), OutOfMemoryError);
  EXPECT_EQ(pool.statistics().live_buffers, 1U);
  EXPECT_NE(pool.allocate(2 * kMiB).data(), nullptr) << "a refusal changes nothing";
}

TEST(StreamPool, WhenTheDeviceIsFullGivesIdleMemoryBackAndTriesAgain) {
  LimitedHost host(16 * kMiB);
  StreamPool pool(host.memory);
  (void)pool.allocate(6 * kMiB);
  const PoolBuffer ten = pool.allocate(10 * kMiB);
  EXPECT_EQ(pool.statistics().retries, 0U);
  const PoolBuffer two = pool.allocate(2 * kMiB);
  EXPECT_EQ(pool.statistics().retries, 1U);
  EXPECT_EQ(pool.statistics().held_bytes, 12 * kMiB);
  try {
    (void)pool.allocate(5 * kMiB);
    FAIL() << "more than there is";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.needed_bytes(), 6 * kMiB);
    EXPECT_EQ(error.free_bytes(), 4 * kMiB);
    EXPECT_NE(std::string(error.what()).find("4194304 of 16777216 are free"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("limit"), std::string::npos) << "there is none";
  }
}

TEST(StreamPool, OtherFaultsOfTheDeviceComeThrough) {
  ManualMemory memory;
  StreamPool pool(memory);
  memory.is_broken = true;
  try {
    (void)pool.allocate(100);
    FAIL() << "the device is broken";
  } catch (const OutOfMemoryError&) {
    FAIL() << "that is not what is wrong";
  } catch (const EmulatorError& error) {
    EXPECT_EQ(error.code(), EIO);
  }
  memory.is_broken = false;
  EXPECT_NE(pool.allocate(100).data(), nullptr);
  EXPECT_EQ(pool.statistics().misses, 1U);
}

TEST(StreamPool, RefusesStreamsThatAreGoneAndRecording) {
  ManualMemory memory;
  StreamPool pool(memory);
  StreamId gone;
  {
    const Stream stream = memory.make_stream();
    gone = stream.id();
  }
  EXPECT_THROW((void)pool.allocate(100, gone), Error);
  PoolBuffer buffer = pool.allocate(100);
  EXPECT_THROW(buffer.hand_to(gone), Error);
  EXPECT_EQ(buffer.stream(), StreamId{});
  memory.is_recording = true;
  EXPECT_THROW((void)pool.allocate(100), Error);
  buffer = PoolBuffer();  // freed all the same, without an event
  EXPECT_EQ(memory.records, 1) << "the one of the refused handing over";
  memory.is_recording = false;
  EXPECT_EQ(pool.statistics().live_buffers, 0U);
  (void)pool.allocate(100);
  EXPECT_EQ(pool.statistics().hits_of(Reuse::same_stream), 1U);
}

// Each thread has streams of its own, some short-lived, and hands some buffers to another thread to be freed there.
TEST(StreamPool, SeveralThreadsUseItAtOnce) {
  LimitedHost host(64 * kMiB);
  StreamPool pool(host.memory, {48 * kMiB});
  std::mutex mutex;
  std::vector<PoolBuffer> handed;
  std::vector<int> faults(4);
  const auto work = [&](std::size_t id) {
    std::mt19937_64 random(id);
    Stream stream = host.memory.make_stream();
    std::vector<PoolBuffer> held;
    const auto tag = static_cast<std::uint8_t>(id + 1);
    for (int round = 0; round < 1500; ++round) {
      if (random() % 2 == 0 && held.size() < 30) {
        held.push_back(pool.allocate(1 + random() % (random() % 8 == 0 ? 300000 : 5000), stream.id()));
        host.memory.fill(stream.id(), held.back().span(), tag);
      } else if (!held.empty()) {
        const auto* bytes = static_cast<const std::uint8_t*>(held.back().data());
        faults[id] += std::all_of(bytes, bytes + held.back().bytes(), [&](std::uint8_t b) { return b == tag; }) ? 0 : 1;
        if (random() % 10 == 0) {
          const std::lock_guard lock(mutex);
          handed.push_back(std::move(held.back()));
          if (handed.size() > 20) {
            handed.clear();
          }
        }
        held.pop_back();
      }
      if (random() % 200 == 0) {
        (void)pool.trim(random() % (20 * kMiB));
        for (PoolBuffer& buffer : held) {
          buffer.hand_to({});
        }
        stream = host.memory.make_stream();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t id = 0; id < 4; ++id) {
    threads.emplace_back(work, id);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  handed.clear();
  EXPECT_EQ(faults, std::vector<int>(4, 0));
  EXPECT_EQ(pool.statistics().live_block_bytes, 0U);
  (void)pool.trim();
  EXPECT_EQ(pool.statistics().held_bytes, 0U);
}

}  // namespace
}  // namespace pascaline::testing
