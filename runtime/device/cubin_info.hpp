#pragma once

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

/// Hash of what the device sees of a cubin: code, constants, relocations and kernel attributes, not the compiler's
/// notes on how it was called. Cubins of equal hash behave alike. Throws Error if the file is damaged.
[[nodiscard]] std::string cubin_code_hash(std::string_view cubin);

}  // namespace pascaline
