#include "runtime/device/emulator/emulated_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "core/util/available_memory.hpp"
#include "core/util/byte_size.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kRangePage = std::size_t{64} << 10;  // a multiple of every page size that Linux runs with
constexpr std::size_t kMaxBytes = std::size_t{1} << 47;
constexpr std::size_t kLookFrom = std::size_t{64} << 20;  // what is available is asked for buffers from this size on

std::size_t rounded(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

void check_copy(const char* doing, std::size_t to, std::size_t from) {
  if (to != from) {
    throw EmulatorError(fmt::format("cannot {} {} bytes to a range of {}", doing, from, to));
  }
}

void* aligned_bytes(std::size_t bytes) {
  void* data = bytes > kMaxBytes ? nullptr
                                 : std::aligned_alloc(DeviceMemory::kAlignment, rounded(std::max<std::size_t>(bytes, 1),
                                                                                        DeviceMemory::kAlignment));
  if (data == nullptr) {
    throw EmulatorError(fmt::format("no memory for {} bytes on the emulated device; use a smaller problem", bytes),
                        ENOMEM);
  }
  return data;
}

}  // namespace

void EmulatedMemory::enter(const char* doing) const {
  state_.check_not_recording(doing, true);
  state_.check_usable(doing);
}

MemoryHandle EmulatedMemory::add(const Item& item) {
  const std::lock_guard lock(mutex_);
  live_.emplace(++last_, item);
  return {this, last_};
}

void EmulatedMemory::require(std::uint64_t number, Kind kind, const char* doing) const {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(number);
  if (found == live_.end() || found->second.kind != kind) {
    throw EmulatorError(fmt::format(
        "cannot {}: the emulated device does not hold it (made before a reset, or of another device)", doing));
  }
}

void EmulatedMemory::require(StreamId stream, const char* doing) const {
  if (stream == StreamId{}) {
    state_.check_not_recording(doing);
  } else {
    require(stream.number, Kind::stream, doing);
  }
}

void EmulatedMemory::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_bytes_ - held_bytes_) {
    throw EmulatorError(
        fmt::format("no memory for {} bytes on the emulated device, {} of {} are given out; use a smaller problem",
                    bytes, held_bytes_, limit_bytes_),
        ENOMEM);
  }
  // The system would give out addresses for more than there is, and end programs when they are written to.
  if (const std::uint64_t available = bytes < kLookFrom ? bytes : available_memory_bytes(); bytes > available) {
    throw EmulatorError(fmt::format("no memory for {} on the emulated device, {} are available; use a smaller problem",
                                    shown_bytes(bytes), shown_bytes(available)),
                        ENOMEM);
  }
  held_bytes_ += bytes;
}

void EmulatedMemory::give(const Item& item) noexcept {
  if (item.kind == Kind::range) {
    ::munmap(item.data, item.bytes);
  } else {
    std::free(item.data);
  }
  const std::lock_guard lock(mutex_);
  held_bytes_ -= item.held_bytes;
}

Stream EmulatedMemory::make_stream() {
  enter("make a stream");
  return Stream(add({Kind::stream, nullptr, 0, 0}));
}

Event EmulatedMemory::make_event() {
  enter("make an event");
  return Event(add({Kind::event, nullptr, 0, 0}));
}

bool EmulatedMemory::is_live(StreamId stream) const noexcept {
  const std::lock_guard lock(mutex_);
  return stream == StreamId{} || live_.count(stream.number) > 0;
}

void EmulatedMemory::record(const Event& event, StreamId stream) {
  enter("record an event");
  require(event.number(), Kind::event, "record an event");
  require(stream, "record an event on a stream");
}

void EmulatedMemory::wait(StreamId stream, const Event& event) {
  enter("let a stream wait");
  require(stream, "let a stream wait");
  require(event.number(), Kind::event, "wait for an event");
}

bool EmulatedMemory::is_done(const Event& event) {
  enter("ask for an event");
  require(event.number(), Kind::event, "ask for an event");
  return true;
}

void EmulatedMemory::synchronize(const Event& event) {
  enter("wait for an event");
  require(event.number(), Kind::event, "wait for an event");
}

