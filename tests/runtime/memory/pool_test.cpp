#include "runtime/memory/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "tests/runtime/memory/manual_memory.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kKiB = std::size_t{1} << 10;
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Host memory with a limit.
struct LimitedHost {
  explicit LimitedHost(std::uint64_t bytes) : memory(state, bytes) {}
  EmulatedState state;
  EmulatedMemory memory;
};

TEST(MemoryPool, GivesAlignedMemoryOfItsOwnToEveryBuffer) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory);
  std::vector<RawBuffer> buffers;
  for (std::size_t i = 0; i < 300; ++i) {
    buffers.push_back(pool.allocate_raw(i * 371));
    EXPECT_EQ(buffers.back().bytes(), i * 371);
    EXPECT_NE(buffers.back().data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % DeviceMemory::kAlignment, 0U);
    pool.fill({}, buffers.back().span(), static_cast<std::uint8_t>(i));
  }
  for (std::size_t i = 0; i < 300; ++i) {
    std::vector<std::byte> back(i * 371);
    pool.download({}, back, buffers[i].span());
    EXPECT_TRUE(std::all_of(back.begin(), back.end(), [&](std::byte byte) { return byte == std::byte(i); })) << i;
  }
}

TEST(MemoryPool, SmallBuffersShareAllocationsOfTheDevice) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory);
  std::vector<RawBuffer> buffers;
  for (int i = 0; i < 64; ++i) {
    buffers.push_back(pool.allocate_raw(kKiB));
  }
  EXPECT_EQ(pool.statistics().device_calls, 1U);
  EXPECT_EQ(pool.statistics().held_bytes, 64 * kKiB);
  buffers.push_back(pool.allocate_raw(1));
  EXPECT_EQ(pool.statistics().slabs, 2U) << "the first is full";
  buffers.push_back(pool.allocate_raw(70 * kKiB));
  EXPECT_EQ(pool.statistics().slabs, 2U) << "what is large lies alone";
  EXPECT_EQ(pool.statistics().held_bytes, 198 * kKiB);
  void* const gap = buffers[10].data();
  buffers.erase(buffers.begin() + 10, buffers.begin() + 14);
  const RawBuffer in_gap = pool.allocate_raw(4 * kKiB);
  EXPECT_EQ(in_gap.data(), gap) << "four neighbours make room for one";
  EXPECT_EQ(pool.statistics().device_calls, 3U);
}

TEST(MemoryPool, SlabsAreAPartOfWhatIsHeld) {
  EXPECT_EQ(MemoryPool::slab_bytes_for(0), 64 * kKiB);
  EXPECT_EQ(MemoryPool::slab_bytes_for(64 * kMiB), kMiB);
  EXPECT_EQ(MemoryPool::slab_bytes_for(350 * kMiB), 4 * kMiB) << "whole units of the driver";
  EXPECT_EQ(MemoryPool::slab_bytes_for(std::uint64_t{4} << 30), 32 * kMiB);
  EXPECT_EQ(MemoryPool::slab_bytes_for(MemoryPool::kUnlimited), 32 * kMiB);
  LimitedHost host(128 * kMiB);
  MemoryPool pool(host.memory);
  const RawBuffer large = pool.allocate_raw(64 * kMiB);
  const RawBuffer small = pool.allocate_raw(100 * kKiB);
  EXPECT_EQ(pool.statistics().held_bytes, 65 * kMiB);
}

TEST(MemoryPool, BuffersMoveAndGoOnce) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory);
  for (const std::size_t bytes : {std::size_t{100}, kMiB}) {
    RawBuffer a = pool.allocate_raw(bytes);
    void* const data = a.data();
    RawBuffer b = std::move(a);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(pool.statistics().live_buffers, 1U);
    b = pool.allocate_raw(bytes);
    EXPECT_EQ(pool.statistics().live_buffers, 1U) << "what b held went";
    EXPECT_EQ(pool.statistics().live_bytes, bytes);
    b = RawBuffer();
    EXPECT_EQ(pool.statistics().live_buffers, 0U);
    EXPECT_EQ(pool.statistics().live_bytes, 0U);
  }
}

