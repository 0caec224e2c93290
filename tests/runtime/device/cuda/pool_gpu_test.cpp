#include <chrono>
#include <cstring>
#include <random>

#include "core/error.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/pool.hpp"
#include "runtime/memory/staging.hpp"
#include "tests/runtime/device/cuda/gpu_fixture.hpp"

namespace pascaline::testing {
namespace {

constexpr std::size_t kPoolMiB = std::size_t{1} << 20;

class PoolGpuTest : public GpuTest {
 protected:
  DeviceMemory& memory() { return device_->memory(); }
};

// Each buffer is filled on its stream, its first and last bytes are copied to a place of their own, and it is freed
// while all that is still going on. A part of a slab that was given out again too early leaves another's bytes there.
TEST_F(PoolGpuTest, BuffersOfSeveralStreamsNeverMix) {
  constexpr std::size_t kRounds = 2000;
  MemoryPool pool(memory(), memory().state().context_bytes + 256 * kPoolMiB);
  const Stream streams[3] = {pool.make_stream(), pool.make_stream(), pool.make_stream()};
  const RawBuffer seen = memory().allocate_raw(2 * kRounds);
  std::vector<std::uint8_t> expected(2 * kRounds);
  std::mt19937_64 random(1);
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto value = static_cast<std::uint8_t>(1 + random() % 255);
    const std::size_t bytes = round % 20 == 0 ? 1 + random() % (16 * kPoolMiB) : 1 + random() % 16'000;
    const RawBuffer buffer = pool.allocate_raw(bytes);
    const StreamId stream = random() % 4 == 0 ? StreamId{} : streams[random() % 3].id();
    pool.fill(stream, buffer.span(), value);
    pool.copy(stream, seen.span().slice(2 * round, 1), buffer.span().slice(0, 1));
    pool.copy(stream, seen.span().slice(2 * round + 1, 1), buffer.span().slice(bytes - 1, 1));
    expected[2 * round] = value;
    expected[2 * round + 1] = value;
  }
  for (const Stream& stream : streams) {
    pool.synchronize(stream.id());
  }
  std::vector<std::uint8_t> back(2 * kRounds);
  pool.download({}, std::as_writable_bytes(std::span(back)), seen.span());
  pool.synchronize(StreamId{});
  EXPECT_EQ(back, expected);
  EXPECT_EQ(pool.statistics().live_buffers, 0U);
  EXPECT_LT(pool.statistics().device_calls, kRounds / 10);
}

TEST_F(PoolGpuTest, WantOfMemoryIsToldAndSurvived) {
  const auto [free_bytes, total_bytes, context_bytes] = memory().state();
  MemoryPool pool(memory(), context_bytes + free_bytes / 2);
  EXPECT_LE(pool.state().free_bytes, free_bytes / 2);
  RawBuffer most = pool.allocate_raw(free_bytes / 4);
  try {
    (void)pool.allocate_raw(free_bytes / 2);
    FAIL() << "half of it is in use";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.needed_bytes(), free_bytes / 2);
    EXPECT_EQ(error.free_bytes(), free_bytes / 2 - free_bytes / 4);
  }
  most = RawBuffer();
  most = pool.allocate_raw(free_bytes / 2);
  EXPECT_TRUE(most) << "what was freed went back";
}

TEST_F(PoolGpuTest, StagedUploadsArriveWhole) {
  constexpr std::size_t kBytes = 100 * kPoolMiB + 12345;
  std::vector<std::byte> sent(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) {
    sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  const RawBuffer to = memory().allocate_raw(kBytes);
  StagingRing ring(memory(), 4 * kPoolMiB, 4);
  const auto begin = std::chrono::steady_clock::now();
  ring.upload(to.span(), sent);
  ring.finish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  RecordProperty("staged_gb_per_s", std::to_string(static_cast<double>(kBytes) / seconds.count() / 1e9));
  ring.order_before({});
  std::vector<std::byte> back(kBytes);
  memory().download({}, back, to.span());
  memory().synchronize(StreamId{});
  EXPECT_EQ(std::memcmp(back.data(), sent.data(), kBytes), 0);
}

TEST_F(PoolGpuTest, AnArenaTakesAsMuchAsItsPlanSays) {
  const Arena arena(memory(), {{"a", 64 * kPoolMiB, 0, 1}, {"b", 32 * kPoolMiB, 1, 2}, {"c", 64 * kPoolMiB, 2, 3}});
  EXPECT_EQ(arena.plan().total_bytes, 96 * kPoolMiB);
  memory().fill({}, arena.view("a"), 1);
  memory().fill({}, arena.view("b"), 2);
  std::vector<std::byte> back(arena.view("a").bytes);
  memory().download({}, back, arena.view("a"));
  memory().synchronize(StreamId{});
  EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](std::byte byte) { return byte == std::byte{1}; }));
}

}  // namespace
}  // namespace pascaline::testing
