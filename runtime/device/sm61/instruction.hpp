#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline::sm61 {

/// What an instruction does, as far as the figures of a loop distinguish it.
enum class Kind : std::uint8_t {
  unknown,  ///< not in the table of encodings
  ffma,     ///< float32 fused multiply-add
  float32,  ///< other float32 arithmetic, comparisons included
  float64,
  float16,
  dp4a,        ///< IDP: products of bytes or half words, summed
  integer,     ///< integer and bit arithmetic, comparisons and predicates
  conversion,  ///< F2F, F2I, I2F, I2I
  special,     ///< MUFU and what prepares its operand
  move,        ///< MOV, SEL, PRMT between registers; special registers
  load,
  store,
  atomic,
  barrier,  ///< BAR
  fence,    ///< MEMBAR, DEPBAR, cache control
  shuffle,  ///< SHFL
  vote,
  control,  ///< branches, calls, and what prepares them
  nop,
};

/// Memory that a load, store or atomic accesses.
enum class Space : std::uint8_t { none, global, shared, local, constant, generic };

/// How control continues after an instruction.
enum class Flow : std::uint8_t {
  next,
  branch,      ///< to the target operand (BRA, JMP)
  indirect,    ///< to an address that only the device knows (BRX, JMX, a target in constant memory)
  call,        ///< to the target operand, and back
  exit,        ///< this thread ends, or returns from the function: EXIT, RET, KIL
  push_sync,   ///< SSY: SYNC will continue at the target
  push_break,  ///< PBK: BRK will continue at the target
  push_loop,   ///< PCNT: CONT will continue at the target
  pop_sync,    ///< SYNC
  pop_break,   ///< BRK
  pop_loop,    ///< CONT
};

/// The scheduling information of one instruction: 21 bits of the word before its group of three.
struct Control {
  static constexpr std::uint8_t kNoBarrier = 7;

  std::uint8_t stall = 0;  ///< clocks until the warp's next instruction, 0 to 15; 0: both issue in one clock
  bool yield = false;      ///< the bit as stored; what it does is not documented
  std::uint8_t write_barrier = kNoBarrier;  ///< released when the result is written; 0 to 5
  std::uint8_t read_barrier = kNoBarrier;   ///< released when the operands are read; 0 to 5
  std::uint8_t wait_mask = 0;               ///< barriers waited for, bit i for barrier i
  std::uint8_t reuse = 0;                   ///< bit i: operand slot i keeps its register for the next instruction
};

/// One operand, in the order in which NVIDIA's disassembler shows them. Signs and absolute values are not decoded.
struct Operand {
  enum class Type : std::uint8_t {
    reg,        ///< `number`, and the `registers` - 1 that follow it
    predicate,  ///< `number`, negated or not
    constant,   ///< bank `number`, at byte `value`
    immediate,  ///< `value`: an integer, or the bits of a float32 or float64
    address,    ///< register `number` (`registers`: 2 for 64-bit addresses) plus `value` bytes
    special,    ///< special register `number`
    target,     ///< byte offset `value` in the function's code
  };
  static constexpr std::uint8_t kZeroRegister = 255;
  static constexpr std::uint8_t kTruePredicate = 7;
  static constexpr std::uint8_t kNoSlot = 255;

  Type type = Type::reg;
  bool written = false;
  bool negated = false;  ///< of predicates
  std::uint8_t slot =
      kNoSlot;  ///< operand slot of a source register, 0 to 2: what reuse bits and bank conflicts concern
  std::uint8_t number = 0;
  std::uint8_t registers = 0;
  std::uint8_t float_bits = 0;  ///< of immediates: 32, 64, or 0 for integers
  std::int64_t value = 0;
};

struct Encoding;

/// One decoded instruction.
struct Instruction {
  static constexpr std::size_t kMaxOperands = 6;

  std::uint32_t offset = 0;  ///< bytes from the beginning of the function's code
  std::uint64_t word = 0;
  const Encoding* encoding = nullptr;  ///< null if unknown
  Control control;
  Kind kind = Kind::unknown;
  Space space = Space::none;
  Flow flow = Flow::next;
  std::uint8_t guard = Operand::kTruePredicate;  ///< predicate that it is executed under
  bool guard_negated = false;
  bool conditional = false;  ///< by its guard, or by the condition code that branches can test
  std::uint8_t bytes = 0;    ///< that a thread loads or stores; 0 for other instructions
  std::uint8_t count = 0;    ///< operands
  std::array<Operand, kMaxOperands> operands{};

  [[nodiscard]] std::span<const Operand> operand_list() const noexcept { return {operands.data(), count}; }
  /// Offset in the code that the target operand names, -1 if it has none.
  [[nodiscard]] std::int64_t target() const noexcept;
  /// "FFMA", "LDG"; "unknown" for what is not in the table of encodings.
  [[nodiscard]] std::string_view opcode() const noexcept;
  /// Opcode with its modifiers, as NVIDIA's disassembler writes them: "LDG.E.CI.128", "XMAD.PSL.CBCC". Of opcodes whose
  /// modifiers are not decoded, only the opcode.
  [[nodiscard]] std::string name() const;
  /// The instruction in one line: "@!P0 FADD.FTZ R0, R1.reuse, c[0x0][0x140]", or "unknown 0x…".
  [[nodiscard]] std::string text() const;
};

/// Decodes machine code of sm_61 (and of sm_50 to sm_62, whose encodings are the same but for IDP): groups of four
/// 64-bit words, of which the first has the scheduling information of the other three. An incomplete group at the end
/// is ignored. Throws Error if the code is larger than 4 MiB.
[[nodiscard]] std::vector<Instruction> decode(std::string_view code);

}  // namespace pascaline::sm61
