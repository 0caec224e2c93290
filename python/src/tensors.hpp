#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <map>
#include <string>

#include "runtime/ops/tensor.hpp"

namespace pascaline::python {

/// What host memory is "on".
inline constexpr const char* kProcessor = "cpu";

/// An array of a caller, in whose memory it is used as it is.
struct Tensor {
  nanobind::object owner;                 ///< keeps the memory
  nanobind::ndarray<nanobind::ro> array;  ///< as DLPack has it; invalid where that does not serve
  TensorView view;
  std::string device;  ///< "cpu" or "cuda:N"
};

/// Of an object that exports DLPack, a buffer or `__cuda_array_interface__`, as NumPy, PyTorch, CuPy and Numba have
/// them; no copy is made. `name` is the argument's. Throws TypeError for what is no array or of another element type,
/// ArgumentError for memory of another kind of device, more than four dimensions, elements that do not lie row by row,
/// and where it is to be `written` but is read-only.
[[nodiscard]] Tensor tensor_of(const std::string& name, nanobind::handle object, bool written);

/// Bytes of a matrix in a packed format; throws ArgumentError, which names the argument, for extents that none has.
[[nodiscard]] std::int64_t packed_matrix_bytes(const std::string& name, ElementType format, std::int64_t rows,
                                               std::int64_t columns);

/// Where what is called with these arrays is computed: where all of them are, "cpu" or "cuda:N", or "emulator" if that
/// is `wanted` and they are in host memory; empty without arrays. Throws ArgumentError where they are on several
/// devices, or not on the one that is wanted (empty: none in particular).
[[nodiscard]] std::string place_of(const std::string& wanted, const std::map<std::string, Tensor>& tensors);

}  // namespace pascaline::python
