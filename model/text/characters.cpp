#include "model/text/characters.hpp"

#include <utf8proc.h>

#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

bool is_word_character(char32_t code) noexcept {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // joiners, and letters in circles and squares, which are symbols by their category
      return code == 0x200C || code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) ||
             (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
             (code >= 0x1F170 && code <= 0x1F189);
  }
}

// The last character of a text that is not empty.
Utf8Step last_character(std::string_view text) noexcept {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) {
    --begin;
  }
  return next_utf8(text.substr(begin));
}

}  // namespace

bool is_white_space(char32_t code) noexcept {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

std::size_t leading_space(std::string_view text) noexcept {
  std::size_t end = 0;
  while (end < text.size()) {
    const Utf8Step step = next_utf8(text.substr(end));
    if (!is_white_space(step.code)) {
      break;
    }
    end += step.bytes;
  }
  return end;
}

std::size_t trailing_space(std::string_view text) noexcept {
  std::size_t begin = text.size();
  while (begin > 0) {
    const Utf8Step step = last_character(text.substr(0, begin));
    if (!is_white_space(step.code)) {
      break;
    }
    begin -= step.bytes;
  }
  return text.size() - begin;
}

bool begins_with_word(std::string_view text) noexcept {
  return !text.empty() && is_word_character(next_utf8(text).code);
}

bool ends_with_word(std::string_view text) noexcept {
  return !text.empty() && is_word_character(last_character(text).code);
}

}  // namespace pascaline
