#include "core/util/shown_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <nlohmann/json.hpp>

namespace pascaline {
namespace {

// Separators of lines and marks of direction would make what follows look like something else.
void replace_misleading(std::string& text) {
  constexpr std::array<std::string_view, 14> kMisleading = {"\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
                                                            "\u202d", "\u202e", "\u2066", "\u2067", "\u2068",
                                                            "\u2069", "\u200e", "\u200f", "\u061c"};
  for (std::size_t at = text.find_first_of("\xe2\xd8"); at != std::string::npos;
       at = text.find_first_of("\xe2\xd8", at + 1)) {
    const auto found = std::find_if(kMisleading.begin(), kMisleading.end(), [&](std::string_view character) {
      return text.compare(at, character.size(), character) == 0;
    });
    if (found != kMisleading.end()) {
      text.replace(at, found->size(), "\ufffd");
    }
  }
}

// UTF-8 may not be cut there.
bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

}  // namespace

std::string bounded(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return std::string(text);
  }
  constexpr std::size_t kLongestCharacter = 4;
  std::size_t head = most - most / 4;  // a line's end says what to do
  std::size_t tail = text.size() - most / 4;
  for (std::size_t i = 1; i < kLongestCharacter && head > 0 && is_inside_character(text, head); ++i) {
    --head;
  }
  for (std::size_t i = 1; i < kLongestCharacter && is_inside_character(text, tail); ++i) {
    ++tail;
  }
  return fmt::format("{}… ({} bytes left out) …{}", text.substr(0, head), tail - head, text.substr(tail));
}

std::string shown_text(std::string_view text) {
  std::string out(text);
  if (std::any_of(out.begin(), out.end(), [](char c) { return static_cast<signed char>(c) < 0; })) {
    // The JSON library has the UTF-8 check; quotes and control characters come back through the parser as they were.
    const std::string quoted = nlohmann::json(out).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out = nlohmann::json::parse(quoted).get<std::string>();
    replace_misleading(out);
  }
  return out;
}

std::string clean_line(std::string_view text, std::size_t most) {
  std::string line = shown_text(bounded(text, most));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, ' ');
  // U+0080 to U+009F, some of which begin a terminal's commands: two bytes, the first 0xc2.
  for (std::size_t at = line.find('\xc2'); at != std::string::npos; at = line.find('\xc2', at + 1)) {
    if (static_cast<unsigned char>(line[at + 1]) < 0xa0U) {
      line[at] = ' ';
      line.erase(at + 1, 1);
    }
  }
  return line;
}

std::string terminal_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool is_c1 =
        c == '\xc2' && static_cast<unsigned char>(next) >= 0x80U && static_cast<unsigned char>(next) < 0xa0U;
    if (is_c1 || (std::iscntrl(static_cast<unsigned char>(c)) != 0 && c != '\n' && c != '\t')) {
      out += c == '\r' && next == '\n' ? "" : "\ufffd";
      i += is_c1 ? 1 : 0;
    } else {
      out += c;
    }
  }
  return out;
}

std::string clean_lines(std::string_view given) {
  const std::string text = bounded(given, kMaxShownText);
  std::string lines;
  for (std::size_t start = 0;; ++start) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines += clean_line(std::string_view(text).substr(start, end - start));
    if (end == text.size()) {
      return lines;
    }
    lines += '\n';
    start = end;
  }
}

}  // namespace pascaline
