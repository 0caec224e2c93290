#pragma once

#include <string>
#include <string_view>

#include "runtime/device/compile.hpp"

namespace pascaline {

/// CUDA source as the C++ compiler can take it: `extern __shared__ T name[];` becomes a pointer to the block's
/// dynamic shared memory, `static` before `__shared__` goes, and the `__launch_bounds__` of `function`, without its
/// namespaces, are checked where they stand, or in a template's body. Explicit instantiations of it go, as others than
/// the launched one need not fit. Lines keep their numbers. Comments, literals and everything else stay as they are.
[[nodiscard]] std::string rewrite_for_emulator(std::string_view text, std::string_view function = {});

/// How a source declares a kernel.
struct DeclaredKernel {
  /// With its namespaces, "a::b::kernel<4>"; as it was given if no declaration is found.
  std::string name;
  std::string scope{};  ///< the namespaces, "a::b"
  bool global = true;   ///< false where it is declared as an ordinary function
  bool found = false;
  bool c_linkage = false;  ///< `extern "C"` wherever it is declared
  bool is_template = false;
  std::string_view text{};  ///< of the source's file that declares it
};
/// The declaration of a function that is given by its name, or by an expression such as "a::kernel<TILE>".
[[nodiscard]] DeclaredKernel declared_kernel(const KernelSource& source, const std::string& function);

}  // namespace pascaline
