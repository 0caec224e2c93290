#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/error.hpp"
#include "runtime/device/sm61/encodings.hpp"
#include "runtime/device/sm61/instruction.hpp"

// Letters of an encoding's operands:
//   d D    destination register; two (64 bits)
//   a A    source register in slot 0; two
//   b B    second source, as the form says; two registers
//   c C    third source, likewise
//   Z      third source in the register of the destination
//   K V    second source in slot 2, where additions have it; two registers
//   i E    second or first source that is read past the operand slots
//   e f    destination and source of a conversion: two registers where their type has 64 bits
//   h v    second source: an integer of 16 bits; that or a register
//   X      second source: an integer of 6 bits
//   I F    integer or float32 of 32 bits
//   u w W  shift of LEA and ISCADD, at the places they have it
//   l L    truth table of LOP3
//   p q r j J   destination predicates, at the places they have; r is left out where it is PT
//   P Q R H     source predicates
//   x      special register
//   n N    registers loaded to; stored from
//   m M k  address with 24 or 32 bits of offset; in a constant bank
//   g G    address of atomics; of those in shared memory
//   s z    data of atomics; second data of compare-and-swap
//   o O    lane and mask of a shuffle
//   y Y    number and threads of a barrier
//   t T    target, relative or absolute
//   !      no guard: the bits of the predicate mean something else
namespace pascaline::sm61 {
namespace {

constexpr std::uint64_t kAlways = 0xf;  ///< condition code of a branch that tests none
constexpr std::size_t kMaxCodeBytes = std::size_t{4} << 20U;
constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kGroupBytes = 4 * kWordBytes;

constexpr std::uint64_t bits(std::uint64_t word, unsigned at, unsigned width) {
  return (word >> at) & ((std::uint64_t{1} << width) - 1U);
}

constexpr std::int64_t signed_bits(std::uint64_t word, unsigned at, unsigned width) {
  return static_cast<std::int64_t>(word << (64U - at - width)) >> (64U - width);
}

std::uint8_t byte_at(std::uint64_t word, unsigned at) { return static_cast<std::uint8_t>(word >> at); }

Control control_of(std::uint64_t scheduling, unsigned place) {
  const std::uint64_t own = bits(scheduling, 21 * place, 21);
  Control control;
  control.stall = static_cast<std::uint8_t>(bits(own, 0, 4));
  control.yield = bits(own, 4, 1) != 0;
  control.write_barrier = static_cast<std::uint8_t>(bits(own, 5, 3));
  control.read_barrier = static_cast<std::uint8_t>(bits(own, 8, 3));
  control.wait_mask = static_cast<std::uint8_t>(bits(own, 11, 6));
  control.reuse = static_cast<std::uint8_t>(bits(own, 17, 4));
  return control;
}

// Bytes that a thread loads or stores, or that an atomic works on.
std::uint8_t width_of(const Encoding& encoding, std::uint64_t word) {
  constexpr std::uint8_t kWidths[] = {1, 1, 2, 2, 4, 8, 16, 16};
  switch (encoding.value) {
    case 0x8000:
    case 0xa000:
      return kWidths[bits(word, 53, 3)];
    case 0xed00:
      return bits(word, 49, 3) == 2 || bits(word, 49, 3) == 5 || bits(word, 49, 3) == 6 ? 8 : 4;
    case 0xebf8:
      return bits(word, 20, 3) == 2 || bits(word, 20, 3) == 5 || bits(word, 20, 3) == 6 ? 8 : 4;
    case 0xeef0:
      return bits(word, 49, 1) != 0 ? 8 : 4;
    case 0xec00:
      return bits(word, 29, 1) != 0 ? 8 : 4;
    case 0xee00:
    case 0xee40:
      return bits(word, 52, 1) != 0 ? 8 : 4;
    default:
      return encoding.space == Space::none ? std::uint8_t{0} : kWidths[bits(word, 48, 3)];
  }
}

// Whether the address is one of 64 bits, in two registers.
bool wide_address(const Encoding& encoding, std::uint64_t word) {
  switch (encoding.space) {
    case Space::generic:
      return bits(word, 52, 1) != 0;
    case Space::global:
      return bits(word, encoding.kind == Kind::atomic ? 48 : 45, 1) != 0;
    default:
      return false;
  }
}

/// Adds the operands of one instruction, letter by letter.
class OperandReader {
 public:
  OperandReader(Instruction& instruction, const Encoding& encoding)
      : to_(instruction), encoding_(encoding), word_(instruction.word) {}

  void read(char letter);

