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
#include "python/src/torch_tensors.hpp"
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
                              {nb::dlpack::dtype_code::Int, 16, ElementType::int16},
                              {nb::dlpack::dtype_code::Int, 32, ElementType::int32},
                              {nb::dlpack::dtype_code::Int, 64, ElementType::int64},
                              {nb::dlpack::dtype_code::UInt, 8, ElementType::uint8},
                              {nb::dlpack::dtype_code::UInt, 16, ElementType::uint16},
                              {nb::dlpack::dtype_code::UInt, 32, ElementType::uint32},
                              {nb::dlpack::dtype_code::UInt, 64, ElementType::uint64},
                              {nb::dlpack::dtype_code::Bool, 8, ElementType::boolean}};
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

std::string unsupported_text(std::string_view name, nb::handle object) {
  return fmt::format("{}: an array of {} is not supported; it can be {}", name, dtype_text(object),
                     names_of(std::span(kElementTypes).first(static_cast<std::size_t>(ElementType::float16x))));
}

// Why an object that has a type and a shape cannot be taken: what its library says, or else its element type.
std::string refusal_text(std::string_view name, nb::handle object) {
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

// PyTorch's tensors in a graph of derivatives: what is computed here has none, and would silently cut it. Whether it is
// one that could be in such a graph, but for now is not.
bool refuse_derivatives(std::string_view name, nb::handle object) {
  PyObject* const required = PyObject_GetAttrString(object.ptr(), "requires_grad");
  if (required == nullptr) {
    PyErr_Clear();
    return false;
  }
  const nb::object held = nb::steal(required);
  if (required != Py_True) {
    return false;
  }
  const nb::object library = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
  if (library.is_valid() && nb::cast<bool>(library.attr("is_grad_enabled")())) {
    throw ArgumentError(
        fmt::format("{}: it requires a gradient, which is not computed here; call within torch.no_grad(), or pass "
                    "its detach()",
                    name));
  }
  return true;
}

[[noreturn]] void refuse_negated(std::string_view name) {
  throw ArgumentError(fmt::format(
      "{}: it is a negated view, whose memory holds the opposite of its values; pass its resolve_neg()", name));
}

// The class of NumPy's arrays, once it is imported; never given back.
PyObject* numpy_array() {
  static PyObject* known = nullptr;
  if (known == nullptr) {
    const nb::object library = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
    if (!library.is_valid() || !nb::hasattr(library, "ma") || !nb::hasattr(library, "ndarray")) {
      PyErr_Clear();
      return nullptr;
    }
    known = library.attr("ndarray").inc_ref().ptr();
  }
  return known;
}

// NumPy's masked arrays give their memory away as if nothing in it were masked.
void refuse_mask(std::string_view name, nb::handle object) {
  PyObject* const plain = numpy_array();
  if (plain == nullptr || object.type().ptr() == plain || PyObject_IsInstance(object.ptr(), plain) != 1) {
    return;
  }
  if (nb::hasattr(object, "mask") && nb::hasattr(object, "filled")) {
    throw ArgumentError(
        fmt::format("{}: the array has a mask, which no operation looks at; pass its filled() or its data", name));
  }
}

// Calls `__dlpack__`, for a capsule that tells whether the array is read-only or for one that every version gives;
// without a result what it raised is set.
nb::object export_of(nb::handle method, bool versioned) {
  const nb::dict named;
  if (versioned) {
    named["max_version"] = nb::make_tuple(1, 0);
  }
  return nb::steal(PyObject_Call(method.ptr(), nb::tuple().ptr(), named.ptr()));
}

// A capsule of what an object's `__dlpack__` gives. nanobind would call that, too, but trust it to give a new one each
// time.
nb::object capsule_of(std::string_view name, nb::handle object, nb::handle method, bool written) {
  nb::object capsule = export_of(method, written);
  if (!capsule.is_valid() && PyErr_ExceptionMatches(PyExc_Exception) != 0) {
    nb::python_error first;  // takes what is set
    capsule = export_of(method, !written);
    if (!capsule.is_valid() && PyErr_ExceptionMatches(PyExc_Exception) != 0) {
      PyErr_Clear();
      throw nb::type_error(fmt::format("{}: {} does not give its memory away: {}", name, class_name(object),
                                       nb::cast<std::string>(nb::str(first.value())))
                               .c_str());
    }
  }
  if (!capsule.is_valid()) {
    throw nb::python_error();  // KeyboardInterrupt, for instance
  }
  if (PyCapsule_CheckExact(capsule.ptr()) == 0) {
    throw nb::type_error(
        fmt::format("{}: the __dlpack__ of {} gives no capsule but {}", name, class_name(object), class_name(capsule))
            .c_str());
  }
  return capsule;
}

Array array_of(std::string_view name, nb::handle object, bool written) {
  nb::object source = nb::borrow(object);
  if (object.type().ptr() != numpy_array()) {
    const nb::object method = nb::getattr(object, "__dlpack__", nb::none());
    if (PyCallable_Check(method.ptr()) != 0) {
      source = capsule_of(name, object, method, written);
    }
  }
  Array array;
  if (written) {
    nb::ndarray<> writable;
    if (nb::try_cast(source, writable, false)) {
      return Array(writable);
    }
    PyErr_Clear();
  }
  if (!nb::try_cast(source, array, false)) {
    PyErr_Clear();
    if (!source.is(object)) {
      throw nb::type_error(
          fmt::format("{}: the __dlpack__ of {} gives a capsule that was used before", name, class_name(object))
              .c_str());
    }
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

Place place_on(std::string_view name, int kind, int ordinal) {
  switch (kind) {
    case nb::device::cpu::value:
      return kProcessor;
    case nb::device::cuda::value:
      return ordinal;
    default:
      throw ArgumentError(
          fmt::format("{}: the array is in the memory of a device that is neither the processor nor a "
                      "CUDA device (DLPack's type {})",
                      name, kind));
  }
}

// What an array is, wherever that was learnt.
struct Layout {
  void* data = nullptr;
  std::optional<ElementType> type;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;  // elements
};

[[noreturn]] void refuse_rows(std::string_view name) {
  throw ArgumentError(fmt::format("{}: its elements do not lie row by row; pass a contiguous copy of the array", name));
}

// The product, which for no array that is anywhere is more than 64 bits hold.
std::int64_t times(std::string_view name, std::int64_t elements, std::int64_t extent) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(elements, extent, &product)) {
    throw ArgumentError(fmt::format("{}: it has more elements than any memory", name));
  }
  return product;
}

TensorView view_of(std::string_view name, nb::handle object, const Layout& layout) {
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
  if (layout.data == nullptr && !empty) {
    throw ArgumentError(fmt::format(
        "{}: it has no memory, as fake tensors, wrappers of others and tensors whose storage is gone", name));
  }
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
    dense = times(name, dense, extent);
  }
  return view;
}

