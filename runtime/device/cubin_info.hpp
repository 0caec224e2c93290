#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/binary.hpp"

namespace pascaline {

/// Names of the kernels in a cubin, in the order of its sections. Throws Error if it is not a CUDA ELF file.
[[nodiscard]] std::vector<std::string> cubin_kernels(std::string_view cubin);

/// Compute capability that a cubin is for, 61 for sm_61. Throws Error if it is not a CUDA ELF file.
[[nodiscard]] int cubin_architecture(std::string_view cubin);

/// Resources of `function` read from the ELF sections and machine code (sm_5x/6x and sm_7x…9x encodings).
/// Throws Error if the file is damaged or has no such kernel.
[[nodiscard]] Resources cubin_resources(std::string_view cubin, std::string_view function);

/// Threads that a block of `function` may have by its __launch_bounds__; 0 without them. Throws Error if the file is
/// damaged.
[[nodiscard]] std::int64_t cubin_launch_bounds(std::string_view cubin, std::string_view function);

/// Hash of what the device sees of a cubin: code, constants, relocations and kernel attributes, not the compiler's
/// notes on how it was called. Cubins of equal hash behave alike. Throws Error if the file is damaged.
[[nodiscard]] std::string cubin_code_hash(std::string_view cubin);

/// Hash of what a launch of one kernel depends on, whichever compiler made the cubin: machine code, constants,
/// registers, memory and attributes, but neither the compiler's version nor the numbers of symbols. Nothing where that
/// cannot be told from the kernel alone: code that is not read here (sm_50 to sm_62 is), that is relocated, or that
/// reads addresses or banks of constants which are filled in when it is loaded. Throws Error if the file is damaged.
[[nodiscard]] std::optional<std::string> cubin_launch_hash(std::string_view cubin, std::string_view function);

}  // namespace pascaline
