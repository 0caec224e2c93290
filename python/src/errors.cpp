#include "python/src/errors.hpp"

#include <exception>
#include <string>

#include "app/options.hpp"
#include "core/util/shown_text.hpp"
#include "python/src/command_words.hpp"

namespace pascaline::python {
namespace {

namespace nb = nanobind;

// The exceptions, which live as long as the interpreter.
struct ErrorTypes {
  PyObject* error = nullptr;
  PyObject* argument = nullptr;
  PyObject* cuda = nullptr;
  PyObject* device_lost = nullptr;
  PyObject* nvrtc = nullptr;
  PyObject* emulator = nullptr;
  PyObject* out_of_memory = nullptr;
  PyObject* missing_code = nullptr;
  PyObject* store = nullptr;
  PyObject* store_busy = nullptr;
  PyObject* space = nullptr;
};

ErrorTypes g_errors;

PyObject* make_error(nb::module_& module, const char* name, PyObject* bases, const char* documentation) {
  PyObject* const type =
      PyErr_NewExceptionWithDoc(("pascaline." + std::string(name)).c_str(), documentation, bases, nullptr);
  if (type == nullptr) {
    throw nb::python_error();
  }
  module.attr(name) = nb::handle(type);
  return type;
}

PyObject* two_bases(PyObject* first, PyObject* second) { return PyTuple_Pack(2, first, second); }

void raise(PyObject* type, const Error& error, const nb::dict& fields) {
  nb::object instance = nb::handle(type)(nb::str(python_names(bounded(error.what(), kMaxShownText)).c_str()));
  instance.attr("code") = error.code();
  for (auto [name, value] : fields) {
    nb::setattr(instance, name, value);
  }
  PyErr_SetObject(type, instance.ptr());
}

void raise_store(const StoreError& error) {
  raise(dynamic_cast<const StoreBusyError*>(&error) != nullptr ? g_errors.store_busy : g_errors.store, error, {});
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  nb::dict fields;
  try {
    std::rethrow_exception(thrown);
  } catch (const pascaline::ArgumentError& error) {
    raise(g_errors.argument, error, fields);
  } catch (const UsageError& error) {
    raise(g_errors.argument, error, fields);
  } catch (const DeviceLostError& error) {
    raise(g_errors.device_lost, error, fields);
  } catch (const CudaError& error) {
    raise(g_errors.cuda, error, fields);
  } catch (const NvrtcError& error) {
    fields["log"] = nb::str(error.log().data(), error.log().size());
    raise(g_errors.nvrtc, error, fields);
  } catch (const EmulatorError& error) {
    raise(g_errors.emulator, error, fields);
  } catch (const OutOfMemoryError& error) {
    fields["needed_bytes"] = error.needed_bytes();
    fields["free_bytes"] = error.free_bytes();
    raise(g_errors.out_of_memory, error, fields);
  } catch (const MissingCodeError& error) {
    raise(g_errors.missing_code, error, fields);
  } catch (const StoreError& error) {
    raise_store(error);
  } catch (const SpaceError& error) {
    fields["file"] = nb::str(error.file().data(), error.file().size());
    fields["pointer"] = nb::str(error.pointer().data(), error.pointer().size());
    raise(g_errors.space, error, fields);
  } catch (const Error& error) {
    raise(g_errors.error, error, fields);
  }
}

}  // namespace

void add_errors(nb::module_& module) {
  ErrorTypes& types = g_errors;
  types.error = make_error(module, "Error", PyExc_Exception,
                           "Something that Pascaline refuses or that failed; `code` is the number that the library at "
                           "fault gave, or 0.");
  nb::handle(types.error).attr("code") = 0;  // of what Python's part of the package raises
  types.argument = make_error(module, "ArgumentError", two_bases(types.error, PyExc_ValueError),
                              "An argument has a value that does not fit; the message names it.");
  types.cuda = make_error(module, "CudaError", types.error,
                          "A call of the CUDA driver or of NVML failed; `code` is the CUresult or nvmlReturn_t.");
  types.device_lost = make_error(module, "DeviceLostError", types.cuda,
                                 "A kernel's fault took the device from this process: start a new one.");
  types.nvrtc = make_error(module, "NvrtcError", types.error, "NVRTC is missing or failed; `log` is what it wrote.");
  types.emulator = make_error(module, "EmulatorError", types.error, "The emulated device failed.");
  types.out_of_memory =
      make_error(module, "OutOfMemoryError", two_bases(types.error, PyExc_MemoryError),
                 "A device has too little memory: `needed_bytes` of it, of which there are `free_bytes`.");
  types.missing_code = make_error(module, "MissingCodeError", types.error, "A bundle has no code for what is to run.");
  types.store = make_error(module, "StoreError", types.error,
                           "The database cannot be opened, read or written; `code` is SQLite's.");
  types.store_busy = make_error(module, "StoreBusyError", types.store,
                                "The database is locked by another process; trying again later may succeed.");
  types.space = make_error(module, "SpaceError", two_bases(types.error, PyExc_ValueError),
                           "A search space or workload is wrong at `pointer` (a JSON pointer) of `file`.");
  nb::register_exception_translator(translate);
}

}  // namespace pascaline::python
