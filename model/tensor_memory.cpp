#include "model/tensor_memory.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/problem.hpp"

namespace pascaline {
namespace {

std::int64_t row_elements(const TensorView& tensor) noexcept {
  std::int64_t count = 1;
  for (int i = 1; i < tensor.rank; ++i) {
    count *= tensor.shape[static_cast<std::size_t>(i)];
  }
  return count;
}

std::int64_t stride_of(const TensorView& tensor) noexcept {
  return tensor.row_stride == 0 ? row_elements(tensor) : tensor.row_stride;
}

}  // namespace

std::int64_t elements_of(const TensorView& tensor) noexcept {
  return tensor.rank == 0 ? 0 : tensor.shape[0] * row_elements(tensor);
}

std::size_t bytes_of(const TensorView& tensor) noexcept {
  if (elements_of(tensor) == 0) {
    return 0;
  }
  if (is_matrix_format(tensor.type)) {
    return static_cast<std::size_t>(layout_of(tensor.type).bytes(tensor.shape[0], tensor.shape[1]));
  }
  const std::int64_t reach = (tensor.shape[0] - 1) * stride_of(tensor) + row_elements(tensor);
  return bytes_of(tensor.type, static_cast<std::size_t>(reach));
}

DeviceSpan span_of(const TensorView& tensor) noexcept { return {tensor.data, bytes_of(tensor)}; }

TensorView tensor_in(DeviceSpan memory, ElementType type, std::initializer_list<std::int64_t> extents) {
  TensorView tensor(memory.data, type, extents);
  if (bytes_of(tensor) > memory.bytes) {
    throw Error(fmt::format("a tensor of {} bytes does not fit {} bytes of memory", bytes_of(tensor), memory.bytes));
  }
  return tensor;
}

TensorView rows_of(const TensorView& tensor, std::int64_t first, std::int64_t count) {
  if (tensor.rank == 0 || first < 0 || count < 0 || first > tensor.shape[0] - count) {
    throw Error(fmt::format("a tensor of {} rows has no rows {} to {}", tensor.rank == 0 ? 0 : tensor.shape[0], first,
                            first + count));
  }
  if (is_matrix_format(tensor.type)) {
    const MatrixLayout layout = layout_of(tensor.type);
    if (first != 0 && layout.head_bytes > 0) {
      throw Error(
          fmt::format("row {} of a matrix in {} lies after others, without a header", first, name_of(tensor.type)));
    }
    if (first % layout.group_rows != 0) {
      throw Error(fmt::format("row {} of a matrix in {} lies among others", first, name_of(tensor.type)));
    }
    TensorView rows = tensor;
    rows.data = static_cast<std::byte*>(tensor.data) + first / layout.group_rows * layout.group_bytes(tensor.shape[1]);
    rows.shape[0] = count;
    return rows;
  }
  const auto before = static_cast<std::size_t>(first * stride_of(tensor));
  if (before * bits_of(tensor.type) % 8 != 0) {
    throw Error(fmt::format("row {} of a tensor in {} does not begin with a byte", first, name_of(tensor.type)));
  }
  TensorView rows = tensor;
  rows.data = static_cast<std::byte*>(tensor.data) + bytes_of(tensor.type, before);
  rows.shape[0] = count;
  return rows;
}

TensorView reshaped(const TensorView& tensor, std::initializer_list<std::int64_t> extents) {
  TensorView other(tensor.data, tensor.type, extents);
  if (elements_of(other) != elements_of(tensor)) {
    throw Error(fmt::format("{} elements cannot be {}", elements_of(tensor), elements_of(other)));
  }
  return other;
}

RawBuffer uploaded(DeviceMemory& memory, std::span<const std::byte> values) {
  RawBuffer buffer = memory.allocate_raw(values.size());
  memory.upload({}, buffer.span(), values);
  memory.synchronize(StreamId{});
  return buffer;
}

}  // namespace pascaline
