#pragma once

#include <nanobind/nanobind.h>

#include "core/argument_error.hpp"

namespace pascaline::python {

/// An argument of a Python call is wrong; ValueError there, too.
class ArgumentError : public pascaline::ArgumentError {
 public:
  using pascaline::ArgumentError::ArgumentError;
};

/// Makes `Error` and its kinds exceptions of the module.
void add_errors(nanobind::module_& module);

}  // namespace pascaline::python
