#include "runtime/device/cuda/cuda_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace pascaline {
namespace {

CuAddress address_in(DeviceSpan span) { return reinterpret_cast<std::uintptr_t>(span.data); }

void check_sizes(const char* doing, std::size_t to, std::size_t from) {
  if (to != from) {
    throw CudaError(fmt::format("cannot {} {} bytes to a range of {}", doing, from, to), kCuInvalidValue);
  }
}

}  // namespace

// Makes the context current; to be called first in whatever asks something of the driver.
const DriverApi& CudaMemory::enter(const char* doing) {
  if (recorder_.is_this_one()) {
    throw CudaError(refused_in_recording(doing), kCuStreamCaptureUnsupported);
  }
  context_.make_current();
  return context_.driver();
}

MemoryHandle CudaMemory::add(Item item) {
  const std::lock_guard lock(mutex_);
  live_.emplace(++last_, item);
  return {this, last_};
}

template <typename Kind>
Kind CudaMemory::find(std::uint64_t number, const char* doing) const {
  const std::lock_guard lock(mutex_);
  return find_locked<Kind>(number, doing);
}

template <typename Kind>
Kind CudaMemory::find_locked(std::uint64_t number, const char* doing) const {
  const auto found = live_.find(number);
  const Kind* kind = found == live_.end() ? nullptr : std::get_if<Kind>(&found->second);
  if (kind == nullptr) {
    throw CudaError(
        fmt::format("cannot {}: {} does not hold it (made before a reset, or of another device)", doing, info_.id),
        kCuInvalidHandle);
  }
  return *kind;
}

// The default stream is the one that is captured: what another thread gave it would be lost in the graph.
CuStream CudaMemory::default_stream(const char* doing) const {
  if (recorder_.any()) {
    throw CudaError(refused_in_recording(doing), kCuStreamCaptureUnsupported);
  }
  return context_.stream();
}

CuStream CudaMemory::stream_of(StreamId stream, const char* doing) const {
  return stream == StreamId{} ? default_stream(doing) : find<CuStream>(stream.number, doing);
}

Stream CudaMemory::make_stream() {
  const DriverApi& driver = enter("make a stream");
  CuStream stream = nullptr;
  driver(driver.stream_create, &stream, kCuStreamNonBlocking);
  return Stream(add(stream));
}

Event CudaMemory::make_event() {
  const DriverApi& driver = enter("make an event");
  CuEvent event = nullptr;
  driver(driver.event_create, &event, kCuEventWithoutTime);
  return Event(add(event));
}

bool CudaMemory::is_live(StreamId stream) const noexcept {
  const std::lock_guard lock(mutex_);
  return stream == StreamId{} || live_.count(stream.number) > 0;
}

// Under the lock, so that the stream stays until the event is recorded: pools record on streams of other threads.
void CudaMemory::record(const Event& event, StreamId stream) {
  constexpr const char* kDoing = "record an event";
  const DriverApi& driver = enter(kDoing);
  const std::lock_guard lock(mutex_);
  CuStream queue = stream == StreamId{} ? default_stream(kDoing)
                                        : find_locked<CuStream>(stream.number, "record an event on a stream");
  driver(driver.event_record, find_locked<CuEvent>(event.number(), kDoing), queue);
}

void CudaMemory::wait(StreamId stream, const Event& event) {
  const DriverApi& driver = enter("let a stream wait");
  driver(driver.stream_wait, stream_of(stream, "let a stream wait"), find<CuEvent>(event.number(), "wait for an event"),
         0U);
}

bool CudaMemory::is_done(const Event& event) {
  const DriverApi& driver = enter("ask for an event");
  const CuResult result = driver.event_query.address(find<CuEvent>(event.number(), "ask for an event"));
  if (result != kCuNotReady) {
    driver.check(driver.event_query.symbol, result);
  }
  return result != kCuNotReady;
}

void CudaMemory::synchronize(const Event& event) {
  const DriverApi& driver = enter("wait for an event");
  driver(driver.event_synchronize, find<CuEvent>(event.number(), "wait for an event"));
}

void CudaMemory::synchronize(StreamId stream) {
  const DriverApi& driver = enter("wait for a stream");
  driver(driver.stream_synchronize, stream_of(stream, "wait for a stream"));
}

void CudaMemory::upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) {
  const DriverApi& driver = enter("upload");
  check_sizes("upload", to.bytes, from.size());
  CuStream queue = stream_of(stream, "upload on a stream");
  if (!from.empty()) {
    driver(driver.upload, address_in(to), static_cast<const void*>(from.data()), from.size(), queue);
  }
}

