#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/device/memory_handles.hpp"

namespace pascaline {

/// How much memory a device has, as far as this process can tell.
struct MemoryState {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  /// Of what is taken, what this process's driver context takes, as far as the driver's management library tells.
  std::uint64_t context_bytes = 0;
};

/// A device's memory, streams and events; `Device::memory`. Any thread may call it at any time, but while the device is
/// reset or destroyed; one thread at a time uses a stream, the default stream only the one that uses the device. Work
/// of one stream is done in the order given, streams beside each other; what must come after work of another stream has
/// to wait for an event. On the emulated device all is done at once, so every event is reached as soon as it is
/// recorded.
///
/// All members that do something throw CudaError or EmulatorError: for streams and events of before a reset or of
/// another device; in a thread that is recording a graph, and in every thread for the default stream meanwhile.
class DeviceMemory {
 public:
  /// Every allocation's and reserved range's address is a multiple of it.
  static constexpr std::size_t kAlignment = 256;

  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;

  [[nodiscard]] virtual Stream make_stream() = 0;
  [[nodiscard]] virtual Event make_event() = 0;
  /// Whether the stream is there; if not, all of its work is done.
  [[nodiscard]] virtual bool is_live(StreamId stream) const noexcept = 0;
  /// Puts the event behind all that the stream was given so far, and takes it from where it was before.
  virtual void record(const Event& event, StreamId stream) = 0;
  /// Lets what the stream is given from now on start when the event is reached, where it stands now. Does not wait;
  /// does nothing for an event that was never recorded.
  virtual void wait(StreamId stream, const Event& event) = 0;
  /// Whether the event is reached; true for one that was never recorded.
  [[nodiscard]] virtual bool is_done(const Event& event) = 0;
  /// Waits for the event, or for all work of the stream; throws if work failed.
  virtual void synchronize(const Event& event) = 0;
  virtual void synchronize(StreamId stream) = 0;

  /// Copies that do not wait: source and destination must remain until the stream has done them, and must not overlap.
  /// From and to memory of the host that is not page-locked the call may take as long as the copy. Throws too if the
  /// sizes differ.
  virtual void upload(StreamId stream, DeviceSpan to, std::span<const std::byte> from) = 0;
  virtual void download(StreamId stream, std::span<std::byte> to, DeviceSpan from) = 0;
  virtual void copy(StreamId stream, DeviceSpan to, DeviceSpan from) = 0;
  /// Sets every byte.
  virtual void fill(StreamId stream, DeviceSpan to, std::uint8_t byte) = 0;

  /// Memory of `bytes` (0 is allowed) without guard bands, contents unspecified; see `is_out_of_memory`.
  [[nodiscard]] virtual RawBuffer allocate_raw(std::size_t bytes) = 0;
  [[nodiscard]] virtual PinnedBuffer allocate_pinned(std::size_t bytes) = 0;
  /// Whether `reserve` can be had.
  [[nodiscard]] virtual bool can_reserve() const noexcept = 0;
  /// Addresses for at least `bytes` bytes, rounded up to whole pages, with no memory behind them yet. Throws, saying
  /// so, if the driver or the device cannot do it.
  [[nodiscard]] virtual GrowingBuffer reserve(std::size_t bytes) = 0;

  [[nodiscard]] virtual MemoryState state() = 0;
  /// Whether the calling thread is recording a graph on the device.
  [[nodiscard]] virtual bool recording() const noexcept = 0;

 protected:
  friend class MemoryHandle;
  friend class GrowingBuffer;
  virtual void release(std::uint64_t number) noexcept = 0;
  /// Puts memory behind the range's first `bytes` bytes; returns how many have it now.
  [[nodiscard]] virtual std::size_t map(std::uint64_t number, std::size_t bytes) = 0;
};

}  // namespace pascaline