// Leading extents become one; a matrix whose rows lie apart cannot be made of more.
void make_matrix(std::string_view name, TensorView& view) {
  if (view.rank <= 2) {
    return;
  }
  if (view.row_stride != 0) {
    refuse_rows(name);
  }
  const std::int64_t columns = view.shape[static_cast<std::size_t>(view.rank) - 1];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(view.rank); ++i) {
    rows *= view.shape[i];
    view.shape[i] = 0;
  }
  view.shape = {rows, columns};
  view.rank = 2;
}

Layout layout_of(const Array& array) {
  // What is written was asked for as such.
  return {const_cast<void*>(array.data()),
          type_from(array.dtype()),
          {array.shape_ptr(), array.ndim()},
          {array.stride_ptr(), array.ndim()}};
}

std::optional<ElementType> type_from_text(const std::string& typestr) {
  if (typestr.size() != 3 || (typestr[0] != '<' && typestr[0] != '|' && typestr[0] != '=')) {
    return std::nullopt;
  }
  const nb::dlpack::dtype_code code = typestr[1] == 'f'   ? nb::dlpack::dtype_code::Float
                                      : typestr[1] == 'i' ? nb::dlpack::dtype_code::Int
                                      : typestr[1] == 'u' ? nb::dlpack::dtype_code::UInt
                                      : typestr[1] == 'b' ? nb::dlpack::dtype_code::Bool
                                                          : nb::dlpack::dtype_code::Complex;
  return type_from(
      nb::dlpack::dtype{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * (typestr[2] - '0')), 1});
}

