#include "model/text/byte_level.hpp"

#include <array>
#include <cstdint>

#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kCharacters = 0x144;
constexpr std::int16_t kNoByte = -1;

struct Alphabet {
  std::array<char32_t, 256> character_of{};
  std::array<std::int16_t, kCharacters> byte_of{};
};

constexpr bool stands_for_itself(std::size_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Alphabet make_alphabet() {
  Alphabet out;
  out.byte_of.fill(kNoByte);
  char32_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char32_t character = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    out.character_of[byte] = character;
    out.byte_of[character] = static_cast<std::int16_t>(byte);
  }
  return out;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string out;
  while (!spelling.empty()) {
    const Utf8Step step = next_utf8(spelling);
    if (step.kind != Utf8Step::Kind::character || step.code >= kCharacters || kAlphabet.byte_of[step.code] == kNoByte) {
      return std::nullopt;
    }
    out += static_cast<char>(static_cast<unsigned char>(kAlphabet.byte_of[step.code]));
    spelling.remove_prefix(step.bytes);
  }
  return out;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    append_utf8(out, kAlphabet.character_of[static_cast<unsigned char>(c)]);
  }
  return out;
}

}  // namespace pascaline
