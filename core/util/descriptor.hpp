#pragma once

#include <unistd.h>

#include <utility>

namespace pascaline {

/// An open file, closed once; negative if there is none. Move-only.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  /// Gives it to the caller, who closes it.
  int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_;
};

}  // namespace pascaline
