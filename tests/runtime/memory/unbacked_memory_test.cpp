#include "runtime/memory/unbacked_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/error.hpp"

namespace pascaline::testing {
namespace {

TEST(UnbackedMemoryTest, ABufferOfAnySizeReadsAsZeros) {
  UnbackedMemory memory;
  constexpr std::size_t kTebibyte = std::size_t{1} << 40;
  const RawBuffer buffer = memory.allocate_raw(kTebibyte);
  EXPECT_EQ(buffer.bytes(), kTebibyte);
  const std::array<std::byte, 3> written{std::byte{1}, std::byte{2}, std::byte{3}};
  memory.upload({}, buffer.span().slice(kTebibyte - 3, 3), written);
  std::array<std::byte, 3> read = written;
  memory.download({}, read, buffer.span().slice(kTebibyte - 3, 3));
  EXPECT_EQ(read, (std::array<std::byte, 3>{}));
  EXPECT_THROW(memory.download({}, read, buffer.span().slice(0, 2)), Error);
  EXPECT_THROW(memory.upload({}, buffer.span().slice(0, 2), written), Error);
  EXPECT_THROW(memory.copy({}, buffer.span().slice(0, 2), buffer.span().slice(8, 3)), Error);
}

TEST(UnbackedMemoryTest, BuffersAreAlignedAndApart) {
  UnbackedMemory memory;
  const RawBuffer first = memory.allocate_raw(1000);
  const RawBuffer second = memory.allocate_raw(0);
  GrowingBuffer range = memory.reserve(std::size_t{3} << 20);
  const auto address = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data); };
  for (const void* data : {first.data(), second.data(), range.data()}) {
    EXPECT_EQ(address(data) % DeviceMemory::kAlignment, 0U);
  }
  EXPECT_GE(address(second.data()), address(first.data()) + 1000);
  EXPECT_GT(address(range.data()), address(second.data()));
  EXPECT_EQ(range.mapped_bytes(), 0U);
  range.grow_to(100'000);
  EXPECT_GE(range.mapped_bytes(), 100'000U);
  EXPECT_LE(range.mapped_bytes(), range.reserved_bytes());
}

TEST(UnbackedMemoryTest, PageLockedMemoryIsReal) {
  UnbackedMemory memory;
  const PinnedBuffer one = memory.allocate_pinned(64);
  { const PinnedBuffer other = memory.allocate_pinned(64); }
  std::fill(one.bytes().begin(), one.bytes().end(), std::byte{7});
  EXPECT_EQ(one.bytes()[63], std::byte{7});
}

}  // namespace
}  // namespace pascaline::testing
