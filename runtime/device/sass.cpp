#include "runtime/device/sass.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace pascaline {
namespace {

enum class Kind { other, ffma, local_load, local_store, padding, branch };

std::uint64_t word_at(std::string_view code, std::size_t offset) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, code.data() + offset, sizeof word);
  return word;
}

struct Encoding {
  std::uint16_t mask;
  std::uint16_t value;  ///< of the top 16 bits
  Kind kind;
};

// The forms of FFMA: register, constant as second and as third factor, short and long immediate. What the masks leave
// out are flags (rounding, saturation, signs) in the same half word.
constexpr std::array<Encoding, 9> kMaxwell{{
    {0xff80, 0x5980, Kind::ffma},
    {0xff80, 0x4980, Kind::ffma},
    {0xff80, 0x5180, Kind::ffma},
    {0xfe80, 0x3280, Kind::ffma},
    {0xfc00, 0x0c00, Kind::ffma},
    {0xfff8, 0xef40, Kind::local_load},
    {0xfff8, 0xef50, Kind::local_store},
    {0xfff8, 0x50b0, Kind::padding},
    {0xfff0, 0xe240, Kind::branch},
}};

Kind maxwell_kind(std::uint64_t word) noexcept {
  const auto top = static_cast<std::uint16_t>(word >> 48U);
  for (const Encoding& encoding : kMaxwell) {
    if ((top & encoding.mask) == encoding.value) {
      return encoding.kind;
    }
  }
  return Kind::other;
}

Kind volta_kind(std::uint64_t word) noexcept {
  // Bits 9 to 11 say where the operands come from.
  switch (word & 0x1ffU) {
    case 0x023:
      return Kind::ffma;
    case 0x183:
      return Kind::local_load;
    case 0x187:
      return Kind::local_store;
    case 0x118:
      return Kind::padding;
    case 0x147:
      return Kind::branch;
    default:
      return Kind::other;
  }
}

}  // namespace

InstructionCounts count_instructions(std::string_view code, int sm) noexcept {
  InstructionCounts counts;
  if (sm < 50) {
    return counts;
  }
  const bool volta = sm >= 70;
  const std::size_t step = volta ? 16 : 8;
  Kind last = Kind::other;
  for (std::size_t offset = 0; offset + step <= code.size(); offset += step) {
    if (!volta && offset % 32 == 0) {
      continue;
    }
    const std::uint64_t word = word_at(code, offset);
    const Kind kind = volta ? volta_kind(word) : maxwell_kind(word);
    if (kind == Kind::padding) {
      continue;
    }
    ++counts.instructions;
    counts.ffma += kind == Kind::ffma ? 1 : 0;
    counts.local_loads += kind == Kind::local_load ? 1 : 0;
    counts.local_stores += kind == Kind::local_store ? 1 : 0;
    last = kind;
  }
  // The compiler closes every kernel with a branch to itself that is never reached.
  counts.instructions -= last == Kind::branch ? 1 : 0;
  return counts;
}

}  // namespace pascaline
