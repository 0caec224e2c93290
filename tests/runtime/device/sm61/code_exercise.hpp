#pragma once

#include <string_view>

namespace pascaline::testing {

/// Reads all kernels of the bytes and checks what always holds of them: blocks cover the code once, successors and
/// loops exist, costs add up. False if the bytes were refused with an Error of one line; anything else that is wrong
/// throws std::logic_error.
bool exercise_cubin(std::string_view bytes);

/// Likewise for machine code alone.
void exercise_code(std::string_view code);

}  // namespace pascaline::testing
