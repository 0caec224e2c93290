#pragma once

#include <string>
#include <string_view>

namespace pascaline {

/// CUDA source as the C++ compiler can take it: `extern __shared__ T name[];` becomes a pointer to the block's
/// dynamic shared memory, and `static` before `__shared__` goes. Lines keep their numbers. Comments, literals and
/// everything else stay as they are.
[[nodiscard]] std::string rewrite_for_emulator(std::string_view text);

}  // namespace pascaline