void CudaMemory::download(StreamId stream, std::span<std::byte> to, DeviceSpan from) {
  const DriverApi& driver = enter("download");
  check_sizes("download", to.size(), from.bytes);
  CuStream queue = stream_of(stream, "download on a stream");
  if (!to.empty()) {
    driver(driver.download, static_cast<void*>(to.data()), address_in(from), to.size(), queue);
  }
}

void CudaMemory::copy(StreamId stream, DeviceSpan to, DeviceSpan from) {
  const DriverApi& driver = enter("copy");
  check_sizes("copy", to.bytes, from.bytes);
  CuStream queue = stream_of(stream, "copy on a stream");
  if (to.bytes > 0) {
    driver(driver.copy, address_in(to), address_in(from), to.bytes, queue);
  }
}

void CudaMemory::fill(StreamId stream, DeviceSpan to, std::uint8_t byte) {
  const DriverApi& driver = enter("fill");
  CuStream queue = stream_of(stream, "fill on a stream");
  if (to.bytes > 0) {
    driver(driver.fill, address_in(to), byte, to.bytes, queue);
  }
}

RawBuffer CudaMemory::allocate_raw(std::size_t bytes) {
  const DriverApi& driver = enter("allocate memory");
  if (bytes > info_.memory_bytes) {
    throw CudaError(fmt::format("cannot allocate {} bytes on {}, which has {}", bytes, info_.name, info_.memory_bytes),
                    kCuOutOfMemory);
  }
  CuAddress address = 0;
  driver.check(driver.allocate.symbol, driver.allocate.address(&address, std::max<std::size_t>(bytes, 1)),
               fmt::format("allocating {} bytes on {}", bytes, info_.id));
  return {add(address), {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes}};
}

PinnedBuffer CudaMemory::allocate_pinned(std::size_t bytes) {
  const DriverApi& driver = enter("allocate page-locked memory");
  void* data = nullptr;
  driver.check(driver.host_allocate.symbol,
               driver.host_allocate.address(&data, std::max<std::size_t>(bytes, 1), kCuHostPortable | kCuHostMapped),
               fmt::format("page-locking {} bytes of the host's memory", bytes));
  return {add(data), {static_cast<std::byte*>(data), bytes}};
}

GrowingBuffer CudaMemory::reserve(std::size_t bytes) {
  enter("reserve addresses");
  const CudaRange range = reserve_range(context_, bytes);
  return {add(range), {reinterpret_cast<void*>(static_cast<std::uintptr_t>(range.address)), range.bytes}};
}

std::size_t CudaMemory::map(std::uint64_t number, std::size_t bytes) {
  enter("grow a buffer");
  auto range = find<CudaRange>(number, "grow a buffer");
  map_range(context_, range, bytes);
  const std::lock_guard lock(mutex_);
  live_.at(number) = range;
  return range.mapped_bytes;
}

MemoryState CudaMemory::state() {
  const DriverApi& driver = enter("ask for free memory");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  driver(driver.memory_info, &free_bytes, &total_bytes);
  return {free_bytes, total_bytes, context_bytes_};
}

void CudaMemory::free(const Item& item) const noexcept {
  const DriverApi& driver = context_.driver();
  // Results are ignored: what fails in a broken context goes with it.
  if (const CuStream* stream = std::get_if<CuStream>(&item)) {
    driver.stream_synchronize.address(*stream);
    driver.stream_destroy.address(*stream);
  } else if (const CuEvent* event = std::get_if<CuEvent>(&item)) {
    driver.event_destroy.address(*event);
  } else if (const CuAddress* address = std::get_if<CuAddress>(&item)) {
    driver.free.address(*address);
  } else if (void* const* pinned = std::get_if<void*>(&item)) {
    driver.synchronize.address();  // a kernel may use it still
    driver.host_free.address(*pinned);
  } else if (const CudaRange* range = std::get_if<CudaRange>(&item)) {
    release_range(context_, *range);
  }
}

void CudaMemory::release(std::uint64_t number) noexcept {
  try {
    context_.make_current();
  } catch (const CudaError&) {
  }
  // Freeing may wait for the device, other threads need not. A stream stays until its work is done.
  std::unique_lock lock(mutex_);
  const auto found = live_.find(number);
  if (found == live_.end()) {
    return;
  }
  const Item item = found->second;
  if (const CuStream* stream = std::get_if<CuStream>(&item)) {
    lock.unlock();
    context_.driver().stream_synchronize.address(*stream);
    lock.lock();
    context_.driver().stream_destroy.address(*stream);
    live_.erase(number);
    return;
  }
  live_.erase(found);
  lock.unlock();
  free(item);
}

void CudaMemory::drop_everything() noexcept {
  std::unordered_map<std::uint64_t, Item> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(live_);
  }
  try {
    context_.make_current();
  } catch (const CudaError&) {
    return;
  }
  for (const auto& [number, item] : dropped) {
    free(item);
  }
}

}  // namespace pascaline
