#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>

namespace pascaline::python {

/// A tensor of PyTorch as it is now. `shape` and `strides` (in elements) are the tensor's own, and valid as long as it
/// is not changed.
struct TorchTensor {
  void* data = nullptr;
  nanobind::dlpack::dtype type{};
  std::int32_t device_type = 0;  ///< as DLPack counts them
  std::int32_t device_id = 0;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;
  bool requires_grad = false;  ///< if that was asked
  bool is_negated = false;     ///< its memory holds the opposite of its values (torch.Tensor.is_neg)
};

/// Reads a torch.Tensor or torch.nn.Parameter by the functions that PyTorch exports for it (DLPack's exchange API, from
/// 2.10 on), in some 100 ns. Nothing for other objects, subclasses, older versions, and tensors that PyTorch does not
/// give away (sparse ones, for instance). With the GIL.
[[nodiscard]] std::optional<TorchTensor> read_torch_tensor(nanobind::handle object, bool asks_requires_grad);

/// Whether it is a torch.Tensor of whatever class, or an array of CuPy; neither library is imported for that.
[[nodiscard]] bool is_of_torch(nanobind::handle object);
[[nodiscard]] bool is_of_cupy(nanobind::handle object);

/// Tells PyTorch that the memory of a tensor was written, so that it refuses derivatives that need what was there.
void note_torch_change(nanobind::handle tensor);

/// Of a tensor of whatever class for which `is_of_torch`: whether its memory holds the opposite of its values.
[[nodiscard]] bool is_negated_torch_tensor(nanobind::handle object);

/// The handle of the library's current stream in the calling thread, on the GPU of that number, or on the current one.
[[nodiscard]] std::uintptr_t current_torch_stream(int ordinal);
[[nodiscard]] std::uintptr_t current_cupy_stream();

}  // namespace pascaline::python
