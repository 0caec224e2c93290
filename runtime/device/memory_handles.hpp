#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/device/device_span.hpp"

namespace pascaline {

class DeviceMemory;

/// What a DeviceMemory gave out under a number that it never gives again; returns it when it goes. Move-only.
class MemoryHandle {
 public:
  MemoryHandle() = default;
  MemoryHandle(DeviceMemory* memory, std::uint64_t number) noexcept : memory_(memory), number_(number) {}
  MemoryHandle(MemoryHandle&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), number_(std::exchange(other.number_, 0)) {}
  MemoryHandle& operator=(MemoryHandle&& other) noexcept {
    MemoryHandle old(std::move(other));
    std::swap(memory_, old.memory_);
    std::swap(number_, old.number_);
    return *this;
  }
  MemoryHandle(const MemoryHandle&) = delete;
  MemoryHandle& operator=(const MemoryHandle&) = delete;
  ~MemoryHandle();

  [[nodiscard]] DeviceMemory* memory() const noexcept { return memory_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }  ///< 0: it holds nothing
  [[nodiscard]] explicit operator bool() const noexcept { return number_ != 0; }

 private:
  DeviceMemory* memory_ = nullptr;
  std::uint64_t number_ = 0;
};

/// Names a stream without owning it; the default value is the device's default stream, the one of kernel launches.
struct StreamId {
  std::uint64_t number = 0;
  auto operator<=>(const StreamId&) const = default;
};

/// Work in the order in which it was given, beside that of other streams. Waits for its work when it goes.
class Stream {
 public:
  Stream() = default;
  explicit Stream(MemoryHandle handle) noexcept : handle_(std::move(handle)) {}
  /// The default stream's, if it holds nothing.
  [[nodiscard]] StreamId id() const noexcept { return {handle_.number()}; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  MemoryHandle handle_;
};

/// A point in a stream's work; see DeviceMemory::record.
class Event {
 public:
  Event() = default;
  explicit Event(MemoryHandle handle) noexcept : handle_(std::move(handle)) {}
  [[nodiscard]] std::uint64_t number() const noexcept { return handle_.number(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  MemoryHandle handle_;
};

/// Device memory without guard bands. Freeing it may wait for the device.
class RawBuffer {
 public:
  RawBuffer() = default;
  RawBuffer(MemoryHandle handle, DeviceSpan span) noexcept : handle_(std::move(handle)), span_(span) {}
  [[nodiscard]] DeviceSpan span() const noexcept { return handle_ ? span_ : DeviceSpan{}; }
  [[nodiscard]] void* data() const noexcept { return span().data; }  ///< device address, 256-byte aligned
  [[nodiscard]] std::size_t bytes() const noexcept { return span().bytes; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  MemoryHandle handle_;
  DeviceSpan span_;
};

/// Page-locked memory of the host, which a device copies from and to while the host goes on, and which kernels can read
/// and write at the same address.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(MemoryHandle handle, std::span<std::byte> bytes) noexcept : handle_(std::move(handle)), bytes_(bytes) {}
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return handle_ ? bytes_ : std::span<std::byte>{}; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  MemoryHandle handle_;
  std::span<std::byte> bytes_;
};

/// Addresses of a device that were reserved once and get memory behind them page by page: what begins at `data` grows
/// in place, and kernels and graphs keep its address. Made by DeviceMemory::reserve.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;
  GrowingBuffer(MemoryHandle handle, DeviceSpan reserved) noexcept : handle_(std::move(handle)), reserved_(reserved) {}

  /// Puts memory behind the first `bytes` bytes and what fills up the last page; what is there already stays, with its
  /// contents, the rest's are unspecified. Never shrinks. Throws Error if more is asked for than was reserved,
  /// CudaError or EmulatorError (see `is_out_of_memory`) if the device has too little; the buffer is then as it was.
  void grow_to(std::size_t bytes);
  [[nodiscard]] void* data() const noexcept { return reserved().data; }  ///< device address, 256-byte aligned
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return reserved().bytes; }
  [[nodiscard]] std::size_t mapped_bytes() const noexcept { return handle_ ? mapped_bytes_ : 0; }
  /// What has memory behind it.
  [[nodiscard]] DeviceSpan span() const noexcept { return {data(), mapped_bytes()}; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  [[nodiscard]] DeviceSpan reserved() const noexcept { return handle_ ? reserved_ : DeviceSpan{}; }

  MemoryHandle handle_;
  DeviceSpan reserved_;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace pascaline
