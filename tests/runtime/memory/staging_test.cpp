#include "runtime/memory/staging.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "tests/runtime/memory/manual_memory.hpp"

namespace pascaline::testing {
namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed = 0) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::byte>((i + seed) * 7 + (i + seed) / 251);
  }
  return out;
}

std::vector<std::byte> contents(DeviceSpan span) {
  const auto* data = static_cast<const std::byte*>(span.data);
  return {data, data + span.bytes};
}

TEST(StagingRing, PiecesComeInOrderAndArriveWhole) {
  EmulatedState state;
  EmulatedMemory memory(state, 1 << 20);
  StagingRing ring(memory, 100, 3);
  std::uint64_t sum = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{99}, std::size_t{100}, std::size_t{101},
                                  std::size_t{300}, std::size_t{1234}}) {
    const RawBuffer to = memory.allocate_raw(bytes);
    const std::vector<std::byte> sent = pattern(bytes);
    std::size_t expected = 0;
    ring.upload(to.span(), [&](std::span<std::byte> piece, std::size_t offset) {
      EXPECT_EQ(offset, expected);
      EXPECT_LE(piece.size(), 100U);
      EXPECT_FALSE(piece.empty());
      std::memcpy(piece.data(), sent.data() + offset, piece.size());
      expected += piece.size();
    });
    ring.finish();
    EXPECT_EQ(expected, bytes);
    EXPECT_EQ(contents(to.span()), sent);
    sum += bytes;
    EXPECT_EQ(ring.uploaded_bytes(), sum);
  }
  EXPECT_EQ(ring.waits_for_device(), 0U) << "the host copies at once";
}

TEST(StagingRing, ASlotIsFilledAgainOnlyWhenItsCopyIsDone) {
  ManualMemory memory;
  const RawBuffer to = memory.allocate_raw(1000);
  const std::vector<std::byte> sent = pattern(1000);
  StagingRing ring(memory, 100, 2);
  int produced = 0;
  ring.upload(to.span(), [&](std::span<std::byte> piece, std::size_t offset) {
    std::memcpy(piece.data(), sent.data() + offset, piece.size());
    ++produced;
  });
  EXPECT_EQ(produced, 10);
  EXPECT_EQ(ring.waits_for_device(), 8U) << "each but the first two met a copy that was not done";
  EXPECT_NE(contents(to.span()), sent) << "the last copies were not waited for";
  ring.finish();
  EXPECT_EQ(contents(to.span()), sent);
}

TEST(StagingRing, FillingGoesOnWhileTheDeviceCopies) {
  ManualMemory memory;
  const RawBuffer to = memory.allocate_raw(400);
  StagingRing ring(memory, 100, 4);
  ring.upload(to.span(), pattern(400));
  EXPECT_EQ(ring.waits_for_device(), 0U);
  memory.drain();
  EXPECT_EQ(contents(to.span()), pattern(400));
}

TEST(StagingRing, AnotherStreamCanBePutBehindTheUploads) {
  ManualMemory memory;
  const RawBuffer to = memory.allocate_raw(100);
  StagingRing ring(memory, 100, 4);
  ring.upload(to.span(), pattern(100));
  ring.order_before({});
  std::vector<std::byte> seen;
  memory.enqueue({}, [&] { seen = contents(to.span()); });
  EXPECT_FALSE(memory.step({}));
  memory.drain();
  EXPECT_EQ(seen, pattern(100));
}

TEST(StagingRing, WhatTheProducerThrowsComesThroughAndTheRingGoesOn) {
  EmulatedState state;
  EmulatedMemory memory(state, 1 << 20);
  StagingRing ring(memory, 100, 2);
  const RawBuffer to = memory.allocate_raw(1000);
  for (int round = 0; round < 5; ++round) {
    EXPECT_THROW(ring.upload(to.span(),
                             [](std::span<std::byte>, std::size_t offset) {
                               if (offset == 300) {
                                 throw Error("the file ends here");
                               }
                             }),
                 Error);
  }
  EXPECT_EQ(ring.uploaded_bytes(), 5U * 300);
  ring.upload(to.span(), pattern(1000));
  ring.finish();
  EXPECT_EQ(contents(to.span()), pattern(1000));
}

TEST(StagingRing, SeveralThreadsShareTheSlots) {
  EmulatedState state;
  EmulatedMemory memory(state, 8 << 20);
  StagingRing ring(memory, 1000, 3);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 200'300;
  const RawBuffer to = memory.allocate_raw(kThreads * kEach);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { ring.upload(to.span().slice(i * kEach, kEach), pattern(kEach, i)); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ring.finish();
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(contents(to.span().slice(i * kEach, kEach)), pattern(kEach, i)) << i;
  }
  EXPECT_EQ(ring.uploaded_bytes(), kThreads * kEach);
}

TEST(StagingRing, RefusesWhatCannotWork) {
  EmulatedState state;
  EmulatedMemory memory(state, 1 << 20);
  EXPECT_THROW(StagingRing(memory, 0, 2), Error);
  EXPECT_THROW(StagingRing(memory, 100, 0), Error);
  EXPECT_THROW(StagingRing(memory, std::size_t{1} << 60, 1), EmulatorError);
  StagingRing ring(memory, 100, 2);
  const RawBuffer to = memory.allocate_raw(10);
  EXPECT_THROW(ring.upload(to.span(), pattern(11)), Error);
  EXPECT_EQ(ring.uploaded_bytes(), 0U);
}

}  // namespace
}  // namespace pascaline::testing
