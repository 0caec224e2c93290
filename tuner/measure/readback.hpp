#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "runtime/device/device.hpp"

namespace pascaline {

/// Reads buffers of a device back in pieces, one being looked at while the next is copied, through page-locked memory
/// that is taken once. Of before a reset of the device nothing may be used after it.
class Readback {
 public:
  /// Bytes of a piece; whole elements of every type.
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20U;
  using Look = std::function<void(std::span<const std::byte> piece, std::size_t offset)>;

  explicit Readback(Device& device);

  /// Calls `look` with every piece of the buffer, in order; `offset` is its first byte. Whatever writes to the buffer
  /// must have ended. Throws CudaError, EmulatorError, or what `look` throws.
  void read(const Buffer& from, const Look& look);
  /// Reads as many bytes from `offset` on as `to` has, at most a piece; waits.
  void read_part(const Buffer& from, std::size_t offset, std::span<std::byte> to);

 private:
  struct Piece {
    PinnedBuffer memory;
    Event copied;
  };

  DeviceMemory* memory_;
  Stream stream_;
  std::array<Piece, 2> pieces_;
};

}  // namespace pascaline
