#pragma once

#include <nanobind/nanobind.h>

#include "core/error.hpp"

namespace pascaline::python {

/// An argument of a Python call is wrong; ValueError there, too.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// Makes `Error` and its kinds exceptions of the module.
void add_errors(nanobind::module_& module);

}  // namespace pascaline::python
