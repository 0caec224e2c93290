#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// What a pool holds now, and did so far.
struct PoolStatistics {
  std::size_t held_bytes = 0;       ///< taken from the device
  std::size_t peak_held_bytes = 0;  ///< the most that it held
  std::size_t live_bytes = 0;       ///< asked for and not given back
  std::size_t live_buffers = 0;
  std::size_t slabs = 0;
  std::uint64_t device_calls = 0;  ///< allocations, and growths of ranges, that the device was asked for
};

/// A device's memory under a limit, with small buffers cut from slabs: a DeviceMemory over another one, which does all
/// else. Buffers that are small beside a slab share slabs; larger ones and ranges come from the device as they are and
/// go back to it at once. Slabs are a part of what is held, 64 KiB to 32 MiB, so that small models
/// lose little, and large ones, as a driver gives memory in units of 2 MiB, not half of that with every matrix; at most
/// one that is empty is kept, and given back when the limit or the device is short.
///
/// As with the device itself, memory that is freed may still be in use by work that was given before: before a part of
/// a slab is given out again, the pool waits for the default stream and the streams that it made. Any thread may call
/// it. It must outlive what it gave out and does not outlive a reset of the device.
class MemoryPool final : public DeviceMemory {
 public:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::size_t kMinSlabBytes = std::size_t{64} << 10;
  static constexpr std::size_t kMaxSlabBytes = std::size_t{32} << 20;

  /// `upstream` must outlive it. Takes nothing from it yet. The limit is of all that the process takes, so what the
  /// driver's context takes is a part of it; code of kernels comes on top.
  explicit MemoryPool(DeviceMemory& upstream, std::uint64_t limit_bytes = kUnlimited);

  /// The size of a slab that is made when so much is held.
  [[nodiscard]] static std::size_t slab_bytes_for(std::uint64_t held_bytes) noexcept;

  /// Throws OutOfMemoryError at the limit, and what the device throws.
  [[nodiscard]] RawBuffer allocate_raw(std::size_t bytes) override;
  /// Memory behind the range counts, addresses do not.
  [[nodiscard]] GrowingBuffer reserve(std::size_t bytes) override;
  /// What is left of the limit, or of the device if that is less.
  [[nodiscard]] MemoryState state() override;

  [[nodiscard]] PoolStatistics statistics() const;

  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Event make_event() override { return upstream_.make_event(); }
  [[nodiscard]] bool is_live(StreamId stream) const noexcept override { return upstream_.is_live(stream); }
  void record(const Event& event, StreamId stream) override { upstream_.record(event, stream); }
  void wait(StreamId stream, const Event& event) override { upstream_.wait(stream, event); }
  [[nodiscard]] bool is_done(const Event& event) override { return upstream_.is_done(event); }
  void synchronize(const Event& event) override { upstream_.synchronize(event); }
  void synchronize(StreamId stream) override { upstream_.synchronize(stream); }
  void upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) override {
    upstream_.upload(stream, to, from);
  }
  void download(StreamId stream, std::span<std::byte> to, DeviceSpan from) override {
    upstream_.download(stream, to, from);
  }
  void copy(StreamId stream, DeviceSpan to, DeviceSpan from) override { upstream_.copy(stream, to, from); }
  void fill(StreamId stream, DeviceSpan to, std::uint8_t byte) override { upstream_.fill(stream, to, byte); }
  [[nodiscard]] PinnedBuffer allocate_pinned(std::size_t bytes) override { return upstream_.allocate_pinned(bytes); }
  [[nodiscard]] bool can_reserve() const noexcept override { return upstream_.can_reserve(); }
  [[nodiscard]] bool recording() const noexcept override { return upstream_.recording(); }

 protected:
  void release(std::uint64_t number) noexcept override;
  [[nodiscard]] std::size_t map(std::uint64_t number, std::size_t bytes) override;

 private:
  // One allocation of the device that small buffers share.
  struct Slab {
    RawBuffer memory;
    std::map<std::size_t, std::size_t> free;  // offset to bytes, no two next to each other
    [[nodiscard]] bool is_empty() const { return free.size() == 1 && free.begin()->second == memory.bytes(); }
  };
  using SlabPlace = std::list<Slab>::iterator;
  // Memory that was given out: a part of a slab, an allocation of its own, or a range.
  struct Item {
    std::optional<SlabPlace> slab;
    std::size_t offset = 0;
    std::size_t bytes = 0;  // asked for
    RawBuffer own;
    GrowingBuffer range;
  };

  [[nodiscard]] RawBuffer own_buffer(std::size_t bytes);
  [[nodiscard]] std::optional<RawBuffer> shared_buffer(std::size_t bytes);
  [[nodiscard]] bool add_slab(std::size_t bytes);
  [[nodiscard]] RawBuffer take(std::size_t bytes);
  void require_room(std::size_t bytes);
  [[nodiscard]] bool drop_empty_slabs();
  void wait_for_work_before();
  void count(std::size_t bytes);
  [[nodiscard]] RawBuffer hand_out(Item item, DeviceSpan span);

  DeviceMemory& upstream_;
  const std::uint64_t context_bytes_;  // of the limit
  const std::uint64_t limit_bytes_;    // without these
  mutable std::mutex mutex_;
  std::list<Slab> slabs_;
  std::unordered_map<std::uint64_t, Item> items_;
  std::uint64_t last_ = 0;
  std::vector<StreamId> streams_;  // that it made
  bool was_freed_ = false;         // parts of slabs, since work was waited for
  std::size_t page_bytes_ = 0;     // of ranges
  PoolStatistics statistics_;
};

}  // namespace pascaline
