#pragma once

#include <cstddef>

namespace pascaline {

/// A range of a device's memory that someone else owns.
struct DeviceSpan {
  void* data = nullptr;  ///< device address
  std::size_t bytes = 0;

  /// The `count` bytes that begin `offset` bytes behind the start; throws Error if they do not lie in the range.
  [[nodiscard]] DeviceSpan slice(std::size_t offset, std::size_t count) const;
};

}  // namespace pascaline
