#include "runtime/memory/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxPoolBytes = std::size_t{1} << 62;

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double PoolStatistics::rounding_loss() const noexcept { return share(live_block_bytes - live_bytes, live_block_bytes); }

double PoolStatistics::idle_share() const noexcept { return share(idle_bytes(), held_bytes); }

double PoolStatistics::fragmentation() const noexcept { return share(stuck_bytes, idle_bytes()); }

PoolBuffer::~PoolBuffer() {
  if (pool_ != nullptr) {
    pool_->give_back(*this);
  }
}

void PoolBuffer::swap(PoolBuffer& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(block_, other.block_);
  std::swap(bytes_, other.bytes_);
  std::swap(stream_, other.stream_);
}

void PoolBuffer::hand_to(StreamId stream) {
  if (pool_ == nullptr) {
    throw Error("cannot hand a buffer to a stream, it holds no memory; allocate it first");
  }
  pool_->hand_over(*this, stream);
}

StreamPool::StreamPool(DeviceMemory& memory, PoolOptions options)
    : memory_(memory), options_(options), events_(memory) {}

StreamPool::~StreamPool() {
  try {
    trim();
  } catch (const Error&) {
    // The device is broken: its memory goes with its context.
  }
}

PoolBuffer StreamPool::allocate(std::size_t bytes, StreamId stream) {
  if (memory_.recording()) {
    throw Error(fmt::format("cannot allocate {} bytes of a pool while launches are recorded; do it before", bytes));
  }
  const std::lock_guard lock(mutex_);
  if (!memory_.is_live(stream)) {
    throw Error(fmt::format("cannot allocate {} bytes for a stream that is gone; make another", bytes));
  }
  if (bytes > kMaxPoolBytes) {
    throw_out_of_memory(bytes, bytes);
  }
  note_stream(stream);
  const SizeClass wanted = size_class_of(bytes);
  PoolBlock block;
  if (const auto taken = free_.take(wanted, stream, events_)) {
    block = taken->block;
    --block.chunk->free_blocks;
    ++statistics_.hits[static_cast<std::size_t>(taken->reuse)];
  } else {
    block = block_of_device(bytes, wanted);
    ++statistics_.misses;
  }
  ++statistics_.live_buffers;
  statistics_.live_bytes += bytes;
  statistics_.live_block_bytes += block.chunk->block_bytes;
  statistics_.peak_live_bytes = std::max(statistics_.peak_live_bytes, statistics_.live_bytes);
  return {this, block, bytes, stream};
}

// Where there is but one stream, the order of its work is enough and events would cost time for nothing.
void StreamPool::note_stream(StreamId stream) {
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
    std::erase_if(streams_, [&](StreamId seen) { return !memory_.is_live(seen); });
    streams_.push_back(stream);
  }
}

void StreamPool::give_back(PoolBuffer& buffer) noexcept {
  const std::lock_guard lock(mutex_);
  --statistics_.live_buffers;
  statistics_.live_bytes -= buffer.bytes_;
  statistics_.live_block_bytes -= buffer.block_.chunk->block_bytes;
  ++buffer.block_.chunk->free_blocks;
  if (!memory_.is_live(buffer.stream_)) {
    free_.add_unused(buffer.block_);
    return;
  }
  FreeBlock block{buffer.block_, buffer.stream_, {}};
  if (streams_.size() > 1 && !memory_.recording()) {
    try {
      block.event = events_.record(buffer.stream_);
    } catch (const Error&) {
      // Whoever wants the block meets the device's failure again.
    }
  }
  free_.add(std::move(block));
}

void StreamPool::hand_over(PoolBuffer& buffer, StreamId stream) {
  const std::lock_guard lock(mutex_);
  if (stream == buffer.stream_) {
    return;
  }
  if (memory_.is_live(buffer.stream_)) {
    Event event = events_.record(buffer.stream_);
    memory_.wait(stream, event);
    events_.give_back(std::move(event));
  } else if (!memory_.is_live(stream)) {
    throw Error("cannot hand a buffer to a stream that is gone; make another");
  }
  note_stream(stream);
  buffer.stream_ = stream;
}

