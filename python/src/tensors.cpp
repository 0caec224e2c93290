#include "python/src/tensors.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "python/src/errors.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;
using Array = nb::ndarray<nb::ro>;

std::optional<ElementType> type_from(nb::dlpack::dtype type) {
  if (type.lanes != 1) {
    return std::nullopt;
  }
  struct Known {
    nb::dlpack::dtype_code code;
    int bits;
    ElementType type;
  };
  constexpr Known kKnown[] = {{nb::dlpack::dtype_code::Float, 32, ElementType::float32},
                              {nb::dlpack::dtype_code::Float, 16, ElementType::float16},
                              {nb::dlpack::dtype_code::Bfloat, 16, ElementType::bfloat16},
                              {nb::dlpack::dtype_code::Float, 64, ElementType::float64},
                              {nb::dlpack::dtype_code::Int, 8, ElementType::int8},
                              {nb::dlpack::dtype_code::Int, 32, ElementType::int32},
                              {nb::dlpack::dtype_code::Int, 64, ElementType::int64},
                              {nb::dlpack::dtype_code::UInt, 8, ElementType::uint8},
                              {nb::dlpack::dtype_code::UInt, 32, ElementType::uint32}};
  for (const Known& known : kKnown) {
    if (static_cast<int>(known.code) == static_cast<int>(type.code) && known.bits == type.bits) {
      return known.type;
    }
  }
  return std::nullopt;
}

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

// What the caller calls the element type, as far as that is known.
std::string dtype_text(nb::handle object) {
  if (!nb::hasattr(object, "dtype")) {
    return "its own type";
  }
  const nb::object type = object.attr("dtype");
  return nb::cast<std::string>(nb::str(nb::handle(type)));
}

std::string unsupported_text(const std::string& name, nb::handle object) {
  return fmt::format(
      "{}: an array of {} is not supported; it can be float32, float16, bfloat16, float64, int8, int32, int64, uint8 "
      "or "
      "uint32",
      name, dtype_text(object));
}

// Why an object that has a type and a shape cannot be taken: what its library says, or else its element type.
std::string refusal_text(const std::string& name, nb::handle object) {
  if (nb::hasattr(object, "__dlpack__")) {
    try {
      object.attr("__dlpack__")();
    } catch (nb::python_error& error) {
      return fmt::format("{}: {} does not give its memory away: {}", name, class_name(object),
                         nb::cast<std::string>(nb::str(error.value())));
    }
  }
  return unsupported_text(name, object);
}

// PyTorch's tensors in a graph of derivatives: what is computed here has none, and would silently cut it.
void refuse_derivatives(const std::string& name, nb::handle object) {
  if (!nb::hasattr(object, "requires_grad") || !nb::isinstance<nb::bool_>(object.attr("requires_grad")) ||
      !nb::cast<bool>(object.attr("requires_grad"))) {
    return;
  }
  const nb::object library = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
  if (library.is_valid() && nb::cast<bool>(library.attr("is_grad_enabled")())) {
    throw ArgumentError(
        fmt::format("{}: it requires a gradient, which is not computed here; call within torch.no_grad(), or pass "
                    "its detach()",
                    name));
  }
}

Array array_of(const std::string& name, nb::handle object, bool written) {
  Array array;
  if (written) {
    nb::ndarray<> writable;
    if (nb::try_cast(object, writable, false)) {
      return Array(writable);
    }
    PyErr_Clear();
  }
  if (!nb::try_cast(object, array, false)) {
    PyErr_Clear();
    const bool is_array = nb::hasattr(object, "dtype") && nb::hasattr(object, "shape");
    throw nb::type_error(
        (is_array
             ? refusal_text(name, object)
             : fmt::format("{}: {} is not an array; pass one of NumPy, PyTorch, CuPy or another library with DLPack",
                           name, class_name(object)))
            .c_str());
  }
  if (written) {
    throw ArgumentError(fmt::format("{}: the array is read-only, and would be written", name));
  }
  return array;
}

std::string device_of(const std::string& name, const Array& array) {
  switch (array.device_type()) {
    case nb::device::cpu::value:
      return kProcessor;
    case nb::device::cuda::value:
      return fmt::format("cuda:{}", array.device_id());
    default:
      throw ArgumentError(
          fmt::format("{}: the array is in the memory of a device that is neither the processor nor a "
                      "CUDA device (DLPack's type {})",
                      name, array.device_type()));
  }
}

