#include "report/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>

namespace pascaline {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// An underscore inside a word is no emphasis, and parameter names are full of them.
bool is_inside_word(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && is_word(text[at - 1]) && is_word(text[at + 1]);
}

}  // namespace

std::string utc_time(std::int64_t unix_ms) {
  if (unix_ms == 0) {
    return "-";
  }
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

std::string toolkit_text(const ToolkitRow& toolkit) {
  std::string text = toolkit.compiler;
  text += toolkit.version.empty() ? "" : " " + toolkit.version;
  text += toolkit.driver_version.empty() ? "" : ", driver " + toolkit.driver_version;
  return text;
}

std::string default_fate(const std::string& why) { return why.empty() ? "not valid or not tried" : why; }

std::string short_number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string markdown_escape(std::string_view text) {
  const std::string line = clean_line(text);
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '@':  // would notify someone
        out += "&#64;";
        break;
      case '#':  // would link to a ticket
        out += "&#35;";
        break;
      default:
        if (std::string_view("\\`|*[]~$").find(c) != std::string_view::npos || (c == '_' && !is_inside_word(line, i))) {
          out += '\\';
        }
        out += c;
    }
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace pascaline
