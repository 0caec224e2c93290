#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/sm61/kernel_code.hpp"

namespace pascaline::testing {

/// The compiled kernels in `data/`: transpose and matvec_q by NVRTC 11.8, softmax and the default of matmul by 12.9.
inline constexpr std::array<const char*, 4> kStoredKernels{"transpose", "softmax", "matvec_q", "matmul"};

/// The cubin `data/NAME.cubin`.
[[nodiscard]] std::string stored_cubin(const std::string& name);
/// The lines of `data/NAME.txt`.
[[nodiscard]] std::vector<std::string> stored_lines(const std::string& name);
/// One instruction as in these lines: offset, stall count, write and read barrier, wait mask, text.
[[nodiscard]] std::string golden_line(const sm61::Instruction& instruction);

/// An instruction for `assemble`: its word, and its 21 scheduling bits.
struct Word {
  std::uint64_t word = 0;
  std::uint32_t control = 0x7e1;  ///< stall 1, no barriers, nothing kept
};

/// Machine code of these instructions, filled up with NOP to whole groups.
[[nodiscard]] std::string assemble(const std::vector<Word>& words);
/// The offset of an instruction in assembled code.
[[nodiscard]] std::uint64_t offset_of(std::size_t index);

inline constexpr std::uint64_t kExit = 0xe30000000007000f;
inline constexpr std::uint64_t kNop = 0x50b0000000070f00;
inline constexpr std::uint64_t kSync = 0xf0f800000007000f;
inline constexpr std::uint64_t kBreak = 0xe34000000007000f;

// The upper 16 bits of what `jump` makes.
inline constexpr std::uint16_t kBranch = 0xe240;
inline constexpr std::uint16_t kCall = 0xe260;
inline constexpr std::uint16_t kPushSync = 0xe290;   ///< SSY
inline constexpr std::uint16_t kPushBreak = 0xe2a0;  ///< PBK

/// A branch, SSY, PBK, PCNT or CAL, by its upper 16 bits, from one instruction to another.
[[nodiscard]] std::uint64_t jump(std::uint16_t opcode, std::size_t from, std::size_t to);
/// The instruction under predicate P0.
[[nodiscard]] constexpr std::uint64_t if_p0(std::uint64_t word) { return word & ~(std::uint64_t{7} << 16U); }
/// FFMA of four registers.
[[nodiscard]] constexpr std::uint64_t ffma(unsigned d, unsigned a, unsigned b, unsigned c) {
  return 0x5980000000070000 | d | a << 8U | std::uint64_t{b} << 20U | std::uint64_t{c} << 39U;
}

}  // namespace pascaline::testing
