#pragma once

#include <string>

#include "core/error.hpp"

namespace pascaline::testing {

/// Returns the message of the error of this kind that `action` throws.
template <typename Kind = Error>
[[nodiscard]] std::string message_of(const auto& action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace pascaline::testing
