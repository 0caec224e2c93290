#pragma once

#include <string_view>

namespace pascaline {

/// Machine instructions of one kernel, by kind.
struct InstructionCounts {
  int instructions = 0;  ///< without scheduling words, padding and the closing endless loop
  int ffma = 0;
  int local_loads = 0;
  int local_stores = 0;
};

/// Counts the instructions in a `.text` section for that SM version (61 of sm_61): 64-bit instructions with a
/// scheduling word before every three for sm_5x and sm_6x (Maxwell's encoding, as NervanaSystems' maxas and Mesa's
/// nouveau document it), 128-bit ones from sm_70 on. All zero for older ones.
[[nodiscard]] InstructionCounts count_instructions(std::string_view code, int sm) noexcept;

}  // namespace pascaline
