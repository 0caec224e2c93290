#include "python/src/torch_tensors.hpp"

#include <string>

namespace pascaline::python {
namespace {

namespace nb = nanobind;

// DLPack 1.3's DLTensor and DLPackExchangeAPI (dlpack.h), as far as they are used here.
struct DlTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  nb::dlpack::dtype dtype;
  const std::int64_t* shape;
  const std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct DlExchangeApi {
  std::uint32_t major;
  std::uint32_t minor;
  DlExchangeApi* previous;
  void (*allocate)();
  void (*export_managed)();
  void (*import_managed)();
  int (*export_tensor)(void* object, DlTensor* to);
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** to);
};

constexpr std::uint32_t kDlpackMajor = 1;

// What is needed of PyTorch, once it is imported. Never given back: the interpreter ends with it.
struct Torch {
  PyObject* tensor = nullptr;  // the classes
  PyObject* parameter = nullptr;
  PyObject* current_stream = nullptr;
  PyObject* requires_grad = nullptr;  // the attribute's name
  PyObject* is_neg = nullptr;         // the method of the class
  PyObject* note_change = nullptr;    // of tensors' memory: a function of a tuple of them, or of one
  bool notes_several = false;
  const DlExchangeApi* exchange = nullptr;
};

const DlExchangeApi* exchange_of(const nb::object& tensor_class) {
  const nb::object capsule = nb::getattr(tensor_class, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") == 0) {
    return nullptr;
  }
  const auto* api = static_cast<const DlExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api != nullptr && api->major != kDlpackMajor) {
    api = api->previous;
  }
  return api != nullptr && api->export_tensor != nullptr ? api : nullptr;
}

// What increment_version of torch.autograd.graph calls takes half its time; that of PyTorch 2.4 takes one tensor.
void set_note_change(Torch& torch, const nb::object& library) {
  nb::object function = nb::getattr(library.attr("_C"), "_increment_version", nb::none());
  const nb::tuple probe = nb::make_tuple(library.attr("empty")(0, nb::arg("device") = "cpu"));
  const nb::object done = nb::steal(PyObject_CallFunctionObjArgs(function.ptr(), probe.ptr(), nullptr));
  torch.notes_several = done.is_valid();
  if (!torch.notes_several) {
    PyErr_Clear();
    function = library.attr("autograd").attr("graph").attr("increment_version");
  }
  torch.note_change = function.release().ptr();
}

// Null as long as nobody imported it; a half-imported one is looked at again.
const Torch* torch_library() {
  static Torch* known = nullptr;
  if (known != nullptr) {
    return known;
  }
  const nb::object library = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
  if (!library.is_valid() || !nb::hasattr(library, "nn") || !nb::hasattr(library.attr("nn"), "Parameter")) {
    PyErr_Clear();
    return nullptr;
  }
  auto* found = new Torch;
  nb::object tensor = library.attr("Tensor");
  found->exchange = exchange_of(tensor);
  found->is_neg = tensor.attr("is_neg").inc_ref().ptr();
  found->tensor = tensor.release().ptr();
  found->parameter = library.attr("nn").attr("Parameter").inc_ref().ptr();
  set_note_change(*found, library);
  found->current_stream = nb::getattr(library.attr("_C"), "_cuda_getCurrentRawStream", nb::none()).release().ptr();
  found->requires_grad = PyUnicode_InternFromString("requires_grad");
  known = found;
  return known;
}

// A call of the method by itself: PyTorch exports nothing that tells it faster.
bool has_negative_bit(const Torch& torch, nb::handle tensor) {
  const nb::object found = nb::steal(PyObject_CallFunctionObjArgs(torch.is_neg, tensor.ptr(), nullptr));
  if (!found.is_valid()) {
    throw nb::python_error();
  }
  return found.ptr() == Py_True;
}

}  // namespace

std::optional<TorchTensor> read_torch_tensor(nb::handle object, bool asks_requires_grad) {
  const Torch* const torch = torch_library();
  if (torch == nullptr || torch->exchange == nullptr) {
    return std::nullopt;
  }
  PyObject* const kind = object.type().ptr();
  if (kind != torch->tensor && kind != torch->parameter) {
    return std::nullopt;
  }
  DlTensor read{};
  const nb::object required =
      asks_requires_grad ? nb::steal(PyObject_GetAttr(object.ptr(), torch->requires_grad)) : nb::borrow(Py_False);
  if (!required.is_valid() || torch->exchange->export_tensor(object.ptr(), &read) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const auto rank = static_cast<std::size_t>(read.ndim);
  return TorchTensor{static_cast<char*>(read.data) + read.byte_offset,
                     read.dtype,
                     read.device_type,
                     read.device_id,
                     {read.shape, rank},
                     {read.strides, rank},
                     required.ptr() == Py_True,
                     has_negative_bit(*torch, object)};
}

bool is_negated_torch_tensor(nb::handle object) { return has_negative_bit(*torch_library(), object); }

void note_torch_change(nb::handle tensor) {
  const Torch& torch = *torch_library();
  const nb::object given = torch.notes_several ? nb::object(nb::make_tuple(tensor)) : nb::borrow(tensor);
  const nb::object done = nb::steal(PyObject_CallFunctionObjArgs(torch.note_change, given.ptr(), nullptr));
  if (!done.is_valid()) {
    throw nb::python_error();
  }
}

bool is_of_torch(nb::handle object) {
  const Torch* const torch = torch_library();
  return torch != nullptr && PyObject_IsInstance(object.ptr(), torch->tensor) == 1;
}

bool is_of_cupy(nb::handle object) {
  std::string module;
  const nb::object name = nb::getattr(object.type(), "__module__", nb::none());
  return nb::try_cast(name, module) && (module == "cupy" || module.starts_with("cupy."));
}

std::uintptr_t current_torch_stream(int ordinal) {
  const Torch* const torch = torch_library();
  return nb::cast<std::uintptr_t>(nb::handle(torch->current_stream)(ordinal));
}

std::uintptr_t current_cupy_stream() {
  const nb::object library = nb::steal(PyImport_GetModule(nb::str("cupy").ptr()));
  if (!library.is_valid()) {
    throw nb::python_error();
  }
  return nb::cast<std::uintptr_t>(library.attr("cuda").attr("get_current_stream")().attr("ptr"));
}

}  // namespace pascaline::python
