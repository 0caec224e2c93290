#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <vector>

#include "runtime/device/device_memory.hpp"
#include "runtime/memory/free_blocks.hpp"

namespace pascaline {

struct PoolOptions {
  std::size_t limit_bytes = std::numeric_limits<std::size_t>::max();  ///< most that it takes from the device
};

/// What a pool did so far and holds now.
struct PoolStatistics {
  std::size_t live_bytes = 0;        ///< asked for and not given back
  std::size_t live_block_bytes = 0;  ///< of the blocks they lie in
  std::size_t held_bytes = 0;        ///< taken from the device
  std::size_t stuck_bytes = 0;       ///< idle ones of slabs with live blocks
  std::size_t peak_live_bytes = 0;
  std::size_t peak_held_bytes = 0;
  std::size_t live_buffers = 0;
  std::array<std::uint64_t, 4> hits{};  ///< served without the device, by Reuse
  std::uint64_t misses = 0;             ///< served by a new allocation of the device
  std::uint64_t trims = 0;              ///< times it gave memory back to the device
  std::uint64_t retries = 0;            ///< misses that took a trim first, for want of memory or at the limit

  [[nodiscard]] std::uint64_t hits_of(Reuse reuse) const noexcept { return hits[static_cast<std::size_t>(reuse)]; }
  /// Part of the live blocks that rounding up costs, 0 to 1.
  [[nodiscard]] double rounding_loss() const noexcept;
  /// Part of the held memory that no live buffer lies in, 0 to 1.
  [[nodiscard]] double idle_share() const noexcept;
  /// Part of the idle memory that `trim` cannot give back, because it lies in slabs with live blocks, 0 to 1.
  [[nodiscard]] double fragmentation() const noexcept;
  [[nodiscard]] std::size_t idle_bytes() const noexcept { return held_bytes - live_block_bytes; }
};

class StreamPool;

/// Memory of a pool, used on one stream. Given back when it goes, which does not wait: the pool gives it to others only
/// behind what the stream was given by then. Must go before its pool. Move-only.
class PoolBuffer {
 public:
  PoolBuffer() = default;
  PoolBuffer(PoolBuffer&& other) noexcept { swap(other); }
  PoolBuffer& operator=(PoolBuffer&& other) noexcept {
    PoolBuffer(std::move(other)).swap(*this);
    return *this;
  }
  PoolBuffer(const PoolBuffer&) = delete;
  PoolBuffer& operator=(const PoolBuffer&) = delete;
  ~PoolBuffer();

  [[nodiscard]] void* data() const noexcept { return block_.data; }  ///< device address, 256-byte aligned
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] DeviceSpan span() const noexcept { return {block_.data, bytes_}; }
  [[nodiscard]] StreamId stream() const noexcept { return stream_; }
  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  /// From now on it is used on the other stream, whose further work waits for what its present stream was given so far.
  /// Throws as `DeviceMemory::record` does, and for a buffer that holds nothing; it stays where it was then.
  void hand_to(StreamId stream);
  void swap(PoolBuffer& other) noexcept;

 private:
  friend class StreamPool;
  PoolBuffer(StreamPool* pool, PoolBlock block, std::size_t bytes, StreamId stream) noexcept
      : pool_(pool), block_(block), bytes_(bytes), stream_(stream) {}

  StreamPool* pool_ = nullptr;
  PoolBlock block_;
  std::size_t bytes_ = 0;
  StreamId stream_;
};

/// Device memory that is kept for reuse, in the order of streams: a buffer that was freed on a stream serves the same
/// stream again at once, another one when the work before is done, or lets it wait for that work; see `size_class_of`
/// for the blocks' sizes. Only when none of its blocks serves it asks the device. Any thread may call it. It does not
/// outlive a reset of the device.
class StreamPool {
 public:
  /// `memory` must outlive it. Takes nothing from the device yet.
  explicit StreamPool(DeviceMemory& memory, PoolOptions options = {});
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;
  /// Waits for the work that was given on its free blocks.
  ~StreamPool();

  /// Memory of `bytes` (0 is allowed) to be used on the stream. If the device has no more, or the limit is reached,
  /// gives all that is idle back and tries once more; then throws OutOfMemoryError that says what is needed, held and
  /// free. Throws Error while the thread records a graph (the graph would keep addresses that the pool gives to
  /// others), and what the device throws.
  [[nodiscard]] PoolBuffer allocate(std::size_t bytes, StreamId stream = {});
  /// Gives idle memory back to the device until it holds `keep_bytes` or has no more to give; returns how much it gave.
  /// Waits for the work before. Slabs with live blocks stay.
  std::size_t trim(std::size_t keep_bytes = 0);
  [[nodiscard]] PoolStatistics statistics() const;

 private:
  friend class PoolBuffer;
  void give_back(PoolBuffer& buffer) noexcept;
  void hand_over(PoolBuffer& buffer, StreamId stream);
  [[nodiscard]] PoolBlock block_of_device(std::size_t bytes, const SizeClass& wanted);
  [[nodiscard]] RawBuffer raw_memory(std::size_t bytes, std::size_t chunk_bytes);
  [[nodiscard]] std::size_t give_back_idle(std::size_t keep_bytes);
  [[noreturn]] void throw_out_of_memory(std::size_t bytes, std::size_t chunk_bytes);
  void note_stream(StreamId stream);

  DeviceMemory& memory_;
  const PoolOptions options_;
  mutable std::mutex mutex_;
  PoolEvents events_;
  FreeBlocks free_;
  std::list<PoolChunk> chunks_;
  std::vector<StreamId> streams_;  // that had buffers
  PoolStatistics statistics_;
};

}  // namespace pascaline
