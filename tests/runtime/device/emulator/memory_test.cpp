#include <algorithm>
#include <thread>

#include "core/util/available_memory.hpp"
#include "runtime/device/emulator/emulated_memory.hpp"
#include "support.hpp"
#include "tests/core/util/message_of.hpp"

namespace pascaline::testing {
namespace {

constexpr std::uint64_t kLimit = 1 << 20;

std::vector<std::byte> bytes_in(DeviceSpan span) {
  const auto* data = static_cast<const std::byte*>(span.data);
  return {data, data + span.bytes};
}

TEST(DeviceSpan, SlicesLieInTheRange) {
  std::byte data[10];
  const DeviceSpan span{data, sizeof data};
  EXPECT_EQ(span.slice(3, 7).data, data + 3);
  EXPECT_EQ(span.slice(10, 0).bytes, 0U);
  EXPECT_THROW((void)span.slice(3, 8), Error);
  EXPECT_THROW((void)span.slice(11, 0), Error);
  EXPECT_THROW((void)span.slice(1, ~std::size_t{0}), Error);
}

TEST(EmulatedMemory, StreamsAndEventsAreTakenAndForeignOnesRefused) {
  const auto device = open_emulated_device();
  DeviceMemory& memory = device->memory();
  const Stream stream = memory.make_stream();
  const Event event = memory.make_event();
  EXPECT_TRUE(stream);
  EXPECT_NE(stream.id(), StreamId{});
  EXPECT_TRUE(memory.is_done(event)) << "never recorded";
  memory.wait(stream.id(), event);
  memory.record(event, stream.id());
  EXPECT_TRUE(memory.is_done(event));
  memory.synchronize(event);
  memory.synchronize(stream.id());
  memory.synchronize(StreamId{});
  StreamId gone;
  {
    const Stream brief = memory.make_stream();
    gone = brief.id();
    EXPECT_TRUE(memory.is_live(gone));
  }
  EXPECT_FALSE(memory.is_live(gone));
  EXPECT_TRUE(memory.is_live(StreamId{}));
  EXPECT_NE(message_of([&] { memory.record(event, gone); }).find("cannot record an event on a stream"),
            std::string::npos);
  EXPECT_THROW(memory.record(Event(), stream.id()), EmulatorError);
  EXPECT_THROW(memory.synchronize(StreamId{event.number()}), EmulatorError) << "an event is no stream";
  EXPECT_THROW((void)memory.is_done(Event()), EmulatorError);
  EXPECT_THROW(memory.fill(gone, {}, 0), EmulatorError);
}

TEST(EmulatedMemory, CopiesPartsInEveryDirection) {
  const auto device = open_emulated_device();
  DeviceMemory& memory = device->memory();
  const Stream stream = memory.make_stream();
  const RawBuffer a = memory.allocate_raw(100);
  const Buffer b = device->allocate(50);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % DeviceMemory::kAlignment, 0U);
  PinnedBuffer pinned = memory.allocate_pinned(30);
  std::fill(pinned.bytes().begin(), pinned.bytes().end(), std::byte{7});
  memory.fill(stream.id(), a.span(), 1);
  memory.upload(stream.id(), a.span().slice(10, 30), pinned.bytes());
  memory.copy(stream.id(), b.span(), a.span().slice(30, 50));
  std::vector<std::byte> back(50);
  memory.download(stream.id(), back, b.span());
  std::vector<std::byte> expected(50, std::byte{1});
  std::fill(expected.begin(), expected.begin() + 10, std::byte{7});
  EXPECT_EQ(back, expected);
  EXPECT_TRUE(device->guards_intact(b));
  EXPECT_THROW(memory.upload(stream.id(), a.span(), pinned.bytes()), EmulatorError);
  EXPECT_THROW(memory.download(stream.id(), back, a.span()), EmulatorError);
  EXPECT_THROW(memory.copy(stream.id(), a.span(), b.span()), EmulatorError);
  memory.upload({}, {}, {});
  memory.fill({}, {}, 1);
  EXPECT_NE(memory.allocate_raw(0).data(), nullptr);
}

TEST(EmulatedMemory, KeepsToItsLimit) {
  EmulatedState state;
  EmulatedMemory memory(state, kLimit);
  {
    const RawBuffer most = memory.allocate_raw(kLimit - 1000);
    EXPECT_LE(memory.state().free_bytes, 1000U);
    EXPECT_EQ(memory.state().total_bytes, kLimit);
    try {
      (void)memory.allocate_raw(1001);
      FAIL() << "one too many";
    } catch (const EmulatorError& error) {
      EXPECT_TRUE(is_out_of_memory(error)) << error.what();
      EXPECT_NE(std::string(error.what()).find("1001 bytes"), std::string::npos) << error.what();
    }
    EXPECT_EQ(memory.allocate_raw(1000).bytes(), 1000U);
    EXPECT_TRUE(memory.allocate_pinned(2000)) << "page-locked memory is the host's own";
  }
  EXPECT_EQ(memory.allocate_raw(kLimit).bytes(), kLimit);
  EXPECT_THROW((void)memory.allocate_raw(~std::size_t{0}), EmulatorError);
  EXPECT_THROW((void)memory.allocate_pinned(~std::size_t{0}), EmulatorError);
  EmulatedMemory unlimited(state, ~std::uint64_t{0});
  EXPECT_THROW((void)unlimited.allocate_raw(~std::size_t{0}), EmulatorError);
  const std::string beyond = message_of([&] { (void)unlimited.allocate_raw(available_memory_bytes() + (1U << 30)); });
  EXPECT_NE(beyond.find(" are available"), std::string::npos) << beyond << " (addresses alone could be had)";
  EXPECT_NO_THROW((void)unlimited.allocate_raw(10)) << "what was refused does not count";
}

TEST(EmulatedMemory, HandlesMoveAndGoOnce) {
  EmulatedState state;
  EmulatedMemory memory(state, kLimit);
  RawBuffer a = memory.allocate_raw(kLimit / 2);
  RawBuffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): a moved-from handle holds nothing
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.bytes(), 0U);
  b = memory.allocate_raw(kLimit / 2);
  EXPECT_EQ(memory.allocate_raw(kLimit / 2).bytes(), kLimit / 2) << "what b held went";
  RawBuffer& self = b;
  b = std::move(self);
  EXPECT_TRUE(b);
}

