#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "python/src/engines.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::python {

/// Of arrays whose library has a current stream.
enum class Library : std::uint8_t { other, torch, cupy };

/// An array of a caller, in whose memory it is used as it is. A PyTorch tensor is not kept: the caller's arguments do
/// that as long as the call lasts.
struct Tensor {
  nanobind::object owner;                 ///< keeps the memory
  nanobind::ndarray<nanobind::ro> array;  ///< as DLPack has it; invalid where that does not serve
  TensorView view;
  Place place = kNowhere;  ///< kProcessor or a GPU
  Library library = Library::other;
  std::optional<ForeignStream> stream{};  ///< what must be waited for, as far as the array tells

  [[nodiscard]] bool in_host_memory() const noexcept { return place == kProcessor; }
};

/// Whether leading extents stay as they are, or become one, so that the array is a matrix.
enum class Shape : std::uint8_t { as_it_is, matrix };

/// Of an object that exports DLPack, a buffer or `__cuda_array_interface__`, as NumPy, PyTorch, CuPy and Numba have
/// them; no copy is made, and nothing waited for. `name` is the argument's. Throws TypeError for what is no array or of
/// another element type, ArgumentError for memory of another kind of device, more than four dimensions, elements that
/// do not lie row by row, and where it is to be `written` but is read-only. Arrays of one or two dimensions are as they
/// are in either `shape`.
[[nodiscard]] Tensor tensor_of(std::string_view name, nanobind::handle object, bool written,
                               Shape shape = Shape::as_it_is);

/// Bytes of a matrix in a packed format; throws ArgumentError, which names the argument, for extents that none has.
[[nodiscard]] std::int64_t packed_matrix_bytes(std::string_view name, ElementType format, std::int64_t rows,
                                               std::int64_t columns);

/// A tensor under its argument's name.
struct NamedTensor {
  std::string_view name;
  Tensor tensor;
};

/// Where what is called with these arrays is computed: where all of them are, or on the emulated device if "emulator"
/// is `wanted` and they are in host memory; kNowhere without arrays. Throws ArgumentError where they are on several
/// devices, or not on the one that is wanted (empty: none in particular).
[[nodiscard]] Place place_of(std::string_view wanted, std::span<const NamedTensor> tensors);

/// The stream of a call on a GPU with these arrays: `given` (an integer, or a stream of PyTorch, CuPy or another
/// library with `__cuda_stream__`), or if that is None the current one of the arrays' library, or the one that an array
/// tells; and those that other arrays tell. Throws TypeError for what is no stream; ArgumentError for one with arrays
/// in host memory.
[[nodiscard]] CallStreams streams_of(Place place, nanobind::handle given, std::span<const NamedTensor> tensors);

}  // namespace pascaline::python