std::size_t count_cards() {
  static const std::size_t count = [] {
    std::size_t cards = 0;
    for (const DeviceInfo& info : list_devices()) {
      cards += info.kind == DeviceKind::cuda ? 1 : 0;
    }
    return cards;
  }();
  return count;
}

// The ordinal of an object's CUDA device: its attribute `device`, a number or something with an `id`.
Place interface_device(std::string_view name, nb::handle object) {
  if (nb::hasattr(object, "device")) {
    nb::object device = object.attr("device");
    if (nb::hasattr(device, "id")) {
      device = device.attr("id");
    }
    int ordinal = 0;
    if (nb::try_cast(device, ordinal) && ordinal >= 0) {
      return ordinal;
    }
    PyErr_Clear();
  }
  if (count_cards() > 1) {
    throw ArgumentError(
        fmt::format("{}: the array does not say which CUDA device it is on; pass one with DLPack", name));
  }
  return 0;
}

// An entry of a tuple that somebody else made: nanobind does not look whether it is there.
nb::handle entry_of(const nb::tuple& tuple, std::size_t at) {
  if (at >= tuple.size()) {
    throw nb::cast_error();
  }
  return tuple[at];
}

// What version 3 has of the stream on which an array may still be written: none has to be waited for if it is missing.
std::optional<ForeignStream> interface_stream(std::string_view name, const nb::dict& interface) {
  if (!interface.contains("stream") || interface["stream"].is_none()) {
    return std::nullopt;
  }
  const auto handle = nb::cast<std::uintptr_t>(interface["stream"]);
  if (handle == 0) {
    throw ArgumentError(
        fmt::format("{}: its __cuda_array_interface__ gives stream 0, which is ambiguous; 1 is the legacy default "
                    "stream, 2 the calling thread's",
                    name));
  }
  return ForeignStream{handle};
}

// CUDA Array Interface, version 3.
Tensor tensor_of_interface(std::string_view name, nb::handle object, bool written) {
  Tensor tensor;
  tensor.owner = nb::borrow(object);
  try {
    const nb::dict interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
    const nb::tuple data = nb::cast<nb::tuple>(interface["data"]);
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    Layout layout;
    layout.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(entry_of(data, 0)));
    if (nb::cast<bool>(entry_of(data, 1)) && written) {
      throw ArgumentError(fmt::format("{}: the array is read-only, and would be written", name));
    }
    layout.type = type_from_text(nb::cast<std::string>(interface["typestr"]));
    const auto bytes = static_cast<std::int64_t>(layout.type ? size_of(*layout.type) : 1);
    for (nb::handle extent : nb::cast<nb::tuple>(interface["shape"])) {
      shape.push_back(nb::cast<std::int64_t>(extent));
    }
    strides.assign(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) {
      strides[i - 1] = times(name, strides[i], shape[i]);
    }
    if (interface.contains("strides") && !interface["strides"].is_none()) {
      const nb::tuple given = nb::cast<nb::tuple>(interface["strides"]);
      if (given.size() != shape.size()) {
        throw nb::cast_error();
      }
      for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto stride = nb::cast<std::int64_t>(given[i]);
        if (stride % bytes != 0) {
          refuse_rows(name);
        }
        strides[i] = stride / bytes;
      }
    }
    if (interface.contains("mask") && !interface["mask"].is_none()) {
      throw ArgumentError(fmt::format("{}: the array has a mask, which no operation looks at", name));
    }
    layout.shape = shape;
    layout.strides = strides;
    tensor.place = interface_device(name, object);
    tensor.stream = interface_stream(name, interface);
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
Tensor tensor_of_packed(std::string_view name, nb::handle object, bool written) {
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
  nb::object data = object.attr("data");
  if (nb::hasattr(data, "packed_format")) {
    throw nb::type_error(fmt::format("{}: its data are no array, but {}", name, class_name(data)).c_str());
  }
  Tensor tensor = tensor_of(name, data, false);
  if (!tensor.owner.is_valid()) {
    tensor.owner = std::move(data);
  }
  const TensorView& bytes = tensor.view;
  if (!type || !is_packed_format(*type) || bytes.type != ElementType::uint8 || bytes.rank != 1 ||
      bytes.shape[0] != packed_matrix_bytes(name, *type, shape.first, shape.second)) {
    throw ArgumentError(fmt::format("{}: its data are not the bytes of a matrix of {} by {} in {}", name, shape.first,
                                    shape.second, format));
  }
  tensor.view = TensorView(bytes.data, *type, {shape.first, shape.second});
  return tensor;
}