 private:
  Operand& add(Operand::Type type) {
    Operand& operand = to_.operands[to_.count++];
    operand.type = type;
    return operand;
  }
  void reg(unsigned at, unsigned registers, std::uint8_t slot, bool written = false) {
    Operand& operand = add(Operand::Type::reg);
    operand.number = byte_at(word_, at);
    operand.registers = static_cast<std::uint8_t>(registers);
    operand.slot = slot;
    operand.written = written;
  }
  void destination(unsigned registers) { reg(0, registers, Operand::kNoSlot, true); }
  void predicate(unsigned at, unsigned negation, bool written) {
    Operand& operand = add(Operand::Type::predicate);
    operand.number = static_cast<std::uint8_t>(bits(word_, at, 3));
    operand.negated = negation != 0 && bits(word_, negation, 1) != 0;
    operand.written = written;
  }
  void number(std::int64_t value, unsigned float_bits = 0) {
    Operand& operand = add(Operand::Type::immediate);
    operand.value = value;
    operand.float_bits = static_cast<std::uint8_t>(float_bits);
  }
  void unsigned_number(unsigned at, unsigned width) { number(static_cast<std::int64_t>(bits(word_, at, width))); }
  void constant() {
    Operand& operand = add(Operand::Type::constant);
    operand.number = static_cast<std::uint8_t>(bits(word_, 34, 5));
    operand.value = static_cast<std::int64_t>(bits(word_, 20, 14) * 4);
  }
  void second(unsigned registers, std::uint8_t slot = 1);
  void third(unsigned registers) { encoding_.form == Form::register_constant ? constant() : reg(39, registers, 2); }
  void address(std::int64_t offset) {
    Operand& operand = add(Operand::Type::address);
    operand.number = byte_at(word_, 8);
    operand.registers = wide_address(encoding_, word_) ? 2 : 1;
    operand.value = offset;
  }
  void target(std::int64_t offset) {
    if (bits(word_, 5, 1) != 0) {
      constant();
      Operand& operand = to_.operands[to_.count - 1U];
      operand.number = static_cast<std::uint8_t>(bits(word_, 36, 5));
      operand.value = static_cast<std::int64_t>(bits(word_, 20, 16));
      to_.flow = to_.flow == Flow::branch ? Flow::indirect : to_.flow;
    } else {
      add(Operand::Type::target).value = offset;
    }
  }
  [[nodiscard]] unsigned data_registers() const { return to_.bytes > 4 ? to_.bytes / 4U : 1U; }
  [[nodiscard]] unsigned conversion_registers(unsigned at) const { return bits(word_, at, 2) == 3 ? 2 : 1; }

  void read_scalar(char letter);
  void read_predicate(char letter);
  void read_memory(char letter);

