#include "runtime/memory/unbacked_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace pascaline {
namespace {

void require_equal(std::size_t to, std::size_t from) {
  if (to != from) {
    throw Error(fmt::format("cannot copy {} bytes to a range of {}", from, to));
  }
}

}  // namespace

void UnbackedMemory::upload(StreamId /*stream*/, DeviceSpan to, std::span<const std::byte> from) {
  require_equal(to.bytes, from.size());
}

void UnbackedMemory::download(StreamId /*stream*/, std::span<std::byte> to, DeviceSpan from) {
  require_equal(to.size(), from.bytes);
  std::fill(to.begin(), to.end(), std::byte{0});
}

void UnbackedMemory::copy(StreamId /*stream*/, DeviceSpan to, DeviceSpan from) { require_equal(to.bytes, from.bytes); }

DeviceSpan UnbackedMemory::next_span(std::size_t bytes) {
  if (bytes > kBytes) {
    throw OutOfMemoryError(fmt::format("there are no addresses for {} bytes", bytes), bytes, kBytes);
  }
  const std::uint64_t address = next_address_.fetch_add(rounded(std::max<std::size_t>(bytes, 1)));
  return {reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
}

RawBuffer UnbackedMemory::allocate_raw(std::size_t bytes) { return {next_handle(), next_span(bytes)}; }

PinnedBuffer UnbackedMemory::allocate_pinned(std::size_t bytes) {
  MemoryHandle handle = next_handle();
  const std::scoped_lock lock(mutex_);
  std::vector<std::byte>& memory = pinned_[handle.number()];
  memory.resize(bytes);
  return {std::move(handle), std::span(memory)};
}

GrowingBuffer UnbackedMemory::reserve(std::size_t bytes) {
  return {next_handle(), next_span(rounded(std::max<std::size_t>(bytes, 1)))};
}

void UnbackedMemory::release(std::uint64_t number) noexcept {
  const std::scoped_lock lock(mutex_);
  pinned_.erase(number);
}

}  // namespace pascaline