// A PyTorch tensor by PyTorch's own functions for it; nothing where they do not take it.
std::optional<Tensor> tensor_of_torch(std::string_view name, nb::handle object, Caller caller) {
  const std::optional<TorchTensor> found = read_torch_tensor(object, caller == Caller::anybody);
  if (!found) {
    return std::nullopt;
  }
  if (found->requires_grad) {
    refuse_derivatives(name, object);
  }
  if (found->is_negated) {
    refuse_negated(name);
  }
  Tensor tensor;
  tensor.library = Library::torch;
  tensor.place = place_on(name, found->device_type, found->device_id);
  tensor.view = view_of(name, object, {found->data, type_from(found->type), found->shape, found->strides});
  return tensor;
}

Tensor any_tensor(std::string_view name, nb::handle object, bool written, Caller caller) {
  if (std::optional<Tensor> found = tensor_of_torch(name, object, caller)) {
    return *std::move(found);
  }
  if (nb::hasattr(object, "packed_format")) {
    return tensor_of_packed(name, object, written);
  }
  const bool is_cupy = is_of_cupy(object);
  if ((is_cupy || !nb::hasattr(object, "__dlpack__")) && nb::hasattr(object, "__cuda_array_interface__")) {
    Tensor tensor = tensor_of_interface(name, object, written);
    tensor.library = is_cupy ? Library::cupy : Library::other;
    return tensor;
  }
  const bool requires_derivative = refuse_derivatives(name, object);
  refuse_mask(name, object);
  const bool is_torch = is_of_torch(object);
  if (is_torch && is_negated_torch_tensor(object)) {
    refuse_negated(name);
  }
  Tensor tensor;
  tensor.owner = nb::borrow(object);
  tensor.array =
      array_of(name, is_torch && requires_derivative ? object.attr("detach")() : nb::borrow(object), written);
  tensor.place = place_on(name, tensor.array.device_type(), tensor.array.device_id());
  tensor.view = view_of(name, object, layout_of(tensor.array));
  if (is_torch) {
    tensor.library = Library::torch;
  } else if (!tensor.in_host_memory()) {
    tensor.stream = ForeignStream{};  // DLPack made the legacy default stream wait for what writes the array
  }
  return tensor;
}

// A stream's handle, whatever library it is of.
ForeignStream stream_of(nb::handle given) {
  try {
    if (PyLong_Check(given.ptr()) != 0 && !nb::isinstance<nb::bool_>(given)) {
      return {nb::cast<std::uintptr_t>(given)};
    }
    if (nb::hasattr(given, "cuda_stream")) {  // PyTorch
      return {nb::cast<std::uintptr_t>(given.attr("cuda_stream"))};
    }
    if (nb::hasattr(given, "__cuda_stream__")) {  // a version and the handle
      return {nb::cast<std::uintptr_t>(entry_of(nb::cast<nb::tuple>(given.attr("__cuda_stream__")()), 1))};
    }
    if (nb::hasattr(given, "ptr")) {  // CuPy
      return {nb::cast<std::uintptr_t>(given.attr("ptr"))};
    }
  } catch (const nb::cast_error&) {
    PyErr_Clear();
  }
  throw nb::type_error(
      fmt::format("stream: {} is not a stream; pass one of PyTorch, CuPy, another library with __cuda_stream__, or its "
                  "handle",
                  class_name(given))
          .c_str());
}

