#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <csignal>

#include "core/util/draft_folder.hpp"
#include "core/util/paths.hpp"
#include "core/version.hpp"
#include "python/src/commands.hpp"
#include "python/src/errors.hpp"
#include "python/src/without_gil.hpp"

NB_MODULE(_native, module) {
  namespace py = pascaline::python;
  std::signal(SIGXFSZ, SIG_IGN);       // a file that may not grow is a fault to be told
  nanobind::set_leak_warnings(false);  // at an end that threads are in the middle of
  module.doc() = "Pascaline's libraries, for the package around it.";
  module.attr("version") = std::string(pascaline::kVersion);
  module.def(
      "set_installation_prefix", [](const std::string& prefix) { pascaline::set_installation_prefix(prefix); },
      nanobind::arg("prefix"), "Folder with bin/pascaline and share/pascaline.");
  nanobind::class_<pascaline::DraftFolder>(module, "DraftFolder",
                                           "A folder in that for temporary files, gone with the object or, if the "
                                           "process is killed, at the next start.")
      .def("__init__",
           [](pascaline::DraftFolder* made) {
             new (made) pascaline::DraftFolder(pascaline::temporary_files() / "pascaline");
           })
      .def_prop_ro("path", [](const pascaline::DraftFolder& made) { return made.path().string(); });
  py::add_errors(module);
  py::add_end(module);
  py::add_commands(module);
  py::add_sweeps(module);
  py::add_operations(module);
  py::add_models(module);
  py::add_packed(module);
  py::add_kernels(module);
}
