#pragma once

#include "core/error.hpp"

namespace pascaline {

/// A value that a caller gave does not fit: the dimensions of a problem, the name of a kernel, device or architecture.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

}  // namespace pascaline
