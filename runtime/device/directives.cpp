#include "runtime/device/directives.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_digit_of_code(char c) { return c >= '0' && c <= '9'; }

// A line that ends in a backslash goes on in the next.
std::string joined_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t backslash = std::min(source.find('\\', at), source.size());
    text += source.substr(at, backslash - at);
    at = backslash;
    if (at == source.size()) {
      break;
    }
    std::size_t end = at + 1;
    while (end < source.size() && is_blank(source[end])) {
      ++end;
    }
    const bool joins = end < source.size() && source[end] == '\n';
    text += joins ? "" : "\\";
    at = joins ? end + 1 : at + 1;
  }
  return text;
}

// Each gives the end of what begins at `at`, which is `at` itself if no such thing does.

std::size_t comment_end(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "//") {
    return std::min(text.find('\n', at), text.size());
  }
  if (text.substr(at, 2) == "/*") {
    const std::size_t end = text.find("*/", at + 2);
    return end == std::string_view::npos ? text.size() : end + 2;
  }
  return at;
}

std::size_t string_end(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote != '"' && quote != '\'') {
    return at;
  }
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at) {
    at += text[at] == '\\' ? 1U : 0U;
  }
  return at < text.size() && text[at] == quote ? at + 1 : std::min(at, text.size());
}

// Of a raw string whose quote is at `at`.
std::size_t raw_string_end(std::string_view text, std::size_t at) {
  constexpr std::size_t kMaxOfDelimiter = 16;
  const std::size_t open = text.find_first_of("() \\\"\t\n\v\f", at + 1);
  if (open == std::string_view::npos || text[open] != '(' || open - at - 1 > kMaxOfDelimiter) {
    return at;
  }
  const std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

// Of a word, a number with its signs and points, or a raw string with its prefix.
std::size_t word_end(std::string_view text, std::size_t at) {
  const auto digit_at = [&](std::size_t i) { return i < text.size() && is_digit_of_code(text[i]); };
  const bool number = digit_at(at) || (text[at] == '.' && digit_at(at + 1));
  std::size_t end = at;
  while (end < text.size() && (is_word(text[end]) || (number && text[end] == '.') ||
                               (number && text[end] == '\'' && end + 1 < text.size() && is_word(text[end + 1])))) {
    ++end;
  }
  constexpr std::array<std::string_view, 5> kRaw{"R", "LR", "uR", "UR", "u8R"};
  const bool raw = end < text.size() && text[end] == '"' &&
                   std::find(kRaw.begin(), kRaw.end(), text.substr(at, end - at)) != kRaw.end();
  return raw ? std::max(end, raw_string_end(text, end)) : end;
}

// Of whatever begins there and is neither space nor a comment.
std::size_t token_end(std::string_view text, std::size_t at) {
  const std::size_t end = std::max(string_end(text, at), word_end(text, at));
  return end > at ? end : at + 1;
}

std::size_t directive_mark(std::string_view text, std::size_t at) {
  return text[at] == '#' ? at + 1 : text.substr(at, 2) == "%:" ? at + 2 : at;
}

// Reads the directive behind its mark and leaves `at` at the end of its last line.
Directive read_directive(std::string_view text, std::size_t& at) {
  Directive directive;
  bool named = false;
  while (at < text.size() && text[at] != '\n') {
    const std::size_t comment = comment_end(text, at);
    if (comment > at || is_blank(text[at])) {
      named = named || !directive.name.empty();
      directive.text += directive.text.empty() ? "" : " ";
      at = comment > at ? comment : at + 1;
      continue;
    }
    const std::size_t closing = text.find_first_of(">\n", at);
    // A name in angle brackets may hold what elsewhere begins a comment or a string.
    const bool in_brackets = text[at] == '<' && directive.name.starts_with("include") && directive.text.empty() &&
                             closing != std::string_view::npos && text[closing] == '>';
    const std::size_t end = in_brackets ? closing + 1 : token_end(text, at);
    named = named || (!directive.name.empty() && !is_word(text[at]));
    (named ? directive.text : directive.name) += text.substr(at, end - at);
    at = end;
  }
  directive.text.erase(directive.text.find_last_not_of(' ') + 1);
  return directive;
}

}  // namespace

std::vector<Directive> directives_of(std::string_view source) {
  const std::string text = joined_lines(source);
  std::vector<Directive> found;
  bool begins_line = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comment = comment_end(text, at);
    const std::size_t mark = directive_mark(text, at);
    if (comment > at) {
      at = comment;
    } else if (text[at] == '\n' || is_blank(text[at])) {
      begins_line = begins_line || text[at] == '\n';
      ++at;
    } else if (begins_line && mark > at) {
      at = mark;
      found.push_back(read_directive(text, at));
    } else {
      begins_line = false;
      at = token_end(text, at);
    }
  }
  return found;
}

std::string without_comments(std::string_view source) {
  std::string text;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t comment = comment_end(source, at);
    const std::size_t end = comment > at ? comment : token_end(source, at);
    text += comment > at ? std::string_view(" ") : source.substr(at, end - at);
    at = end;
  }
  return text;
}

std::vector<CodeToken> tokens_of(std::string_view text) {
  std::vector<CodeToken> tokens;
  bool spaced = false;
  for (std::size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      spaced = true;
      ++at;
      continue;
    }
    const bool pastes = text.substr(at, 2) == "##";
    const std::size_t end = pastes ? at + 2 : token_end(text, at);
    tokens.push_back({std::string(text.substr(at, end - at)), std::exchange(spaced, false)});
    at = end;
  }
  return tokens;
}

}  // namespace pascaline
