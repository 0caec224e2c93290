#include "core/util/pasted_path.hpp"

#include <cctype>
#include <cstdlib>
#include <string>
#include <system_error>

namespace pascaline {
namespace {

// Quotes and backslashes mean what they mean to a shell, but spaces need neither. A quote without its other end is part
// of the name.
std::string without_quotes(std::string_view text) {
  constexpr std::string_view kEscapedInQuotes = "\"\\$`";
  std::string name;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool has_next = i + 1 < text.size();
    if (c == '\\' && has_next &&
        (quote == '\0' || (quote == '"' && kEscapedInQuotes.find(text[i + 1]) != std::string_view::npos))) {
      name += text[++i];
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote != '\0' && c == quote) {
      quote = '\0';
    } else {
      name += c;
    }
  }
  return quote == '\0' ? name : std::string(text);
}

int hexadecimal_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0    ? c - '0'
         : std::isxdigit(static_cast<unsigned char>(c)) != 0 ? std::tolower(static_cast<unsigned char>(c)) - 'a' + 10
                                                             : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hexadecimal_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hexadecimal_digit(text[i + 2]) : -1;
    if (low < 0 || high * 16 + low == 0) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

// Of a URL of a file on this machine its path, of other text the text.
std::string path_of_url(const std::string& text) {
  for (const std::string_view prefix : {"file://localhost/", "file:///", "file:/"}) {
    if (text.starts_with(prefix) && !text.substr(prefix.size()).starts_with('/')) {
      return percent_decoded(std::string_view(text).substr(prefix.size() - 1));
    }
  }
  return text;
}

std::string with_home(const std::string& text) {
  const char* const home = std::getenv("HOME");
  return home != nullptr && (text == "~" || text.starts_with("~/")) ? home + text.substr(1) : text;
}

}  // namespace

std::filesystem::path pasted_path(std::string_view text) {
  std::error_code ignored;
  if (std::filesystem::path plain(text); std::filesystem::exists(plain, ignored)) {
    return plain;
  }
  return with_home(path_of_url(without_quotes(text)));
}

}  // namespace pascaline
