#pragma once

#include <string>
#include <vector>

#include "runtime/device/compile.hpp"

namespace pascaline {

/// The constant of a tunable: `kBlockM` of `BLOCK_M`.
[[nodiscard]] std::string constant_name(const std::string& macro);

/// `constexpr` lines for the macros (`NAME=value`) with a whole number whose constants a source mentions without
/// declaring them, and `using` lines for element types (`T=float32`) that it does not mention, so that a kernel need
/// not repeat what its search space says.
[[nodiscard]] std::string constant_lines(const std::vector<std::string>& macros, const KernelSource& source);

}  // namespace pascaline