TEST(GrowingBuffer, KeepsAddressAndContentsAsItGrows) {
  EmulatedState state;
  EmulatedMemory memory(state, kLimit);
  ASSERT_TRUE(memory.can_reserve());
  GrowingBuffer buffer = memory.reserve(std::size_t{1} << 33);
  EXPECT_EQ(buffer.mapped_bytes(), 0U);
  EXPECT_GE(buffer.reserved_bytes(), std::size_t{1} << 33);
  void* const address = buffer.data();
  std::size_t filled = 0;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{1}, std::size_t{65536}, std::size_t{65537}, std::size_t{500000}, std::size_t{3}}) {
    buffer.grow_to(bytes);
    EXPECT_EQ(buffer.data(), address);
    EXPECT_GE(buffer.mapped_bytes(), std::max(bytes, filled));
    EXPECT_EQ(buffer.span().bytes, buffer.mapped_bytes());
    const std::vector<std::byte> held = bytes_in(buffer.span().slice(0, filled));
    EXPECT_TRUE(std::all_of(held.begin(), held.end(), [](std::byte byte) { return byte == std::byte{9}; }));
    memory.fill({}, buffer.span(), 9);
    filled = buffer.mapped_bytes();
  }
  const std::size_t before = buffer.mapped_bytes();
  try {
    buffer.grow_to(kLimit + 1);
    FAIL() << "beyond the limit";
  } catch (const EmulatorError& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
  }
  EXPECT_EQ(buffer.mapped_bytes(), before) << "it is as it was";
  EXPECT_NE(message_of([&] { buffer.grow_to(buffer.reserved_bytes() + 1); }).find("are reserved"), std::string::npos);
  GrowingBuffer moved = std::move(buffer);
  EXPECT_EQ(buffer.mapped_bytes(), 0U);  // NOLINT(bugprone-use-after-move): a moved-from buffer holds nothing
  EXPECT_EQ(moved.mapped_bytes(), before);
  moved = GrowingBuffer();
  EXPECT_EQ(memory.allocate_raw(kLimit).bytes(), kLimit) << "its memory was given back";
  EXPECT_THROW((void)memory.reserve(~std::size_t{0}), EmulatorError);
  EXPECT_THROW(moved.grow_to(1), Error);
}