// What an array is, wherever that was learnt.
struct Layout {
  void* data = nullptr;
  std::optional<ElementType> type;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // elements
};

[[noreturn]] void refuse_rows(const std::string& name) {
  throw ArgumentError(fmt::format("{}: its elements do not lie row by row; pass a contiguous copy of the array", name));
}

TensorView view_of(const std::string& name, nb::handle object, const Layout& layout) {
  if (!layout.type) {
    throw nb::type_error(unsupported_text(name, object).c_str());
  }
  if (layout.shape.size() > static_cast<std::size_t>(TensorView::kMaxRank) || layout.shape.empty()) {
    throw ArgumentError(fmt::format("{}: the array has {} dimensions; it must have 1 to {}", name, layout.shape.size(),
                                    TensorView::kMaxRank));
  }
  TensorView view;
  view.data = layout.data;
  view.type = *layout.type;
  view.rank = static_cast<int>(layout.shape.size());
  const bool empty = std::find(layout.shape.begin(), layout.shape.end(), 0) != layout.shape.end();
  std::int64_t dense = 1;
  for (std::size_t i = layout.shape.size(); i-- > 0;) {
    const std::int64_t extent = layout.shape[i];
    view.shape[i] = extent;
    if (!empty && extent > 1 && layout.strides[i] != dense) {
      if (i > 0 || layout.strides[i] < dense) {
        refuse_rows(name);
      }
      view.row_stride = layout.strides[i];
    }
    dense *= extent;
  }
  return view;
}

Layout layout_of(const Array& array) {
  Layout layout;
  layout.data = const_cast<void*>(array.data());  // what is written was asked for as such
  layout.type = type_from(array.dtype());
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    layout.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    layout.strides.push_back(array.stride(i));
  }
  return layout;
}

std::optional<ElementType> type_from_text(const std::string& typestr) {
  if (typestr.size() != 3 || (typestr[0] != '<' && typestr[0] != '|' && typestr[0] != '=')) {
    return std::nullopt;
  }
  const nb::dlpack::dtype_code code = typestr[1] == 'f'   ? nb::dlpack::dtype_code::Float
                                      : typestr[1] == 'i' ? nb::dlpack::dtype_code::Int
                                      : typestr[1] == 'u' ? nb::dlpack::dtype_code::UInt
                                                          : nb::dlpack::dtype_code::Complex;
  return type_from(
      nb::dlpack::dtype{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * (typestr[2] - '0')), 1});
}

// The ordinal of an object's CUDA device: its attribute `device`, a number or something with an `id`.
std::string interface_device(const std::string& name, nb::handle object) {
  if (nb::hasattr(object, "device")) {
    nb::object device = object.attr("device");
    if (nb::hasattr(device, "id")) {
      device = device.attr("id");
    }
    int ordinal = 0;
    if (nb::try_cast(device, ordinal)) {
      return fmt::format("cuda:{}", ordinal);
    }
    PyErr_Clear();
  }
  std::size_t cards = 0;
  for (const DeviceInfo& info : list_devices()) {
    cards += info.kind == DeviceKind::cuda ? 1 : 0;
  }
  if (cards > 1) {
    throw ArgumentError(
        fmt::format("{}: the array does not say which CUDA device it is on; pass one with DLPack", name));
  }
  return "cuda:0";
}

