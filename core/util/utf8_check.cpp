#include "core/util/utf8_check.hpp"

#include <cstddef>
#include <cstdint>

namespace pascaline {
namespace {

struct Utf8Lead {
  std::size_t following = 0;  // bytes after the first
  std::uint8_t least = 0x80;  // of the second byte
  std::uint8_t most = 0xBF;
  bool is_valid = true;
};

// Unicode 15, table 3-7.
Utf8Lead utf8_lead_of(std::uint8_t byte) noexcept {
  if (byte < 0x80) {
    return {};
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {.following = 1};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {.following = 2,
            .least = static_cast<std::uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            .most = static_cast<std::uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {.following = 3,
            .least = static_cast<std::uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            .most = static_cast<std::uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {.is_valid = false};
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Lead lead = utf8_lead_of(static_cast<std::uint8_t>(text[at]));
    if (!lead.is_valid || text.size() - at <= lead.following) {
      return false;
    }
    for (std::size_t i = 1; i <= lead.following; ++i) {
      const auto byte = static_cast<std::uint8_t>(text[at + i]);
      if (byte < (i == 1 ? lead.least : 0x80) || byte > (i == 1 ? lead.most : 0xBF)) {
        return false;
      }
    }
    at += lead.following + 1;
  }
  return true;
}

}  // namespace pascaline
