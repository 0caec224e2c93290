#include "model/text/utf8.hpp"

#include <algorithm>

namespace pascaline {
namespace {

// What may follow a leading byte: how many bytes, and the range of the first of them.
struct Lead {
  std::size_t following;  // 0: not a leading byte of several
  unsigned char low;
  unsigned char high;
};

Lead lead_of(unsigned char byte) noexcept {
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {1, 0x80, 0xBF};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {2, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {3, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

}  // namespace

Utf8Step next_utf8(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) {
    return {Utf8Step::Kind::character, 1, byte(0)};
  }
  const Lead lead = lead_of(byte(0));
  if (lead.following == 0) {
    return {Utf8Step::Kind::invalid, 1, 0};
  }
  char32_t code = byte(0) & (0x3FU >> lead.following);
  for (std::size_t i = 1; i <= lead.following; ++i) {
    if (i == text.size()) {
      return {Utf8Step::Kind::incomplete, i, 0};
    }
    if (byte(i) < (i == 1 ? lead.low : 0x80) || byte(i) > (i == 1 ? lead.high : 0xBF)) {
      return {Utf8Step::Kind::invalid, i, 0};
    }
    code = code << 6U | (byte(i) & 0x3FU);
  }
  return {Utf8Step::Kind::character, lead.following + 1, code};
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
    return;
  }
  if (code < 0x800) {
    put(0xC0U | code >> 6U);
  } else {
    if (code < 0x10000) {
      put(0xE0U | code >> 12U);
    } else {
      put(0xF0U | code >> 18U);
      put(0x80U | (code >> 12U & 0x3FU));
    }
    put(0x80U | (code >> 6U & 0x3FU));
  }
  put(0x80U | (code & 0x3FU));
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    out += step.kind == Utf8Step::Kind::character ? text.substr(0, step.bytes) : kReplacement;
    text.remove_prefix(step.bytes);
  }
  return out;
}

}  // namespace pascaline