// CUDA Array Interface, version 3.
Tensor tensor_of_interface(const std::string& name, nb::handle object, bool written) {
  Tensor tensor;
  tensor.owner = nb::borrow(object);
  try {
    const nb::dict interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
    const nb::tuple data = nb::cast<nb::tuple>(interface["data"]);
    Layout layout;
    layout.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0]));
    if (written && nb::cast<bool>(data[1])) {
      throw ArgumentError(fmt::format("{}: the array is read-only, and would be written", name));
    }
    layout.type = type_from_text(nb::cast<std::string>(interface["typestr"]));
    const auto bytes = static_cast<std::int64_t>(layout.type ? size_of(*layout.type) : 1);
    for (nb::handle extent : nb::cast<nb::tuple>(interface["shape"])) {
      layout.shape.push_back(nb::cast<std::int64_t>(extent));
    }
    layout.strides.assign(layout.shape.size(), 1);
    for (std::size_t i = layout.shape.size(); i-- > 1;) {
      layout.strides[i - 1] = layout.strides[i] * layout.shape[i];
    }
    if (interface.contains("strides") && !interface["strides"].is_none()) {
      const nb::tuple strides = nb::cast<nb::tuple>(interface["strides"]);
      for (std::size_t i = 0; i < layout.shape.size(); ++i) {
        const auto stride = nb::cast<std::int64_t>(strides[i]);
        if (stride % bytes != 0) {
          refuse_rows(name);
        }
        layout.strides[i] = stride / bytes;
      }
    }
    tensor.device = interface_device(name, object);
    tensor.view = view_of(name, object, layout);
  } catch (const nb::cast_error&) {
    throw nb::type_error(fmt::format("{}: its __cuda_array_interface__ is not valid", name).c_str());
  } catch (nb::python_error& error) {
    throw nb::type_error(
        fmt::format("{}: its __cuda_array_interface__ cannot be read: {}", name, error.what()).c_str());
  }
  return tensor;
}

// Of a matrix in a packed format (packed.PackedMatrix): the bytes are an array.
Tensor tensor_of_packed(const std::string& name, nb::handle object, bool written) {
  if (written) {
    throw ArgumentError(fmt::format("{}: a packed matrix is only read", name));
  }
  std::string format;
  std::pair<std::int64_t, std::int64_t> shape;
  if (!nb::try_cast(object.attr("packed_format"), format) || !nb::try_cast(object.attr("shape"), shape)) {
    PyErr_Clear();
    throw nb::type_error(fmt::format("{}: it is not a pascaline.packed.PackedMatrix", name).c_str());
  }
  const auto type = element_type_from(format);
  Tensor tensor = tensor_of(name, object.attr("data"), false);
  const TensorView& bytes = tensor.view;
  if (!type || !is_packed_format(*type) || bytes.type != ElementType::uint8 || bytes.rank != 1 ||
      bytes.shape[0] != packed_matrix_bytes(name, *type, shape.first, shape.second)) {
    throw ArgumentError(fmt::format("{}: its data are not the bytes of a matrix of {} by {} in {}", name, shape.first,
                                    shape.second, format));
  }
  tensor.view = TensorView(bytes.data, *type, {shape.first, shape.second});
  return tensor;
}

}  // namespace

Tensor tensor_of(const std::string& name, nb::handle object, bool written) {
  if (nb::hasattr(object, "packed_format")) {
    return tensor_of_packed(name, object, written);
  }
  if (!nb::hasattr(object, "__dlpack__") && nb::hasattr(object, "__cuda_array_interface__")) {
    return tensor_of_interface(name, object, written);
  }
  refuse_derivatives(name, object);
  Tensor tensor;
  tensor.owner = nb::borrow(object);
  tensor.array = array_of(name, object, written);
  tensor.device = device_of(name, tensor.array);
  tensor.view = view_of(name, object, layout_of(tensor.array));
  return tensor;
}

std::int64_t packed_matrix_bytes(const std::string& name, ElementType format, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // so that no number of bytes overflows
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost) {
    throw ArgumentError(fmt::format("{}: a packed matrix of {} by {} is not possible; extents are 0 to {}", name, rows,
                                    columns, kMost));
  }
  return layout_of(format).bytes(rows, columns);
}

std::string place_of(const std::string& wanted, const std::map<std::string, Tensor>& tensors) {
  std::string first;
  std::string device;
  for (const auto& [name, tensor] : tensors) {
    if (device.empty()) {
      first = name;
      device = tensor.device;
    } else if (tensor.device != device) {
      throw ArgumentError(
          fmt::format("{} is on {}, but {} is on {}; move one of them", name, tensor.device, first, device));
    }
  }
  if (wanted.empty() || wanted == device) {
    return device;
  }
  if (device == kProcessor && (wanted == "emulator" || wanted == "host")) {
    return "emulator";
  }
  throw ArgumentError(fmt::format(
      "device: it is {}, but the arrays are on {}; leave it out, or give 'emulator' with arrays in host memory", wanted,
      device));
}

}  // namespace pascaline::python
