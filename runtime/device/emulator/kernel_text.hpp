#pragma once

#include <string>
#include <string_view>

#include "runtime/device/compile.hpp"

namespace pascaline {

/// CUDA source as the C++ compiler can take it: `extern __shared__ T name[];` becomes a pointer to the block's
/// dynamic shared memory, `static` before `__shared__` goes, and the `__launch_bounds__` of `function` are checked
/// where they stand. Lines keep their numbers. Comments, literals and everything else stay as they are.
[[nodiscard]] std::string rewrite_for_emulator(std::string_view text, std::string_view function = {});

/// How a source declares a kernel.
struct DeclaredKernel {
  std::string name;    ///< with its namespaces, "a::b::kernel"; without them if no declaration is found
  bool global = true;  ///< false where it is declared as an ordinary function
};
[[nodiscard]] DeclaredKernel declared_kernel(const KernelSource& source, const std::string& function);

}  // namespace pascaline
