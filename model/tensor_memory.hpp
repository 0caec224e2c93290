#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "runtime/device/device_memory.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline {

/// Elements of a dense tensor.
[[nodiscard]] std::int64_t elements_of(const TensorView& tensor) noexcept;
/// Bytes from a tensor's first element to its last, gaps between its rows included.
[[nodiscard]] std::size_t bytes_of(const TensorView& tensor) noexcept;
/// Where a tensor lies.
[[nodiscard]] DeviceSpan span_of(const TensorView& tensor) noexcept;
/// A dense tensor at the beginning of `memory`; throws Error if it does not fit there.
[[nodiscard]] TensorView tensor_in(DeviceSpan memory, ElementType type, std::initializer_list<std::int64_t> extents);
/// Rows `first` to `first + count` of a tensor.
[[nodiscard]] TensorView rows_of(const TensorView& tensor, std::int64_t first, std::int64_t count);
/// The same elements in other extents; throws Error if their number differs. The tensor is dense.
[[nodiscard]] TensorView reshaped(const TensorView& tensor, std::initializer_list<std::int64_t> extents);

/// New memory of the device that holds these values; waits for the copy. Throws as `DeviceMemory::allocate_raw`.
[[nodiscard]] RawBuffer uploaded(DeviceMemory& memory, std::span<const std::byte> values);

}  // namespace pascaline
