#pragma once

#include <nanobind/nanobind.h>

namespace pascaline::python {

/// What the command line does, each with the words of its options, giving the JSON that `--json` prints.
void add_commands(nanobind::module_& module);

/// Sweeps, new ones and resumed.
void add_sweeps(nanobind::module_& module);

/// `run_operation` and what it runs on.
void add_operations(nanobind::module_& module);

/// Matrices in packed formats: `pack` and `unpack`.
void add_packed(nanobind::module_& module);

/// Language models.
void add_models(nanobind::module_& module);

/// Kernels of the caller's own.
void add_kernels(nanobind::module_& module);

}  // namespace pascaline::python
