#include "runtime/memory/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kHeldPerSlab = 64;   // a slab is this part of what is held
constexpr std::size_t kSharesPerSlab = 2;  // the largest buffer that shares one is this part of it

std::size_t rounded(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

MemoryPool::MemoryPool(DeviceMemory& upstream, std::uint64_t limit_bytes)
    : upstream_(upstream),
      context_bytes_(limit_bytes == kUnlimited ? 0 : std::min(limit_bytes, upstream.state().context_bytes)),
      limit_bytes_(limit_bytes == kUnlimited ? kUnlimited : limit_bytes - context_bytes_) {}

std::size_t MemoryPool::slab_bytes_for(std::uint64_t held_bytes) noexcept {
  constexpr std::size_t kDriverUnit = std::size_t{2} << 20;
  const auto part = static_cast<std::size_t>(held_bytes / kHeldPerSlab);
  const std::size_t unit = part < kDriverUnit ? kAlignment : kDriverUnit;
  return std::clamp(part / unit * unit, kMinSlabBytes, kMaxSlabBytes);
}

RawBuffer MemoryPool::allocate_raw(std::size_t bytes) {
  if (upstream_.recording()) {
    return upstream_.allocate_raw(bytes);  // refuses it as the device does
  }
  const std::lock_guard lock(mutex_);
  if (bytes <= kMaxSlabBytes / kSharesPerSlab) {
    if (auto shared = shared_buffer(bytes)) {
      return *std::move(shared);
    }
  }
  return own_buffer(bytes);
}

RawBuffer MemoryPool::hand_out(Item item, DeviceSpan span) {
  statistics_.live_bytes += item.bytes;
  ++statistics_.live_buffers;
  items_.emplace(++last_, std::move(item));
  return {MemoryHandle(this, last_), span};
}

RawBuffer MemoryPool::own_buffer(std::size_t bytes) {
  Item item;
  item.bytes = bytes;
  item.own = take(bytes);
  const DeviceSpan span = item.own.span();
  return hand_out(std::move(item), span);
}

// Nothing if it is too large for the slabs of the moment, or there is no memory for another slab.
std::optional<RawBuffer> MemoryPool::shared_buffer(std::size_t bytes) {
  const std::size_t whole = rounded(std::max<std::size_t>(bytes, 1), kAlignment);
  do {
    for (auto slab = slabs_.begin(); slab != slabs_.end(); ++slab) {
      const auto gap =
          std::find_if(slab->free.begin(), slab->free.end(), [&](const auto& free) { return free.second >= whole; });
      if (gap == slab->free.end()) {
        continue;
      }
      wait_for_work_before();
      const auto [offset, room] = *gap;
      slab->free.erase(gap);
      if (room > whole) {
        slab->free.emplace(offset + whole, room - whole);
      }
      Item item;
      item.slab = slab;
      item.offset = offset;
      item.bytes = bytes;
      return hand_out(std::move(item), slab->memory.span().slice(offset, bytes));
    }
  } while (add_slab(whole));
  return std::nullopt;
}

// False where a buffer of so many bytes had better be allocated by itself.
bool MemoryPool::add_slab(std::size_t bytes) {
  const std::size_t slab_bytes = slab_bytes_for(statistics_.held_bytes);
  if (bytes > slab_bytes / kSharesPerSlab) {
    return false;
  }
  Slab slab;
  try {
    slab.memory = take(slab_bytes);
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
    return false;
  }
  slab.free.emplace(0, slab_bytes);
  slabs_.push_back(std::move(slab));
  return true;
}

RawBuffer MemoryPool::take(std::size_t bytes) {
  require_room(bytes);
  ++statistics_.device_calls;
  RawBuffer memory;
  try {
    memory = upstream_.allocate_raw(bytes);
  } catch (const Error& error) {
    if (!is_out_of_memory(error) || !drop_empty_slabs()) {
      throw;
    }
    memory = upstream_.allocate_raw(bytes);
  }
  count(bytes);
  return memory;
}

void MemoryPool::require_room(std::size_t bytes) {
  if (bytes > limit_bytes_ - statistics_.held_bytes) {
    (void)drop_empty_slabs();
  }
  const std::uint64_t room = limit_bytes_ - statistics_.held_bytes;
  if (bytes > room) {
    throw OutOfMemoryError(
        fmt::format("{:.1f} MiB more exceed the limit of {:.1f} MiB of device memory, of which {:.1f} MiB are in use; "
                    "use less, or give a larger --memory-limit",
                    mebibytes(bytes), mebibytes(context_bytes_ + limit_bytes_),
                    mebibytes(context_bytes_ + statistics_.held_bytes)),
        bytes, room);
  }
}

void MemoryPool::count(std::size_t bytes) {
  statistics_.held_bytes += bytes;
  statistics_.peak_held_bytes = std::max(statistics_.peak_held_bytes, statistics_.held_bytes);
}

bool MemoryPool::drop_empty_slabs() {
  const std::size_t before = statistics_.held_bytes;
  std::erase_if(slabs_, [&](const Slab& slab) {
    statistics_.held_bytes -= slab.is_empty() ? slab.memory.bytes() : 0;
    return slab.is_empty();
  });
  return statistics_.held_bytes < before;
}

// Work that was given before a part was freed may still use it.
void MemoryPool::wait_for_work_before() {
  if (!was_freed_) {
    return;
  }
  upstream_.synchronize(StreamId{});
  std::erase_if(streams_, [&](StreamId stream) { return !upstream_.is_live(stream); });
  for (const StreamId stream : streams_) {
    upstream_.synchronize(stream);
  }
  was_freed_ = false;
}

Stream MemoryPool::make_stream() {
  Stream stream = upstream_.make_stream();
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream.id());
  return stream;
}

