#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device/sm61/instruction.hpp"

namespace pascaline::sm61 {

/// Where the second and third source operands of an instruction come from.
enum class Form : std::uint8_t {
  registers,          ///< second at bits 20 to 27, third at 39 to 46
  constant,           ///< second from constant memory, third at 39 to 46
  immediate,          ///< second an integer of 20 bits
  immediate_float32,  ///< second the upper 20 bits of a float32
  immediate_float64,  ///< second the upper 20 bits of a float64
  register_constant,  ///< second at bits 39 to 46, third from constant memory
};

/// One encoding: the instructions whose upper 16 bits, masked, have that value.
///
/// `operands` has a letter for each operand, see decode.cpp. `modifiers` are separated by spaces: `=NAME`, or
/// `BIT:WIDTH[+BIT:WIDTH…]/NAME,NAME,…`, where the named bits, first ones lowest, select the name. `?` marks values
/// that have no meaning, an empty name no modifier.
struct Encoding {
  std::uint16_t mask;
  std::uint16_t value;
  Form form;
  std::string_view opcode;
  Kind kind;
  std::string_view operands;
  std::string_view modifiers;
  Space space = Space::none;
  Flow flow = Flow::next;
};

[[nodiscard]] std::span<const Encoding> encodings() noexcept;
/// The encoding of an instruction; null if none is known.
[[nodiscard]] const Encoding* find_encoding(std::uint64_t word) noexcept;
/// Modifiers of an instruction, each with a dot before it.
[[nodiscard]] std::string modifiers_of(const Encoding& encoding, std::uint64_t word);
/// "SR_TID.X".
[[nodiscard]] std::string special_register_name(std::uint8_t number);

}  // namespace pascaline::sm61
