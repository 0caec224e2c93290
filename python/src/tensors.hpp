#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "runtime/ops/tensor.hpp"

namespace pascaline::python {

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

}  // namespace pascaline::python
