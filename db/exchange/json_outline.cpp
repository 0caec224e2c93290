#include "db/exchange/json_outline.hpp"

#include <algorithm>
#include <array>
#include <cctype>

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
      } else if (c == 'N' || c == 'I' || c == '-') {
        replace_unreal();
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

  void replace_unreal() {
    std::string& text = out_.text;
    for (const std::string_view word : kUnreal) {
      if (text.compare(at_, word.size(), word) == 0) {
        text[at_] = '"';
        text[at_ + 1] = kMark;
        std::copy(word.begin(), word.end() - 3, text.begin() + static_cast<std::ptrdiff_t>(at_) + 2);
        at_ += word.size() - 1;
        text[at_] = '"';
        return;
      }
    }
  }

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
    if (text.size() + 2 == word.size() && text.front() == kMark && text.substr(1) == word.substr(0, word.size() - 3)) {
      return word;
    }
  }
  return std::nullopt;
}

}  // namespace pascaline
