#include "model/text/pattern_translation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "model/text/utf8.hpp"

namespace pascaline {
namespace {

using namespace std::string_view_literals;

// White_Space of Unicode, for a class.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

constexpr std::array kCategories{"L"sv,  "Lu"sv, "Ll"sv, "Lt"sv, "Lm"sv, "Lo"sv, "M"sv,  "Mn"sv, "Mc"sv, "Me"sv, "N"sv,
                                 "Nd"sv, "Nl"sv, "No"sv, "P"sv,  "Pc"sv, "Pd"sv, "Ps"sv, "Pe"sv, "Pi"sv, "Pf"sv, "Po"sv,
                                 "S"sv,  "Sm"sv, "Sc"sv, "Sk"sv, "So"sv, "Z"sv,  "Zs"sv, "Zl"sv, "Zp"sv};

// Two letters that Oniguruma, ignoring case, also matches with one character (a ligature, a sharp s).
constexpr std::array kFoldedPairs{"ff"sv, "fi"sv, "fl"sv, "ss"sv, "st"sv};

class PatternTranslator {
 public:
  explicit PatternTranslator(std::string_view pattern) : rest_(pattern) {}

  std::string translate() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        quantifier();
      } else if (c == '^' || c == '$' || c == '.' || c == '#') {
        refuse(1);
      } else {
        take(1);
      }
    }
    return out_;
  }

 private:
  [[noreturn]] void refuse(std::size_t length) const {
    throw Error(fmt::format("the construct '{}' is not known to split as the model's own tokenizer does",
                            valid_utf8(rest_.substr(0, length))));
  }
  void take(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
  }
  void skip(std::size_t count) { rest_.remove_prefix(count); }

  void escape(bool in_class) {
    const char c = rest_.size() > 1 ? rest_[1] : '\0';
    if (c == 'p' || c == 'P') {
      property();
    } else if (c == 's') {
      out_ += in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
      skip(2);
    } else if (c == 'S' && !in_class) {
      out_ += fmt::format("[^{}]", kSpaces);
      skip(2);
    } else if (c == 'r' || c == 'n' || c == 't' || c == 'd' || (c > ' ' && c < '\x7f' && !is_word(c))) {
      take(2);
    } else {
      refuse(2);
    }
  }

  void property() {
    const std::size_t end = rest_.find('}');
    if (rest_.size() < 3 || rest_[2] != '{' || end == std::string_view::npos ||
        std::find(kCategories.begin(), kCategories.end(), rest_.substr(3, end - 3)) == kCategories.end()) {
      refuse(std::min<std::size_t>(end == std::string_view::npos ? 3 : end + 1, 12));
    }
    take(end + 1);
  }

  void character_class() {
    take(rest_.starts_with("[^") ? 2 : 1);
    if (rest_.starts_with(']')) {
      refuse(1);
    }
    while (!rest_.starts_with(']')) {
      if (rest_.empty()) {
        throw Error("a class of characters is not closed with ']'");
      }
      if (rest_.starts_with('\\')) {
        escape(true);
      } else if (rest_.starts_with('[') || rest_.starts_with("&&")) {
        refuse(2);
      } else {
        take(1);
      }
    }
    take(1);
  }

  void group() {
    if (rest_.starts_with("(?i:")) {
      const std::size_t end = rest_.find(')');
      const std::string_view inside = rest_.substr(4, end == std::string_view::npos ? end : end - 4);
      const bool plain =
          std::all_of(inside.begin(), inside.end(), [](char c) { return is_lower(c) || c == '\'' || c == '|'; });
      if (!plain || std::any_of(kFoldedPairs.begin(), kFoldedPairs.end(),
                                [&](std::string_view pair) { return inside.find(pair) != std::string_view::npos; })) {
        refuse(std::min<std::size_t>(inside.size() + 5, 40));
      }
      take(4);
    } else if (rest_.starts_with("(?:") || rest_.starts_with("(?=") || rest_.starts_with("(?!")) {
      take(3);
    } else if (rest_.starts_with("(?") || rest_.starts_with("(*")) {
      refuse(3);
    } else {
      take(1);
    }
  }

  void quantifier() {
    const std::size_t end = rest_.find_first_not_of("0123456789,", 1);
    if (end == std::string_view::npos || rest_[end] != '}' || rest_.substr(0, 2) == "{," || end == 1) {
      refuse(2);
    }
    if (end + 1 < rest_.size() && (rest_[end + 1] == '+' || rest_[end + 1] == '?')) {
      refuse(end + 2);
    }
    take(end + 1);
  }

  static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
  static bool is_word(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

std::string pcre_pattern(std::string_view pattern) { return PatternTranslator(pattern).translate(); }

}  // namespace pascaline
