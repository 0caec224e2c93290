#include "db/exchange/json_outline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <system_error>

namespace pascaline {
namespace {

// Marks a string that was a number; JSON texts have no reason to hold this character.
constexpr char kMark = '\x7f';
constexpr std::array<std::string_view, 3> kUnreal{"-Infinity", "Infinity", "NaN"};

class OutlineScanner {
 public:
  explicit OutlineScanner(std::string_view text) { out_.text = std::string(text); }

  JsonOutline scan() {
    std::string& text = out_.text;
    for (at_ = 0; at_ < text.size(); ++at_) {
      const char c = text[at_];
      if (c == '"') {
        if (!skip_string()) {
          return std::move(out_);
        }
      } else if (c == '{' || c == '[') {
        open(c);
      } else if (c == '}' || c == ']') {
        close();
      } else if (c == 'N' || c == 'I' || c == '-' || (c >= '0' && c <= '9')) {
        read_number();
      }
    }
    out_.closed = depth_ == 0;
    return std::move(out_);
  }

 private:
  // To the closing quote; false if there is none.
  bool skip_string() {
    const std::string& text = out_.text;
    const std::size_t start = ++at_;
    while (at_ < text.size() && text[at_] != '"') {
      at_ += text[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= text.size()) {
      return false;
    }
    if (depth_ == 1) {
      std::size_t next = at_ + 1;
      while (next < text.size() && std::isspace(static_cast<unsigned char>(text[next])) != 0) {
        ++next;
      }
      if (next < text.size() && text[next] == ':' && out_.keys.size() < kMaxKeys) {
        out_.keys.push_back(text.substr(start, at_ - start));
      }
    }
    return true;
  }

  void open(char c) {
    ++depth_;
    if (depth_ == 2) {
      in_cache_ = c == '{' && !out_.keys.empty() && out_.keys.back() == "cache";
      if (in_cache_) {
        out_.cache_end = at_ + 1;
      }
    }
  }

  void close() {
    --depth_;
    if (depth_ == 2 && in_cache_) {
      out_.cache_end = at_ + 1;
    }
  }

  void read_number() {
    const std::string_view rest = std::string_view(out_.text).substr(at_);
    for (const std::string_view word : kUnreal) {
      if (rest.starts_with(word)) {
        replace_number(word.size(), word);
        return;
      }
    }
    const std::size_t size = std::min(rest.find_first_not_of("+-.0123456789eE"), rest.size());
    double ignored = 0;
    const char* const begin = out_.text.c_str() + at_;
    const bool negative = *begin == '-';
    const bool too_large = size >= kShortestTooLarge &&
                           std::from_chars(begin, begin + size, ignored).ec == std::errc::result_out_of_range &&
                           is_large(rest.substr(0, size));
    if (too_large) {
      replace_number(size, kUnreal[negative ? 0 : 1]);
    } else {
      at_ += std::max(size, std::size_t{1}) - 1;
    }
  }

  // Whether a number that no double holds is too large; else it is nearly 0.
  static bool is_large(std::string_view number) {
    const std::size_t exponent = number.find_first_of("eE");
    return exponent == std::string_view::npos || number.substr(exponent + 1, 1) != "-";
  }

  // By a string of the same size, with spaces behind it.
  void replace_number(std::size_t size, std::string_view word) {
    const std::string text = fmt::format("\"{}{}\"", kMark, word == "NaN" ? "" : word.substr(0, 1));
    out_.text.replace(at_, size, fmt::format("{:<{}}", text, size));
    at_ += size - 1;
  }

  static constexpr std::size_t kShortestTooLarge = 5;  // 1e309
  static constexpr std::size_t kMaxKeys = 1000;

  JsonOutline out_;
  std::size_t at_ = 0;
  long depth_ = 0;
  bool in_cache_ = false;
};

}  // namespace

bool JsonOutline::has(std::string_view key) const { return std::find(keys.begin(), keys.end(), key) != keys.end(); }

std::string JsonOutline::completed() const {
  return closed || cache_end == std::string::npos ? text : text.substr(0, cache_end) + "}}";
}

JsonOutline outline_json(std::string_view text) { return OutlineScanner(text).scan(); }

std::optional<std::string_view> unreal_number(const nlohmann::json& value) {
  if (!value.is_string()) {
    return std::nullopt;
  }
  const auto& text = value.get_ref<const std::string&>();
  for (const std::string_view word : kUnreal) {
    if (text.starts_with(kMark) && text.substr(1) == (word == "NaN" ? "" : word.substr(0, 1))) {
      return word;
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
