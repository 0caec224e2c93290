#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// Page-locked slots through which data goes to a device: while one is copied, on a stream of the ring's own, the next
/// is filled. Several threads may upload at once, each into memory of its own; they share the slots.
class StagingRing {
 public:
  /// Writes bytes `offset` to `offset + piece.size()` of what is uploaded into `piece`.
  using Producer = std::function<void(std::span<std::byte> piece, std::size_t offset)>;

  /// `memory` must outlive it. Throws Error for no slots or slots of no bytes, and what the device throws.
  StagingRing(DeviceMemory& memory, std::size_t slot_bytes, std::size_t slots);
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;
  /// Waits for the copies.
  ~StagingRing();

  /// Has `to` filled piece by piece, in order, by calls of `produce` from this thread, and copied. Returns when the
  /// last piece was produced; its copy may still be going on. Throws what `produce` and the device throw; what was
  /// produced by then is copied none the less.
  void upload(DeviceSpan to, const Producer& produce);
  /// The same from memory; throws Error if the sizes differ.
  void upload(DeviceSpan to, std::span<const std::byte> from);
  /// Lets what `stream` is given from now on wait for all that was uploaded so far. Does not wait itself.
  void order_before(StreamId stream);
  /// Waits until all that was uploaded so far has arrived; throws if a copy failed.
  void finish();

  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] StreamId stream() const noexcept { return stream_.id(); }
  /// Bytes given to the device so far.
  [[nodiscard]] std::uint64_t uploaded_bytes() const;
  /// How often the next slot was still being copied when it was wanted: then the device is what is slow, else those who
  /// fill.
  [[nodiscard]] std::uint64_t waits_for_device() const;

 private:
  struct Slot {
    PinnedBuffer memory;
    Event copied;
  };
  class Loan;

  DeviceMemory& memory_;
  const std::size_t slot_bytes_;
  Stream stream_;
  Event order_;
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Slot*> waiting_;  // not lent, in the order of their copies
  std::uint64_t uploaded_bytes_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace pascaline