TEST(EmulatedMemory, AResetMakesHandlesInvalidAndHarmless) {
  const auto device = open_emulated_device();
  DeviceMemory& memory = device->memory();
  const Stream stream = memory.make_stream();
  const Event event = memory.make_event();
  const RawBuffer buffer = memory.allocate_raw(100);
  GrowingBuffer growing = memory.reserve(200000);
  growing.grow_to(100);
  device->reset();
  EXPECT_FALSE(memory.is_live(stream.id()));
  EXPECT_THROW(memory.record(event, {}), EmulatorError);
  EXPECT_THROW(growing.grow_to(200000), EmulatorError);
  const RawBuffer after = memory.allocate_raw(100);
  memory.fill({}, after.span(), 1);
}

TEST(EmulatedMemory, AFailedKernelFailsWhatComesAfter) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "deadlock");
  DeviceMemory& memory = device->memory();
  const RawBuffer buffer = memory.allocate_raw(4096);
  EXPECT_THROW(run(*device, kernel, {{1, 1, 1}, {64, 1, 1}, 0}, buffer.data()), EmulatorError);
  EXPECT_THROW(memory.synchronize(StreamId{}), EmulatorError);
  EXPECT_NE(message_of([&] { (void)memory.allocate_raw(1); }).find("needs a reset"), std::string::npos);
  device->reset();
  EXPECT_NO_THROW((void)memory.allocate_raw(1));
}

TEST(EmulatedMemory, ARecordingThreadIsRefusedAndOthersGoOnButForTheDefaultStream) {
  const auto device = open_emulated_device();
  DeviceMemory& memory = device->memory();
  const Stream stream = memory.make_stream();
  const Event event = memory.make_event();
  EXPECT_FALSE(memory.recording());
  (void)device->record([&] {
    EXPECT_TRUE(memory.recording());
    EXPECT_THROW(memory.record(event, stream.id()), EmulatorError);
    EXPECT_THROW((void)memory.allocate_raw(1), EmulatorError);
    std::string refused;
    bool other_records = true;
    std::thread([&] {
      other_records = memory.recording();
      memory.record(event, stream.id());
      (void)memory.allocate_raw(1);
      refused = message_of([&] { memory.record(event, {}); });
    }).join();
    EXPECT_FALSE(other_records);
    EXPECT_NE(refused.find("while launches are recorded"), std::string::npos) << refused;
  });
  EXPECT_FALSE(memory.recording());
  memory.record(event, {});
}

TEST(EmulatedDevice, AGraphIsUpdatedInPlaceWhereItsFormStays) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "block.cu", "no_barriers");
  const Buffer data = to_device(*device, std::vector<float>(64, 1.0F));
  const auto work = [&](int count, std::uint8_t byte) {
    return [&, count, byte] {
      device->fill(data, byte);
      void* pointer = data.data();
      int n = count;
      void* arguments[] = {&pointer, &n};
      device->launch(kernel, {{1, 1, 1}, {64, 1, 1}, 0}, arguments);
    };
  };
  const auto result = [&](const Graph& graph) {
    device->launch(graph);
    return to_host<float>(*device, data);
  };
  Graph graph = device->record(work(32, 0));
  const void* const handle = graph.handle();
  EXPECT_EQ(result(graph)[40], 0.0F);
  EXPECT_TRUE(device->update(graph, work(48, 0)));
  EXPECT_EQ(graph.handle(), handle);
  EXPECT_EQ(result(graph)[40], 1.0F);
  EXPECT_EQ(result(graph)[50], 0.0F);
  EXPECT_FALSE(device->update(graph, [&] { device->fill(data, 0); })) << "another number of steps";
  EXPECT_EQ(result(graph)[40], 0.0F);
  EXPECT_FALSE(device->update(graph, [&] { work(16, 0)(); }));
  EXPECT_EQ(result(graph)[10], 1.0F);
  EXPECT_THROW((void)device->update(graph, [] { throw Error("stop"); }), Error);
  EXPECT_FALSE(device->recording());
  EXPECT_EQ(result(graph)[10], 1.0F) << "it is as it was";
  Graph empty;
  EXPECT_FALSE(device->update(empty, work(64, 0)));
  EXPECT_EQ(result(empty)[63], 1.0F);
}

}  // namespace
}  // namespace pascaline::testing
