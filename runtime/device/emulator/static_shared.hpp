#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

/// A static `__shared__` variable of a kernel's shared object, one of its thread-local variables.
struct SharedVariable {
  std::ptrdiff_t offset = 0;  // in bytes, from pascaline_host::current of the same thread
  std::size_t bytes = 0;
};

/// The static `__shared__` variables of a kernel's shared object; none if it is not an ELF object of 64 bits.
[[nodiscard]] std::vector<SharedVariable> static_shared_variables(std::string_view object);

/// A global variable of a kernel's shared object.
struct GlobalVariable {
  std::string name;           // as the linker knows it
  std::ptrdiff_t offset = 0;  // in bytes, from where the object is loaded
  std::size_t bytes = 0;
};

/// The global variables of a kernel's shared object; none if it is not an ELF object of 64 bits.
[[nodiscard]] std::vector<GlobalVariable> global_variables(std::string_view object);

/// Bytes of all static `__shared__` variables.
[[nodiscard]] int static_shared_bytes(std::string_view object);

}  // namespace pascaline
