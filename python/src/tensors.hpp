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
  nanobind::handle written{};             ///< the PyTorch tensor, if it is written and PyTorch does not know that it is
  std::optional<ForeignStream> stream{};  ///< what must be waited for, as far as the array tells

  [[nodiscard]] bool in_host_memory() const noexcept { return place == kProcessor; }
};

/// For whom arrays are read. Those of pascaline.torch's operators become matrices, of whose leading extents one is
/// made, and are not asked whether they require a gradient: it has looked at that.
enum class Caller : std::uint8_t { anybody, torch_operators };

/// Of an object that exports DLPack, a buffer or `__cuda_array_interface__`, as NumPy, PyTorch, CuPy and Numba have
/// them; no copy is made, and nothing waited for. `name` is the argument's. Throws TypeError for what is no array or of
/// another element type, ArgumentError for memory of another kind of device, more than four dimensions, elements that
/// do not lie row by row, of which there is no memory, or whose memory holds the opposite of the values (negated views
/// of PyTorch), and where it is to be `written` but is read-only.
[[nodiscard]] Tensor tensor_of(std::string_view name, nanobind::handle object, bool written,
                               Caller caller = Caller::anybody);

/// Bytes of a matrix in a packed format; throws ArgumentError, which names the argument, for extents that none has.
[[nodiscard]] std::int64_t packed_matrix_bytes(std::string_view name, ElementType format, std::int64_t rows,
                                               std::int64_t columns);

/// A tensor under its argument's name.
struct NamedTensor {
  std::string_view name;
  Tensor tensor;
};

/// Tells PyTorch which of its tensors a call has written. With the GIL.
void note_changes(std::span<const NamedTensor> tensors);

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