  Instruction& to_;
  const Encoding& encoding_;
  std::uint64_t word_;
};

void OperandReader::second(unsigned registers, std::uint8_t slot) {
  const std::uint64_t upper = bits(word_, 20, 19) | bits(word_, 56, 1) << 19U;
  switch (encoding_.form) {
    case Form::registers:
      return reg(20, registers, slot);
    case Form::constant:
      return constant();
    case Form::register_constant:
      return reg(39, registers, slot);
    case Form::immediate:
      return number(signed_bits(upper, 0, 20));
    case Form::immediate_float32:
      return number(static_cast<std::int64_t>(upper << 12U), 32);
    case Form::immediate_float64:
      return number(static_cast<std::int64_t>(upper << 44U), 64);
  }
}

void OperandReader::read_scalar(char letter) {
  switch (letter) {
    case 'd':
      return destination(1);
    case 'D':
      return destination(2);
    case 'e':
      return destination(conversion_registers(8));
    case 'a':
      return reg(8, 1, 0);
    case 'A':
      return reg(8, 2, 0);
    case 'b':
      return second(1);
    case 'B':
      return second(2);
    case 'K':
      return second(1, 2);
    case 'V':
      return second(2, 2);
    case 'Z':
      return reg(0, 1, 2);
    case 'i':
      return second(1, Operand::kNoSlot);
    case 'E':
      return reg(8, 1, Operand::kNoSlot);
    case 'f':
      return second(conversion_registers(10), Operand::kNoSlot);
    case 'c':
      return third(1);
    case 'C':
      return third(2);
    case 'h':
      return unsigned_number(20, 16);
    case 'X':
      return unsigned_number(20, 6);
    case 'v':
      return bits(word_, 50, 1) != 0 ? reg(20, 1, 1) : unsigned_number(20, 16);
    case 'I':
      return number(signed_bits(word_, 20, 32));
    case 'F':
      return number(static_cast<std::int64_t>(bits(word_, 20, 32)), 32);
    case 'u':
      return unsigned_number(encoding_.value == 0x1400 ? 53 : 39, 5);
    case 'w':
      return unsigned_number(28, 5);
    case 'W':
      return unsigned_number(51, 5);
    case 'l':
      return unsigned_number(28, 8);
    case 'L':
      return unsigned_number(48, 8);
    default:
      add(Operand::Type::special).number = byte_at(word_, 20);
  }
}

void OperandReader::read_predicate(char letter) {
  switch (letter) {
    case 'p':
      return predicate(3, 0, true);
    case 'q':
      return predicate(0, 0, true);
    case 'r':
      if (bits(word_, 48, 3) == Operand::kTruePredicate) {
        return;
      }
      return predicate(48, 0, true);
    case 'j':
      return predicate(48, 0, true);
    case 'J':
      return predicate(45, 0, true);
    case 'P':
      return predicate(39, 42, false);
    case 'Q':
      return predicate(12, 15, false);
    case 'R':
      return predicate(29, 32, false);
    default:
      return predicate(58, 0, false);
  }
}

void OperandReader::read_memory(char letter) {
  switch (letter) {
    case 'n':
      return reg(0, data_registers(), Operand::kNoSlot, true);
    case 'N':
      return reg(0, data_registers(), Operand::kNoSlot);
    case 'm':
      return address(signed_bits(word_, 20, 24));
    case 'M':
      return address(signed_bits(word_, 20, 32));
    case 'g':
      return address(signed_bits(word_, 28, 20));
    case 'G':
      return address(signed_bits(word_, 30, 22) * 4);
    case 'k': {
      constant();
      Operand& operand = to_.operands[to_.count - 1U];
      operand.number = static_cast<std::uint8_t>(bits(word_, 36, 5));
      operand.value = signed_bits(word_, 20, 16);
      return reg(8, 1, Operand::kNoSlot);
    }
    case 's':
      return reg(20, data_registers(), Operand::kNoSlot);
    default: {
      reg(20, data_registers(), Operand::kNoSlot);
      Operand& operand = to_.operands[to_.count - 1U];
      if (operand.number != Operand::kZeroRegister) {
        operand.number = static_cast<std::uint8_t>(operand.number + data_registers());
      }
    }
  }
}

void OperandReader::read(char letter) {
  if (std::string_view("nNmMgGksz").find(letter) != std::string_view::npos) {
    return read_memory(letter);
  }
  if (std::string_view("pqrjJPQRH").find(letter) != std::string_view::npos) {
    return read_predicate(letter);
  }
  switch (letter) {
    case '!':
      return;
    case 'o':
      return bits(word_, 28, 1) != 0 ? unsigned_number(20, 5) : reg(20, 1, Operand::kNoSlot);
    case 'O':
      return bits(word_, 29, 1) != 0 ? unsigned_number(34, 13) : reg(39, 1, Operand::kNoSlot);
    case 'y':
      return bits(word_, 44, 1) != 0 ? unsigned_number(8, 8) : reg(8, 1, Operand::kNoSlot);
    case 'Y':
      if (bits(word_, 43, 1) == 0) {
        return reg(20, 1, Operand::kNoSlot);
      }
      return bits(word_, 20, 12) != 0 ? unsigned_number(20, 12) : void();
    case 't':
      return target(to_.offset + static_cast<std::int64_t>(kWordBytes) + signed_bits(word_, 20, 24));
    case 'T':
      return target(static_cast<std::int64_t>(bits(word_, 20, 32)));
    default:
      return read_scalar(letter);
  }
}

bool tests_condition_code(Flow flow) {
  return flow == Flow::branch || flow == Flow::indirect || flow == Flow::exit || flow == Flow::pop_sync ||
         flow == Flow::pop_break || flow == Flow::pop_loop;
}

Instruction decode_one(std::uint64_t word, std::size_t offset, const Control& control) {
  Instruction decoded;
  decoded.offset = static_cast<std::uint32_t>(offset);
  decoded.word = word;
  decoded.control = control;
  decoded.encoding = find_encoding(word);
  if (decoded.encoding == nullptr) {
    return decoded;
  }
  const Encoding& encoding = *decoded.encoding;
  decoded.kind = encoding.kind;
  decoded.space = encoding.space;
  decoded.flow = encoding.flow;
  decoded.bytes = width_of(encoding, word);
  if (encoding.operands.find('!') == std::string_view::npos) {
    decoded.guard = static_cast<std::uint8_t>(bits(word, 16, 3));
    decoded.guard_negated = bits(word, 19, 1) != 0;
  }
  decoded.conditional = decoded.guard != Operand::kTruePredicate || decoded.guard_negated ||
                        (tests_condition_code(decoded.flow) && bits(word, 0, 5) != kAlways);
  OperandReader reader(decoded, encoding);
  for (const char letter : encoding.operands) {
    reader.read(letter);
  }
  return decoded;
}

std::string register_name(std::uint8_t number) {
  return number == Operand::kZeroRegister ? "RZ" : fmt::format("R{}", number);
}

std::string predicate_name(std::uint8_t number, bool negated) {
  return (negated ? "!" : "") + (number == Operand::kTruePredicate ? "PT" : fmt::format("P{}", number));
}

std::string signed_hex(std::int64_t value) {
  const auto magnitude =
      value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  return fmt::format("{}0x{:x}", value < 0 ? "-" : "", magnitude);
}

std::string immediate_text(const Operand& operand) {
  switch (operand.float_bits) {
    case 32:
      return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(operand.value)));
    case 64:
      return fmt::format("{}", std::bit_cast<double>(operand.value));
    default:
      return signed_hex(operand.value);
  }
}

