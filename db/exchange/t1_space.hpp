#pragma once

#include <string>

#include "db/exchange/t1.hpp"

namespace pascaline {

/// The search space (docs/search_spaces.md) of a T1 input for CUDA, under this kernel name: sizes are constants, the
/// reference is what the default configuration gives, and that is the first one that meets all conditions and has a
/// block of at most 1024 threads. Throws SpaceError with the place in the T1 file of what cannot be taken over.
[[nodiscard]] std::string t1_space_json(const T1Input& input, const std::string& kernel);

/// The kernel's source with `extern "C"` in front of the function, should it not have it. Throws SpaceError if there is
/// no
/// `__global__` function of that name.
[[nodiscard]] std::string t1_kernel_source(const std::string& source, const T1Input& input);

}  // namespace pascaline