void EmulatedMemory::synchronize(StreamId stream) {
  enter("wait for a stream");
  require(stream, "wait for a stream");
}

void EmulatedMemory::upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) {
  enter("upload");
  require(stream, "upload on a stream");
  check_copy("upload", to.bytes, from.size());
  if (!from.empty()) {
    std::memcpy(to.data, from.data(), from.size());
  }
}

void EmulatedMemory::download(StreamId stream, std::span<std::byte> to, DeviceSpan from) {
  enter("download");
  require(stream, "download on a stream");
  check_copy("download", to.size(), from.bytes);
  if (!to.empty()) {
    std::memcpy(to.data(), from.data, to.size());
  }
}

void EmulatedMemory::copy(StreamId stream, DeviceSpan to, DeviceSpan from) {
  enter("copy");
  require(stream, "copy on a stream");
  check_copy("copy", to.bytes, from.bytes);
  if (to.bytes > 0) {
    std::memcpy(to.data, from.data, to.bytes);
  }
}

void EmulatedMemory::fill(StreamId stream, DeviceSpan to, std::uint8_t byte) {
  enter("fill");
  require(stream, "fill on a stream");
  if (to.bytes > 0) {
    std::memset(to.data, byte, to.bytes);
  }
}

RawBuffer EmulatedMemory::allocate_raw(std::size_t bytes) {
  enter("allocate memory");
  take(bytes);
  Item item{Kind::device_bytes, nullptr, bytes, bytes};
  try {
    item.data = aligned_bytes(bytes);
    return {add(item), {item.data, bytes}};
  } catch (...) {
    give(item);
    throw;
  }
}

PinnedBuffer EmulatedMemory::allocate_pinned(std::size_t bytes) {
  enter("allocate page-locked memory");
  void* data = aligned_bytes(bytes);
  return {add({Kind::pinned, data, bytes, 0}), {static_cast<std::byte*>(data), bytes}};
}

GrowingBuffer EmulatedMemory::reserve(std::size_t bytes) {
  enter("reserve addresses");
  const std::size_t whole = bytes > kMaxBytes ? 0 : rounded(std::max<std::size_t>(bytes, 1), kRangePage);
  void* data = MAP_FAILED;
  if (whole > 0) {
    data = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (data == MAP_FAILED) {
    throw EmulatorError(
        fmt::format("cannot reserve addresses for {} bytes on the emulated device; reserve less", bytes), ENOMEM);
  }
  return {add({Kind::range, data, whole, 0}), {data, whole}};
}

std::size_t EmulatedMemory::map(std::uint64_t number, std::size_t bytes) {
  enter("grow a buffer");
  require(number, Kind::range, "grow a buffer");
  Item range;
  {
    const std::lock_guard lock(mutex_);
    range = live_.at(number);
  }
  const std::size_t wanted = rounded(bytes, kRangePage);
  const std::size_t more = wanted - std::min(wanted, range.held_bytes);
  take(more);
  if (more > 0 &&
      ::mprotect(static_cast<std::byte*>(range.data) + range.held_bytes, more, PROT_READ | PROT_WRITE) != 0) {
    const int code = errno;
    const std::lock_guard lock(mutex_);
    held_bytes_ -= more;
    throw EmulatorError(
        fmt::format("cannot grow a buffer by {} bytes on the emulated device: {}", more, std::strerror(code)), ENOMEM);
  }
  const std::lock_guard lock(mutex_);
  return live_.at(number).held_bytes += more;
}

MemoryState EmulatedMemory::state() {
  enter("ask for free memory");
  const std::lock_guard lock(mutex_);
  return {std::min(limit_bytes_ - held_bytes_, available_memory_bytes()), limit_bytes_};
}

void EmulatedMemory::release(std::uint64_t number) noexcept {
  Item item;
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(number);
    if (found == live_.end()) {
      return;
    }
    item = found->second;
    live_.erase(found);
  }
  give(item);
}

void EmulatedMemory::drop_everything() noexcept {
  std::unordered_map<std::uint64_t, Item> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(live_);
  }
  for (const auto& [number, item] : dropped) {
    give(item);
  }
}

}  // namespace pascaline
