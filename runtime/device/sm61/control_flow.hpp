#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/sm61/instruction.hpp"

namespace pascaline::sm61 {

/// Instructions that are executed one after the other: `begin` to before `end` in the list that was analysed.
struct Block {
  static constexpr std::int32_t kNone = -1;

  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::array<std::int32_t, 2> successors{kNone, kNone};  ///< blocks
  std::int32_t loop = kNone;                             ///< innermost loop that it belongs to
  bool reached = false;                                  ///< from the beginning, or from a function that is called
};

/// A natural loop: its header and all blocks that reach a branch back to it without passing the header.
struct Loop {
  std::uint32_t header = 0;            ///< block
  std::int32_t parent = Block::kNone;  ///< loop directly around it; it comes before this one in the list
  std::uint32_t depth = 1;             ///< 1 for a loop in no other
  bool innermost = true;               ///< no loop is nested in it
  bool several_entries = false;        ///< control also enters beside the header; the compiler makes no such loops
};

struct ControlFlow {
  std::vector<Block> blocks;  ///< in the order of the code
  std::vector<Loop> loops;    ///< outer before inner
  /// False if some target could not be found out: an indirect branch, or a SYNC, BRK or CONT whose counterpart is not
  /// on every path. Loops may then be missing.
  bool complete = true;
};

/// Finds blocks and loops. SYNC, BRK and CONT continue at the target of the innermost SSY, PBK and PCNT on the first
/// path found to them; a call continues after itself, and what it calls is analysed as code of its own. Time and memory
/// are almost linear in the number of instructions, whatever they are.
[[nodiscard]] ControlFlow find_control_flow(std::span<const Instruction> code);

}  // namespace pascaline::sm61