GrowingBuffer MemoryPool::reserve(std::size_t bytes) {
  Item item;
  item.range = upstream_.reserve(bytes);
  const DeviceSpan reserved{item.range.data(), item.range.reserved_bytes()};
  const std::lock_guard lock(mutex_);
  if (page_bytes_ == 0) {
    page_bytes_ = std::max<std::size_t>(1, upstream_.reserve(1).reserved_bytes());
  }
  ++statistics_.live_buffers;
  items_.emplace(++last_, std::move(item));
  return {MemoryHandle(this, last_), reserved};
}

std::size_t MemoryPool::map(std::uint64_t number, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  GrowingBuffer& range = items_.at(number).range;
  const std::size_t before = range.mapped_bytes();
  const std::size_t wanted = std::max(before, rounded(bytes, page_bytes_));
  require_room(wanted - before);
  ++statistics_.device_calls;
  range.grow_to(bytes);
  count(range.mapped_bytes() - before);
  statistics_.live_bytes += range.mapped_bytes() - before;
  return range.mapped_bytes();
}

void MemoryPool::release(std::uint64_t number) noexcept {
  Item item;
  std::list<Slab> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = items_.find(number);
  if (found == items_.end()) {
    return;
  }
  item = std::move(found->second);
  items_.erase(found);
  --statistics_.live_buffers;
  if (!item.slab) {
    const std::size_t bytes = item.range ? item.range.mapped_bytes() : item.bytes;
    statistics_.live_bytes -= bytes;
    statistics_.held_bytes -= bytes;
    return;
  }
  statistics_.live_bytes -= item.bytes;
  was_freed_ = true;
  Slab& slab = **item.slab;
  auto at = slab.free.emplace(item.offset, rounded(std::max<std::size_t>(item.bytes, 1), kAlignment)).first;
  const auto next = std::next(at);
  if (next != slab.free.end() && at->first + at->second == next->first) {
    at->second += next->second;
    slab.free.erase(next);
  }
  if (at != slab.free.begin()) {
    const auto previous = std::prev(at);
    if (previous->first + previous->second == at->first) {
      previous->second += at->second;
      slab.free.erase(at);
    }
  }
  const auto is_empty = [](const Slab& other) { return other.is_empty(); };
  if (slab.is_empty() && std::count_if(slabs_.begin(), slabs_.end(), is_empty) > 1) {
    statistics_.held_bytes -= slab.memory.bytes();
    dropped.splice(dropped.begin(), slabs_, *item.slab);
  }
}

MemoryState MemoryPool::state() {
  const MemoryState device = upstream_.state();
  const std::lock_guard lock(mutex_);
  std::uint64_t idle = 0;  // what would be given back for want of memory
  for (const Slab& slab : slabs_) {
    idle += slab.is_empty() ? slab.memory.bytes() : 0;
  }
  return {std::min(device.free_bytes, limit_bytes_ - statistics_.held_bytes) + idle,
          std::min(device.total_bytes, limit_bytes_), device.context_bytes};
}

PoolStatistics MemoryPool::statistics() const {
  const std::lock_guard lock(mutex_);
  PoolStatistics statistics = statistics_;
  statistics.slabs = slabs_.size();
  return statistics;
}

}  // namespace pascaline