PoolBlock StreamPool::block_of_device(std::size_t bytes, const SizeClass& wanted) {
  const std::size_t chunk_bytes = wanted.block_bytes * wanted.blocks_per_chunk;
  RawBuffer raw = raw_memory(bytes, chunk_bytes);
  auto* base = static_cast<std::byte*>(raw.data());
  chunks_.push_back({std::move(raw), wanted.block_bytes, wanted.blocks_per_chunk, wanted.blocks_per_chunk - 1});
  PoolChunk* chunk = &chunks_.back();
  for (std::size_t i = wanted.blocks_per_chunk - 1; i > 0; --i) {
    free_.add_unused({chunk, base + i * wanted.block_bytes});
  }
  statistics_.held_bytes += chunk_bytes;
  statistics_.peak_held_bytes = std::max(statistics_.peak_held_bytes, statistics_.held_bytes);
  return {chunk, base};
}

RawBuffer StreamPool::raw_memory(std::size_t bytes, std::size_t chunk_bytes) {
  if (chunk_bytes > options_.limit_bytes) {
    throw_out_of_memory(bytes, chunk_bytes);
  }
  bool trimmed = false;
  if (statistics_.held_bytes > options_.limit_bytes - chunk_bytes) {
    ++statistics_.retries;
    trimmed = true;
    (void)give_back_idle(options_.limit_bytes - chunk_bytes);
    if (statistics_.held_bytes > options_.limit_bytes - chunk_bytes) {
      throw_out_of_memory(bytes, chunk_bytes);
    }
  }
  try {
    return memory_.allocate_raw(chunk_bytes);
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
  }
  statistics_.retries += trimmed ? 0 : 1;
  (void)give_back_idle(0);
  try {
    return memory_.allocate_raw(chunk_bytes);
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) {
      throw;
    }
  }
  throw_out_of_memory(bytes, chunk_bytes);
}

void StreamPool::throw_out_of_memory(std::size_t bytes, std::size_t chunk_bytes) {
  const MemoryState state = memory_.state();
  const std::size_t left = options_.limit_bytes - std::min(options_.limit_bytes, statistics_.held_bytes);
  const std::string limit = options_.limit_bytes == PoolOptions().limit_bytes
                                ? std::string()
                                : fmt::format(", its limit is {} bytes", options_.limit_bytes);
  throw OutOfMemoryError(
      fmt::format("no memory for a buffer of {} bytes: the pool needs {} bytes of the device, of which {} of {} are "
                  "free; the pool holds {} bytes, {} of them in use{}; use less at once, or free device memory",
                  bytes, chunk_bytes, state.free_bytes, state.total_bytes, statistics_.held_bytes,
                  statistics_.live_block_bytes, limit),
      chunk_bytes, std::min<std::uint64_t>(state.free_bytes, left));
}

std::size_t StreamPool::trim(std::size_t keep_bytes) {
  const std::lock_guard lock(mutex_);
  return give_back_idle(keep_bytes);
}

std::size_t StreamPool::give_back_idle(std::size_t keep_bytes) {
  const std::size_t before = statistics_.held_bytes;
  for (auto chunk = chunks_.begin(); chunk != chunks_.end() && statistics_.held_bytes > keep_bytes;) {
    if (chunk->free_blocks < chunk->blocks) {
      ++chunk;
      continue;
    }
    free_.remove(*chunk, events_);
    statistics_.held_bytes -= chunk->block_bytes * chunk->blocks;
    chunk = chunks_.erase(chunk);
  }
  statistics_.trims += statistics_.held_bytes < before ? 1 : 0;
  return before - statistics_.held_bytes;
}

PoolStatistics StreamPool::statistics() const {
  const std::lock_guard lock(mutex_);
  PoolStatistics statistics = statistics_;
  for (const PoolChunk& chunk : chunks_) {
    statistics.stuck_bytes += chunk.free_blocks < chunk.blocks ? chunk.free_blocks * chunk.block_bytes : 0;
  }
  return statistics;
}

}  // namespace pascaline
