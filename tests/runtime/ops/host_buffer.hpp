#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/device/emulator/guarded_memory.hpp"

namespace pascaline::testing {

/// Memory between two guard bands; a sanitizer catches what instrumented code does to them, `intact` all else.
class HostBuffer {
 public:
  explicit HostBuffer(const std::vector<std::byte>& contents)
      : bytes_(contents.size()), base_(std::aligned_alloc(kDataAlignment, guarded_bytes(bytes_))) {
    lay_guards(base_.get(), bytes_);
    set(contents);
  }

  [[nodiscard]] void* data() const noexcept { return static_cast<std::byte*>(base_.get()) + Device::kGuardBytes; }
  [[nodiscard]] std::vector<std::byte> contents() const {
    std::vector<std::byte> copy(bytes_);
    std::copy_n(static_cast<const std::byte*>(data()), bytes_, copy.begin());
    return copy;
  }
  /// As many bytes as it holds.
  void set(const std::vector<std::byte>& contents) {
    std::copy_n(contents.begin(), bytes_, static_cast<std::byte*>(data()));
  }
  [[nodiscard]] bool intact() const noexcept { return check_guards(base_.get(), bytes_); }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<void, Free> base_;
};

}  // namespace pascaline::testing
