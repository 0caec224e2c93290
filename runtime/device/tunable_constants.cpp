#include "runtime/device/tunable_constants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/space/code_words.hpp"
#include "runtime/device/directives.hpp"
#include "runtime/device/source_folder.hpp"

namespace pascaline {
namespace {

// By which macros of type variables name them.
constexpr std::pair<std::string_view, std::string_view> kSpelledTypes[] = {
    {"float32", "float"},   {"float64", "double"},        {"float16", "__half"},
    {"int32", "int"},       {"int64", "long long"},       {"bfloat16", "__nv_bfloat16"},
    {"uint32", "unsigned"}, {"int8", "signed char"},      {"uint8", "unsigned char"},
    {"int16", "short"},     {"uint16", "unsigned short"}, {"uint64", "unsigned long long"}};

std::optional<long long> whole_number(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

bool has_word(std::string_view text, std::string_view word) { return find_word(text, word) != std::string_view::npos; }

// Where the innermost brace stands that is open at `at`; npos outside of all.
std::size_t open_brace(std::string_view text, std::size_t at) {
  for (int depth = 0; at-- > 0;) {
    depth += text[at] == '}' ? 1 : text[at] == '{' ? -1 : 0;
    if (depth < 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

std::string_view statement_before(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  return before.substr(before.find_last_of(";{}") + 1);  // npos + 1 is 0
}

// A member of a class or a variable of a function hides a constant, one of a namespace would be a second.
bool is_in_namespace(std::string_view text, std::size_t at) {
  const std::string_view statement = statement_before(text, at);
  bool is_constant =
      (has_word(statement, "const") || has_word(statement, "constexpr")) && !has_word(statement, "template");
  for (std::size_t brace = open_brace(text, at); brace != std::string_view::npos; brace = open_brace(text, brace)) {
    const std::string_view before = statement_before(text, brace);
    if (has_word(before, "enum")) {
      is_constant = true;
    } else if (!has_word(before, "namespace") && !has_word(before, "extern")) {
      return false;
    }
  }
  return is_constant;
}

bool declares(std::string_view text, std::string_view name) {
  for (std::size_t at = find_word(text, name); at != std::string_view::npos; at = find_word(text, name, at + 1)) {
    std::string_view rest = text.substr(at + name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    const bool has_value =
        rest.starts_with('{') || rest.starts_with('(') || (rest.starts_with('=') && !rest.starts_with("=="));
    if (has_value && is_in_namespace(text, at)) {
      return true;
    }
  }
  return false;
}

// Says if code, not only a comment, has the word.
bool names(const KernelSource& source, std::string_view word) {
  const auto in = [&](const std::string& text) {
    return has_word(text, word) && has_word(without_comments(text), word);
  };
  return in(source.text) || std::ranges::any_of(source.headers, [&](const auto& one) { return in(one.second); });
}

}  // namespace

std::string constant_name(const std::string& macro) {
  std::string name = "k";
  bool is_first = true;
  for (const char c : macro) {
    const auto letter = static_cast<unsigned char>(c);
    if (c != '_') {
      name += static_cast<char>(is_first ? std::toupper(letter) : std::tolower(letter));
    }
    is_first = c == '_';
  }
  return name;
}

std::string constant_lines(const std::vector<std::string>& macros, const KernelSource& source) {
  std::string lines;
  std::set<std::string_view> named;
  for (const std::string& macro : macros) {
    const std::string name = macro_name(macro);
    const std::string_view body = std::string_view(macro).substr(std::min(name.size() + 1, macro.size()));
    const auto type = std::ranges::find(kSpelledTypes, body, [](const auto& one) { return one.first; });
    if (type != std::end(kSpelledTypes) && !names(source, body) && named.insert(body).second) {
      const bool is_class = type->second.starts_with("__");
      lines += fmt::format("{}using {} = {};\n", is_class ? fmt::format("struct {}; ", type->second) : "", body,
                           type->second);
    }
    const auto value = whole_number(body);
    const std::string constant = constant_name(name);
    if (!value || !source.mentions(constant) || declares(source.text, constant) ||
        std::any_of(source.headers.begin(), source.headers.end(),
                    [&](const auto& header) { return declares(header.second, constant); })) {
      continue;
    }
    const bool is_int = *value >= std::numeric_limits<int>::min() && *value <= std::numeric_limits<int>::max();
    lines += fmt::format("constexpr {} {} = {};\n", is_int ? "int" : "long long", constant, *value);
  }
  return lines;
}

}  // namespace pascaline
