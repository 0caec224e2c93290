#pragma once

#include <string_view>

namespace pascaline {

/// Bytes of static `__shared__` arrays in a kernel's shared object (its thread-local variables), 0 if it is not
/// an ELF object of 64 bits.
[[nodiscard]] int static_shared_bytes(std::string_view object);

}  // namespace pascaline
