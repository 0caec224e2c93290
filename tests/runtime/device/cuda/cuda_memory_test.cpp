#include <thread>

#include "core/error.hpp"
#include "runtime/device/cuda/driver_api.hpp"
#include "tests/runtime/device/cuda/gpu_fixture.hpp"

namespace pascaline::testing {
namespace {

// One thread that keeps the device busy for so many cycles of its clock, then writes.
constexpr const char* kSlow = R"(
extern "C" __global__ void slow(int* p, int value, long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  *p = value;
}
extern "C" __global__ void set(int* p, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = value;
})";
constexpr long long kManyCycles = 400'000'000;  // a fifth of a second at 2 GHz
constexpr std::size_t kMiB = std::size_t{1} << 20;

class CudaMemoryTest : public GpuTest {
 protected:
  DeviceMemory& memory() { return device_->memory(); }
  /// What lies there, once the default stream came so far.
  std::vector<int> ints(DeviceSpan span) {
    std::vector<int> back(span.bytes / sizeof(int));
    memory().download({}, std::as_writable_bytes(std::span(back)), span);
    memory().synchronize(StreamId{});
    return back;
  }
};

TEST_F(CudaMemoryTest, StreamsWorkBesideEachOther) {
  const Kernel slow = load(kSlow, "slow");
  const RawBuffer one = memory().allocate_raw(sizeof(int));
  const RawBuffer other = memory().allocate_raw(kMiB);
  const PinnedBuffer pinned = memory().allocate_pinned(kMiB);
  std::fill(pinned.bytes().begin(), pinned.bytes().end(), std::byte{3});
  const Stream copies = memory().make_stream();
  const Event kernel_done = memory().make_event();
  const Event copy_done = memory().make_event();
  launch(slow, {}, one.data(), 5, kManyCycles);
  memory().record(kernel_done, {});
  memory().upload(copies.id(), other.span(), pinned.bytes());
  memory().record(copy_done, copies.id());
  memory().synchronize(copy_done);
  EXPECT_FALSE(memory().is_done(kernel_done)) << "the copy did not wait for the kernel";
  memory().synchronize(kernel_done);
  EXPECT_TRUE(memory().is_done(kernel_done));
  EXPECT_EQ(ints(one.span()), std::vector<int>{5});
  EXPECT_EQ(ints(other.span().slice(kMiB - 4, 4)), std::vector<int>{0x03030303});
}

TEST_F(CudaMemoryTest, AStreamThatWaitsForAnEventComesAfterIt) {
  const Kernel slow = load(kSlow, "slow");
  const RawBuffer from = memory().allocate_raw(sizeof(int));
  const RawBuffer to = memory().allocate_raw(sizeof(int));
  memory().fill({}, from.span(), 0);
  const Stream stream = memory().make_stream();
  const Event event = memory().make_event();
  EXPECT_TRUE(memory().is_done(event)) << "never recorded";
  memory().wait(stream.id(), event);
  launch(slow, {}, from.data(), 77, kManyCycles);
  memory().record(event, {});
  memory().wait(stream.id(), event);
  memory().copy(stream.id(), to.span(), from.span());
  memory().record(event, stream.id());  // the wait stays with the point where the event stood
  EXPECT_FALSE(memory().is_done(event));
  memory().synchronize(stream.id());
  EXPECT_TRUE(memory().is_done(event));
  EXPECT_EQ(ints(to.span()), std::vector<int>{77});
}

TEST_F(CudaMemoryTest, AStreamThatGoesDoesItsWorkFirst) {
  const Kernel slow = load(kSlow, "slow");
  const RawBuffer from = memory().allocate_raw(sizeof(int));
  const RawBuffer to = memory().allocate_raw(sizeof(int));
  const Event event = memory().make_event();
  const Event copied = memory().make_event();
  StreamId gone;
  {
    const Stream stream = memory().make_stream();
    gone = stream.id();
    launch(slow, {}, from.data(), 8, kManyCycles / 4);
    memory().record(event, {});
    memory().wait(gone, event);
    memory().copy(gone, to.span(), from.span());
    memory().record(copied, gone);
  }
  EXPECT_TRUE(memory().is_done(copied));
  EXPECT_FALSE(memory().is_live(gone));
  EXPECT_EQ(ints(to.span()), std::vector<int>{8});
  EXPECT_THROW(memory().synchronize(gone), CudaError);
  EXPECT_THROW(memory().record(event, gone), CudaError);
}

TEST_F(CudaMemoryTest, CopiesPartsInEveryDirection) {
  constexpr std::size_t kCount = 100'000;
  const Stream stream = memory().make_stream();
  const PinnedBuffer up = memory().allocate_pinned(kCount);
  const PinnedBuffer down = memory().allocate_pinned(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    up.bytes()[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  const RawBuffer a = memory().allocate_raw(2 * kCount);
  const Buffer b = device_->allocate(kCount);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % DeviceMemory::kAlignment, 0U);
  memory().fill(stream.id(), a.span(), 0xEE);
  memory().upload(stream.id(), a.span().slice(1001, kCount), up.bytes());
  memory().copy(stream.id(), b.span(), a.span().slice(1000, kCount));
  memory().download(stream.id(), down.bytes(), b.span());
  memory().synchronize(stream.id());
  EXPECT_EQ(down.bytes()[0], std::byte{0xEE});
  EXPECT_TRUE(std::equal(down.bytes().begin() + 1, down.bytes().end(), up.bytes().begin()));
  EXPECT_TRUE(device_->guards_intact(b));
  EXPECT_THROW(memory().upload(stream.id(), a.span(), up.bytes()), CudaError);
  EXPECT_THROW(memory().download(stream.id(), down.bytes(), a.span()), CudaError);
  EXPECT_THROW(memory().copy(stream.id(), a.span(), b.span()), CudaError);
  memory().copy(stream.id(), {}, {});
}

TEST_F(CudaMemoryTest, AGrowingBufferKeepsAddressContentsAndGraphs) {
  if (!memory().can_reserve()) {
    EXPECT_THROW((void)memory().reserve(1), CudaError);
    GTEST_SKIP() << "this driver puts no memory behind reserved addresses";
  }
  const Kernel set = load(kSlow, "set");
  GrowingBuffer buffer = memory().reserve(device_->info().memory_bytes * 2);
  EXPECT_EQ(buffer.mapped_bytes(), 0U);
  void* const address = buffer.data();
  const RawBuffer count = memory().allocate_raw(sizeof(int));
  buffer.grow_to(1000);
  const std::size_t page = buffer.mapped_bytes();
  EXPECT_GE(page, 1000U);
  memory().fill({}, buffer.span(), 1);
  const Graph graph = device_->record([&] { launch(set, {{1, 1, 1}, {256, 1, 1}, 0}, buffer.data(), 42, 256); });
  for (std::size_t pages = 2; pages <= 64; pages *= 2) {
    const std::size_t before = buffer.mapped_bytes();
    buffer.grow_to(pages * page - 1);
    EXPECT_EQ(buffer.mapped_bytes(), pages * page);
    EXPECT_EQ(buffer.data(), address);
    EXPECT_EQ(ints(buffer.span().slice(before - 4, 4)), std::vector<int>{0x01010101});
    memory().fill({}, buffer.span().slice(before, buffer.mapped_bytes() - before), 1);
    EXPECT_EQ(ints(buffer.span().slice(buffer.mapped_bytes() - 4, 4)), std::vector<int>{0x01010101});
  }
  device_->launch(graph);
  EXPECT_EQ(ints(buffer.span().slice(0, 8)), (std::vector<int>{42, 42})) << "a graph of before still finds it";
  try {
    buffer.grow_to(buffer.reserved_bytes());
    FAIL() << "twice the device's memory";
  } catch (const CudaError& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_EQ(buffer.mapped_bytes(), 64 * page);
  EXPECT_THROW(buffer.grow_to(buffer.reserved_bytes() + 1), Error);
  EXPECT_EQ(ints(buffer.span().slice(8, 4)), std::vector<int>{42});
  EXPECT_TRUE(device_works());
}

// Free memory as the driver tells it is also other programs': what was given back can be taken again.
TEST_F(CudaMemoryTest, AGrowingBufferGivesItsMemoryBack) {
  if (!memory().can_reserve()) {
    GTEST_SKIP() << "this driver puts no memory behind reserved addresses";
  }
  const std::size_t share = memory().state().free_bytes / 5;
  for (int i = 0; i < 8; ++i) {
    GrowingBuffer buffer = memory().reserve(share);
    ASSERT_NO_THROW(buffer.grow_to(share)) << "after " << i << " of them";
    EXPECT_GE(buffer.mapped_bytes(), share);
  }
  EXPECT_TRUE(device_works());
}

TEST_F(CudaMemoryTest, FreeMemoryIsTold) {
  const MemoryState before = memory().state();
  EXPECT_LE(before.free_bytes, before.total_bytes);
  const RawBuffer buffer = memory().allocate_raw(256 * kMiB);
  EXPECT_LE(memory().state().free_bytes, before.free_bytes - 200 * kMiB);
  try {
    (void)memory().allocate_raw(before.total_bytes);
    FAIL() << "all of it, and the driver has some";
  } catch (const CudaError& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_THROW((void)memory().allocate_raw(~std::size_t{0}), CudaError);
}

TEST_F(CudaMemoryTest, AGraphIsUpdatedInPlaceWhereItsFormStays) {
  const Kernel set = load(kSlow, "set");
  const RawBuffer data = memory().allocate_raw(1024 * sizeof(int));
  const Buffer other = device_->allocate(16);
  const auto work = [&](int value, int count) {
    return [&, value, count] {
      launch(set, {{static_cast<unsigned>(count + 255) / 256, 1, 1}, {256, 1, 1}, 0}, data.data(), value, count);
    };
  };
  const auto first_and_last = [&](const Graph& graph) {
    memory().fill({}, data.span(), 0);
    device_->launch(graph);
    const std::vector<int> all = ints(data.span());
    return std::pair(all.front(), all.back());
  };
  Graph graph = device_->record(work(1, 100));
  EXPECT_EQ(first_and_last(graph), std::pair(1, 0));
  const void* const handle = graph.handle();
  EXPECT_TRUE(device_->update(graph, work(2, 1024))) << "other arguments and another grid";
  EXPECT_EQ(graph.handle(), handle);
  EXPECT_EQ(first_and_last(graph), std::pair(2, 2));
  const auto two_steps = [&] {
    work(3, 1024)();
    work(4, 1)();
  };
  EXPECT_FALSE(device_->update(graph, two_steps)) << "another number of steps";
  EXPECT_EQ(first_and_last(graph), std::pair(4, 3));
  EXPECT_FALSE(device_->update(graph, [&] {
    device_->fill(other, 1);
    work(5, 1024)();
  })) << "another kind of step";
  EXPECT_EQ(first_and_last(graph), std::pair(5, 5));
  EXPECT_THROW((void)device_->update(graph, [] { throw Error("stop"); }), Error);
  EXPECT_EQ(first_and_last(graph), std::pair(5, 5)) << "it is as it was";
  Graph empty;
  EXPECT_FALSE(device_->update(empty, work(6, 1024)));
  EXPECT_EQ(first_and_last(empty), std::pair(6, 6));
}

TEST_F(CudaMemoryTest, ARecordingThreadIsRefusedAndOthersGoOn) {
  const Stream stream = memory().make_stream();
  const Event event = memory().make_event();
  const RawBuffer data = memory().allocate_raw(1024);
  const Kernel set = load(kSlow, "set");
  const Graph graph = device_->record([&] {
    launch(set, {{1, 1, 1}, {256, 1, 1}, 0}, data.data(), 9, 256);
    EXPECT_THROW(memory().record(event, stream.id()), CudaError);
    EXPECT_THROW((void)memory().allocate_raw(1), CudaError);
    std::thread([&] {
      EXPECT_FALSE(memory().recording());
      const RawBuffer own = memory().allocate_raw(kMiB);
      memory().fill(stream.id(), own.span(), 1);
      memory().record(event, stream.id());
      memory().synchronize(event);
      EXPECT_THROW(memory().record(event, {}), CudaError);
    }).join();
  });
  device_->launch(graph);
  EXPECT_EQ(ints(data.span().slice(0, 4)), std::vector<int>{9}) << "the graph was not spoilt";
}

TEST_F(CudaMemoryTest, WhatWasMadeBeforeAResetIsRefusedAndHarmless) {
  Stream stream = memory().make_stream();
  Event event = memory().make_event();
  RawBuffer buffer = memory().allocate_raw(kMiB);
  PinnedBuffer pinned = memory().allocate_pinned(kMiB);
  GrowingBuffer growing;
  if (memory().can_reserve()) {
    growing = memory().reserve(64 * kMiB);
    growing.grow_to(1);
  }
  device_->reset();
  EXPECT_FALSE(memory().is_live(stream.id()));
  EXPECT_THROW(memory().record(event, {}), CudaError);
  EXPECT_THROW(memory().fill(stream.id(), buffer.span(), 0), CudaError);
  if (growing) {
    EXPECT_THROW(growing.grow_to(64 * kMiB), CudaError);
  }
  const RawBuffer after = memory().allocate_raw(kMiB);
  stream = Stream();
  event = Event();
  buffer = RawBuffer();
  pinned = PinnedBuffer();
  growing = GrowingBuffer();
  memory().fill({}, after.span(), 2);
  EXPECT_EQ(ints(after.span().slice(0, 4)), std::vector<int>{0x02020202});
  EXPECT_TRUE(device_works());
}

}  // namespace
}  // namespace pascaline::testing