// The condition that a branch tests beside its predicate; empty where it tests none.
std::string condition_text(const Instruction& instruction) {
  constexpr std::string_view kNames[] = {"F",      "LT",     "EQ",     "LE",      "GT",      "NE",      "GE",  "NUM",
                                         "NAN",    "LTU",    "EQU",    "LEU",     "GTU",     "NEU",     "GEU", "T",
                                         "OFF",    "LO",     "SFF",    "LS",      "HI",      "SFT",     "HS",  "OFT",
                                         "CSM_TA", "CSM_TR", "CSM_MX", "FCSM_TA", "FCSM_TR", "FCSM_MX", "RLE", "RGT"};
  const std::uint64_t condition = bits(instruction.word, 0, 5);
  return tests_condition_code(instruction.flow) && condition != kAlways ? fmt::format("CC.{}", kNames[condition])
                                                                        : std::string();
}

std::string address_text(const Operand& operand) {
  const std::string offset = signed_hex(operand.value);
  if (operand.number == Operand::kZeroRegister && operand.value != 0) {
    return "[" + offset + "]";
  }
  return fmt::format("[{}{}]", register_name(operand.number), operand.value == 0 ? std::string() : "+" + offset);
}

std::string operand_text(const Operand& operand, const Control& control) {
  const bool kept = operand.slot < 4 && (control.reuse >> operand.slot & 1U) != 0;
  switch (operand.type) {
    case Operand::Type::reg:
      return fmt::format("{}{}", register_name(operand.number), kept ? ".reuse" : "");
    case Operand::Type::predicate:
      return predicate_name(operand.number, operand.negated);
    case Operand::Type::constant:
      return fmt::format("c[0x{:x}][{}]", operand.number, signed_hex(operand.value));
    case Operand::Type::immediate:
      return immediate_text(operand);
    case Operand::Type::address:
      return address_text(operand);
    case Operand::Type::special:
      return special_register_name(operand.number);
    case Operand::Type::target:
      return signed_hex(operand.value);
  }
  return {};
}

}  // namespace

std::vector<Instruction> decode(std::string_view code) {
  if (code.size() > kMaxCodeBytes) {
    throw Error(
        fmt::format("the function has {} bytes of machine code; at most {} are read", code.size(), kMaxCodeBytes));
  }
  std::vector<Instruction> instructions;
  instructions.reserve(code.size() / kGroupBytes * 3);
  for (std::size_t group = 0; group + kGroupBytes <= code.size(); group += kGroupBytes) {
    std::uint64_t words[4];
    std::memcpy(words, code.data() + group, sizeof words);
    for (unsigned i = 0; i < 3; ++i) {
      instructions.push_back(decode_one(words[i + 1], group + kWordBytes * (i + 1), control_of(words[0], i)));
    }
  }
  return instructions;
}

std::int64_t Instruction::target() const noexcept {
  for (const Operand& operand : operand_list()) {
    if (operand.type == Operand::Type::target) {
      return operand.value;
    }
  }
  return -1;
}

std::string_view Instruction::opcode() const noexcept { return encoding == nullptr ? "unknown" : encoding->opcode; }

std::string Instruction::name() const {
  std::string text(opcode());
  return encoding == nullptr ? text : text + modifiers_of(*encoding, word);
}

std::string Instruction::text() const {
  if (encoding == nullptr) {
    return fmt::format("unknown 0x{:016x}", word);
  }
  std::string line;
  if (guard != Operand::kTruePredicate || guard_negated) {
    line = "@" + predicate_name(guard, guard_negated) + " ";
  }
  line += name();
  std::string_view separator = " ";
  const auto append = [&](const std::string& part) {
    line.append(separator).append(part);
    separator = ", ";
  };
  if (const std::string condition = condition_text(*this); !condition.empty()) {
    append(condition);
  }
  for (const Operand& operand : operand_list()) {
    append(operand_text(operand, control));
  }
  return line;
}

}  // namespace pascaline::sm61