TEST(MemoryPool, MemoryGoesBackToTheDevice) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory);
  {
    std::vector<RawBuffer> buffers;
    for (int i = 0; i < 300; ++i) {
      buffers.push_back(pool.allocate_raw(kKiB));
    }
    buffers.push_back(pool.allocate_raw(8 * kMiB));
    EXPECT_EQ(pool.statistics().slabs, 5U);
    EXPECT_EQ(host.memory.state().free_bytes, 64 * kMiB - pool.statistics().held_bytes);
  }
  EXPECT_EQ(pool.statistics().slabs, 1U) << "one that is empty stays";
  EXPECT_EQ(host.memory.state().free_bytes, 64 * kMiB - 64 * kKiB);
  EXPECT_EQ(pool.state().free_bytes, 64 * kMiB) << "it would go for want of memory";
  const RawBuffer all = pool.allocate_raw(64 * kMiB);
  EXPECT_EQ(pool.statistics().slabs, 0U);
  EXPECT_EQ(pool.statistics().peak_held_bytes, 64 * kMiB);
}

TEST(MemoryPool, TheLimitIsNotExceeded) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory, 10 * kMiB);
  EXPECT_EQ(pool.state().free_bytes, 10 * kMiB);
  EXPECT_EQ(pool.state().total_bytes, 10 * kMiB);
  const RawBuffer eight = pool.allocate_raw(8 * kMiB);
  try {
    (void)pool.allocate_raw(3 * kMiB);
    FAIL() << "beyond the limit";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.needed_bytes(), 3 * kMiB);
    EXPECT_EQ(error.free_bytes(), 2 * kMiB);
    const std::string text = error.what();
    EXPECT_NE(text.find("3.0 MiB more exceed the limit of 10.0 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("8.0 MiB are in use"), std::string::npos) << text;
    EXPECT_NE(text.find("--memory-limit"), std::string::npos) << text;
    EXPECT_TRUE(is_out_of_memory(error));
  }
  EXPECT_THROW((void)pool.allocate_raw(11 * kMiB), OutOfMemoryError);
  EXPECT_THROW((void)pool.allocate_raw(~std::size_t{0}), OutOfMemoryError);
  EXPECT_EQ(pool.statistics().live_buffers, 1U);
  EXPECT_NE(pool.allocate_raw(2 * kMiB).data(), nullptr) << "a refusal changes nothing";
  EXPECT_EQ(pool.statistics().peak_held_bytes, 10 * kMiB);
}

TEST(MemoryPool, WhereASlabDoesNotFitABufferLiesAlone) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory, 3 * kKiB);
  const RawBuffer a = pool.allocate_raw(kKiB);
  EXPECT_EQ(pool.statistics().held_bytes, kKiB);
  const RawBuffer b = pool.allocate_raw(2 * kKiB);
  EXPECT_THROW((void)pool.allocate_raw(1), OutOfMemoryError);
  EXPECT_EQ(pool.statistics().peak_held_bytes, 3 * kKiB);
}

TEST(MemoryPool, MemoryBehindRangesCounts) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory, 4 * kMiB);
  GrowingBuffer range = pool.reserve(32 * kMiB);
  EXPECT_EQ(pool.state().free_bytes, 4 * kMiB) << "addresses do not";
  range.grow_to(3 * kMiB);
  EXPECT_EQ(range.mapped_bytes(), 3 * kMiB);
  EXPECT_EQ(pool.statistics().held_bytes, 3 * kMiB);
  EXPECT_THROW(range.grow_to(4 * kMiB + 1), OutOfMemoryError);
  EXPECT_EQ(range.mapped_bytes(), 3 * kMiB) << "it is as it was";
  EXPECT_THROW((void)pool.allocate_raw(2 * kMiB), OutOfMemoryError);
  pool.fill({}, range.span(), 7);
  range.grow_to(4 * kMiB);
  EXPECT_EQ(*static_cast<const std::uint8_t*>(range.data()), 7);
  EXPECT_EQ(pool.state().free_bytes, 0U);
  range = GrowingBuffer();
  EXPECT_EQ(pool.statistics().held_bytes, 0U);
  EXPECT_EQ(host.memory.state().free_bytes, 64 * kMiB);
}

