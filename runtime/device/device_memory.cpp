#include "runtime/device/device_memory.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "runtime/device/recording_thread.hpp"

namespace pascaline {

DeviceSpan DeviceSpan::slice(std::size_t offset, std::size_t count) const {
  if (offset > bytes || count > bytes - offset) {
    throw Error(
        fmt::format("{} bytes at offset {} are outside a range of {} bytes of device memory", count, offset, bytes));
  }
  return {static_cast<std::byte*>(data) + offset, count};
}

MemoryHandle::~MemoryHandle() {
  if (memory_ != nullptr) {
    memory_->release(number_);
  }
}

void GrowingBuffer::grow_to(std::size_t bytes) {
  if (bytes > reserved_bytes()) {
    throw Error(fmt::format("cannot grow a buffer to {} bytes, only {} are reserved for it; reserve more", bytes,
                            reserved_bytes()));
  }
  if (bytes > mapped_bytes()) {
    mapped_bytes_ = handle_.memory()->map(handle_.number(), bytes);
  }
}

std::string refused_in_recording(std::string_view doing) {
  return fmt::format(
      "cannot {} while launches are recorded (only launching kernels and filling buffers is possible); do it "
      "before or after",
      doing);
}

}  // namespace pascaline