// The current stream of the library that an array is of.
std::optional<ForeignStream> current_stream(const Tensor& tensor) {
  switch (tensor.library) {
    case Library::torch:
      return ForeignStream{current_torch_stream(tensor.place)};
    case Library::cupy:
      return ForeignStream{current_cupy_stream()};
    case Library::other:
      break;
  }
  return std::nullopt;
}

}  // namespace

Tensor tensor_of(std::string_view name, nb::handle object, bool written, Caller caller) {
  Tensor tensor = any_tensor(name, object, written, caller);
  if (caller == Caller::torch_operators) {
    make_matrix(name, tensor.view);
  } else if (written && tensor.library == Library::torch) {
    tensor.written = object;
  }
  return tensor;
}

void note_changes(std::span<const NamedTensor> tensors) {
  for (const NamedTensor& named : tensors) {
    if (named.tensor.written.is_valid()) {
      note_torch_change(named.tensor.written);
    }
  }
}

std::int64_t packed_matrix_bytes(std::string_view name, ElementType format, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // so that no number of bytes overflows
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost) {
    throw ArgumentError(fmt::format("{}: a packed matrix of {} by {} is not possible; extents are 0 to {}", name, rows,
                                    columns, kMost));
  }
  return layout_of(format).bytes(rows, columns);
}

Place place_of(std::string_view wanted, std::span<const NamedTensor> tensors) {
  if (tensors.empty()) {
    if (!wanted.empty()) {
      throw ArgumentError(fmt::format("device: it is {}, but there are no arrays", wanted));
    }
    return kNowhere;
  }
  const Place place = tensors.front().tensor.place;
  for (const NamedTensor& other : tensors) {
    if (other.tensor.place != place) {
      throw ArgumentError(fmt::format("{} is on {}, but {} is on {}; move one of them", other.name,
                                      name_of_place(other.tensor.place), tensors.front().name, name_of_place(place)));
    }
  }
  if (wanted.empty() || wanted == name_of_place(place)) {
    return place;
  }
  if (place == kProcessor && (wanted == "emulator" || wanted == "host")) {
    return kEmulator;
  }
  throw ArgumentError(fmt::format(
      "device: it is {}, but the arrays are on {}; leave it out, or give 'emulator' with arrays in host memory", wanted,
      name_of_place(place)));
}

namespace {

bool waits_for(const CallStreams& streams, ForeignStream stream) {
  for (std::size_t i = 0; i < streams.waited_count; ++i) {
    if (streams.waited[i].handle == stream.handle) {
      return true;
    }
  }
  return false;
}

}  // namespace

CallStreams streams_of(Place place, nb::handle given, std::span<const NamedTensor> tensors) {
  CallStreams streams;
  if (place < 0) {
    if (!given.is_none()) {
      throw ArgumentError("stream: the arrays are in host memory, where no stream is; leave it out");
    }
    return streams;
  }
  std::optional<ForeignStream> used;
  if (!given.is_none()) {
    used = stream_of(given);
  }
  for (const NamedTensor& named : tensors) {
    if (!used && named.tensor.library != Library::other) {
      used = current_stream(named.tensor);
    }
  }
  for (const NamedTensor& named : tensors) {
    const std::optional<ForeignStream>& told = named.tensor.stream;
    if (!told || (used && used->handle == told->handle)) {
      continue;
    }
    if (!used) {
      used = told;
    } else if (!waits_for(streams, *told)) {
      streams.waited.at(streams.waited_count++) = *told;
    }
  }
  streams.used = used.value_or(ForeignStream{});
  return streams;
}

}  // namespace pascaline::python