TEST(MemoryPool, WhenTheDeviceIsFullAnEmptySlabGoesBackFirst) {
  LimitedHost host(kMiB);
  MemoryPool pool(host.memory);
  (void)pool.allocate_raw(100);
  EXPECT_EQ(pool.statistics().slabs, 1U);
  const RawBuffer most = pool.allocate_raw(kMiB - 10 * kKiB);
  EXPECT_EQ(pool.statistics().slabs, 0U);
  const RawBuffer small = pool.allocate_raw(kKiB);
  EXPECT_EQ(pool.statistics().held_bytes, kMiB - 9 * kKiB) << "no slab fits";
  try {
    (void)pool.allocate_raw(10 * kKiB);
    FAIL() << "more than there is";
  } catch (const Error& error) {
    EXPECT_TRUE(is_out_of_memory(error));
    EXPECT_EQ(std::string(error.what()).find("limit"), std::string::npos) << "there is none: " << error.what();
  }
}

TEST(MemoryPool, OtherFaultsOfTheDeviceComeThrough) {
  ManualMemory memory;
  MemoryPool pool(memory);
  memory.is_broken = true;
  for (const std::size_t bytes : {std::size_t{100}, kMiB}) {
    try {
      (void)pool.allocate_raw(bytes);
      FAIL() << "the device is broken";
    } catch (const EmulatorError& error) {
      EXPECT_EQ(error.code(), EIO);
    }
  }
  memory.is_broken = false;
  EXPECT_NE(pool.allocate_raw(100).data(), nullptr);
  EXPECT_EQ(pool.statistics().held_bytes, memory.held_bytes);
}

// What a device says while launches are recorded.
class RefusingMemory : public ManualMemory {
 public:
  [[nodiscard]] RawBuffer allocate_raw(std::size_t bytes) override {
    if (is_recording) {
      throw EmulatorError("refused while recording");
    }
    return ManualMemory::allocate_raw(bytes);
  }
};

TEST(MemoryPool, NothingIsGivenOutWhileLaunchesAreRecorded) {
  RefusingMemory memory;
  MemoryPool pool(memory);
  const RawBuffer buffer = pool.allocate_raw(100);
  memory.is_recording = true;
  EXPECT_TRUE(pool.recording());
  EXPECT_THROW((void)pool.allocate_raw(100), EmulatorError) << "although the slab has room";
  memory.is_recording = false;
  EXPECT_NE(pool.allocate_raw(100).data(), nullptr);
}

TEST(MemoryPool, SeveralThreadsUseItAtOnce) {
  LimitedHost host(64 * kMiB);
  MemoryPool pool(host.memory, 48 * kMiB);
  std::vector<int> faults(4);
  const auto work = [&](std::size_t id) {
    std::mt19937_64 random(id);
    std::vector<RawBuffer> held;
    const auto tag = static_cast<std::uint8_t>(id + 1);
    for (int round = 0; round < 1500; ++round) {
      if (random() % 2 == 0 && held.size() < 30) {
        held.push_back(pool.allocate_raw(1 + random() % (random() % 8 == 0 ? 300000 : 5000)));
        pool.fill({}, held.back().span(), tag);
      } else if (!held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        const auto* bytes = static_cast<const std::uint8_t*>(held.back().data());
        faults[id] += std::all_of(bytes, bytes + held.back().bytes(), [&](std::uint8_t b) { return b == tag; }) ? 0 : 1;
        held.pop_back();
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
  EXPECT_EQ(faults, std::vector<int>(4, 0));
  EXPECT_EQ(pool.statistics().live_bytes, 0U);
  EXPECT_LE(pool.statistics().slabs, 1U);
  EXPECT_LE(pool.statistics().peak_held_bytes, 48 * kMiB);
}

}  // namespace
}  // namespace pascaline::testing
