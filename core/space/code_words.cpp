#include "core/space/code_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>

#include "core/error.hpp"

namespace pascaline {
namespace {

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_part(char c) noexcept { return is_letter(c) || is_digit(c); }

constexpr std::string_view kWords[] = {"alignas",      "alignof",   "and",           "and_eq",
                                       "asm",          "auto",      "bitand",        "bitor",
                                       "bool",         "break",     "case",          "catch",
                                       "char",         "char16_t",  "char32_t",      "char8_t",
                                       "class",        "co_await",  "co_return",     "co_yield",
                                       "compl",        "concept",   "const",         "const_cast",
                                       "consteval",    "constexpr", "constinit",     "continue",
                                       "decltype",     "default",   "defined",       "delete",
                                       "do",           "double",    "dynamic_cast",  "else",
                                       "enum",         "explicit",  "export",        "extern",
                                       "false",        "float",     "for",           "friend",
                                       "goto",         "if",        "inline",        "int",
                                       "long",         "mutable",   "namespace",     "new",
                                       "noexcept",     "not",       "not_eq",        "nullptr",
                                       "operator",     "or",        "or_eq",         "private",
                                       "protected",    "public",    "register",      "reinterpret_cast",
                                       "requires",     "return",    "short",         "signed",
                                       "sizeof",       "static",    "static_assert", "static_cast",
                                       "struct",       "switch",    "template",      "this",
                                       "thread_local", "throw",     "true",          "try",
                                       "typedef",      "typeid",    "typename",      "typeof",
                                       "union",        "unsigned",  "using",         "virtual",
                                       "void",         "volatile",  "wchar_t",       "while",
                                       "xor",          "xor_eq"};

using Values = std::initializer_list<std::string_view>;

bool is_among(std::string_view value, Values known) {
  return std::find(known.begin(), known.end(), value) != known.end();
}

bool is_number(std::string_view value) {
  constexpr std::size_t kMaxDigits = 9;
  return !value.empty() && value.size() <= kMaxDigits && std::all_of(value.begin(), value.end(), is_digit);
}

// What may stand after an option's `=`.
enum class OptionValue { none, truth, number, numbers, standard, effort, define, assembler };

struct KnownOption {
  std::string_view name;
  OptionValue value;
};

// Without the dashes in front, of which all but the one-letter ones may have one or two.
constexpr KnownOption kOptions[] = {{"maxrregcount", OptionValue::number},
                                    {"use_fast_math", OptionValue::none},
                                    {"ftz", OptionValue::truth},
                                    {"prec-sqrt", OptionValue::truth},
                                    {"prec-div", OptionValue::truth},
                                    {"fmad", OptionValue::truth},
                                    {"extra-device-vectorization", OptionValue::none},
                                    {"restrict", OptionValue::none},
                                    {"std", OptionValue::standard},
                                    {"define-macro", OptionValue::define},
                                    {"device-debug", OptionValue::none},
                                    {"G", OptionValue::none},
                                    {"generate-line-info", OptionValue::none},
                                    {"lineinfo", OptionValue::none},
                                    {"device-int128", OptionValue::none},
                                    {"default-device", OptionValue::none},
                                    {"builtin-move-forward", OptionValue::truth},
                                    {"builtin-initializer-list", OptionValue::truth},
                                    {"Ofast-compile", OptionValue::effort},
                                    {"disable-warnings", OptionValue::none},
                                    {"w", OptionValue::none},
                                    {"diag-suppress", OptionValue::numbers},
                                    {"ptxas-options", OptionValue::assembler},
                                    {"Xptxas", OptionValue::assembler}};

bool is_cache_operator(std::string_view value) { return is_among(value, {"ca", "cg", "cs", "cv", "wb", "wt"}); }
bool is_truth(std::string_view value) { return is_among(value, {"true", "false"}); }

// Options of the assembler, which NVRTC passes on; it has others that name files.
bool is_assembler_option(std::string_view option) {
  constexpr std::string_view kFlags[] = {"-v",
                                         "--verbose",
                                         "-O0",
                                         "-O1",
                                         "-O2",
                                         "-O3",
                                         "--warn-on-spills",
                                         "-warn-spills",
                                         "--warn-on-local-memory-usage",
                                         "-warn-lmem-usage",
                                         "--disable-optimizer-constants",
                                         "-disable-optimizer-consts"};
  if (std::find(std::begin(kFlags), std::end(kFlags), option) != std::end(kFlags)) {
    return true;
  }
  const std::size_t equals = option.find('=');
  if (equals == std::string_view::npos) {
    return false;
  }
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(equals + 1);
  if (is_among(name, {"-dlcm", "--def-load-cache", "-dscm", "--def-store-cache"})) {
    return is_cache_operator(value);
  }
  if (is_among(name, {"-allow-expensive-optimizations", "--allow-expensive-optimizations"})) {
    return is_truth(value);
  }
  return is_among(name, {"-O", "--opt-level", "-regUsageLevel", "--register-usage-level"}) && is_number(value);
}

bool is_list_of_numbers(std::string_view value) {
  while (true) {
    const std::size_t comma = std::min(value.find(','), value.size());
    if (!is_number(value.substr(0, comma))) {
      return false;
    }
    if (comma == value.size()) {
      return true;
    }
    value.remove_prefix(comma + 1);
  }
}

// Of a macro that an option defines: the program itself defines its own.
std::optional<std::string> why_no_own_define(std::string_view define) {
  const auto why = why_no_macro_name(define.substr(0, define.find('=')));
  return why ? why : why_no_define(define);
}

bool fits(OptionValue kind, std::string_view value) {
  switch (kind) {
    case OptionValue::truth:
      return is_truth(value);
    case OptionValue::number:
      return is_number(value);
    case OptionValue::numbers:
      return is_list_of_numbers(value);
    case OptionValue::standard:
      return is_among(value, {"c++03", "c++11", "c++14", "c++17", "c++20"});
    case OptionValue::effort:
      return is_among(value, {"0", "min", "mid", "max"});
    case OptionValue::define:
      return !why_no_own_define(value);
    case OptionValue::assembler:
      return is_assembler_option(value);
    default:
      return false;
  }
}

std::string known_options() {
  std::string text;
  for (const KnownOption& option : kOptions) {
    text += (text.empty() ? "" : ", ") + std::string(option.name);
  }
  return text;
}

// A colon stands for nothing but a scope: with other signs it would be a bracket.
bool has_stray_colon(std::string_view value) {
  for (std::size_t at = value.find(':'); at != std::string_view::npos; at = value.find(':', at + 2)) {
    const bool scope =
        at > 0 && at + 2 < value.size() && is_part(value[at - 1]) && value[at + 1] == ':' && is_letter(value[at + 2]);
    if (!scope) {
      return true;
    }
  }
  return false;
}

// Words of C++ that name types and values; the others do something.
bool has_acting_word(std::string_view value) {
  constexpr std::string_view kTypeWords[] = {"bool",   "char", "const",    "double",  "false",
                                             "float",  "int",  "long",     "nullptr", "short",
                                             "signed", "true", "unsigned", "void",    "volatile"};
  for (std::size_t at = 0; at < value.size();) {
    const auto end = std::find_if_not(value.begin() + static_cast<std::ptrdiff_t>(at), value.end(), is_part);
    const std::string_view word = value.substr(at, static_cast<std::size_t>(end - value.begin()) - at);
    const bool is_keyword = std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
    if (is_keyword && std::find(std::begin(kTypeWords), std::end(kTypeWords), word) == std::end(kTypeWords)) {
      return true;
    }
    at += word.size() + 1;
  }
  return false;
}

}  // namespace

std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
  for (std::size_t at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return at;
    }
  }
  return std::string_view::npos;
}

bool is_identifier(std::string_view name) noexcept {
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), is_part);
}

std::optional<std::string> why_cuda_has_name(std::string_view name) {
  return is_among(name, {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
             ? std::optional<std::string>("is a variable that CUDA gives every kernel; choose another name")
             : std::nullopt;
}

std::optional<std::string> why_no_code_name(std::string_view name) {
  if (!is_identifier(name)) {
    return "is not an identifier of C++";
  }
  if (std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords)) {
    return "is a keyword of C++";
  }
  if (name.front() == '_' || name.find("__") != std::string_view::npos) {
    return "is reserved for the compiler, as is every name that begins with '_' or contains '__'";
  }
  return why_cuda_has_name(name);
}

std::optional<std::string> why_no_macro_name(std::string_view name) {
  if (name.starts_with("PASCALINE_") || name.starts_with("Pascaline") || name.starts_with("pascaline_")) {
    return "begins like the program's own names";
  }
  return why_no_code_name(name);
}

std::optional<std::string> why_no_macro_value(std::string_view value) {
  constexpr std::string_view kSigns = " .:<>,+-*";
  const bool plain = std::all_of(value.begin(), value.end(),
                                 [&](char c) { return is_part(c) || kSigns.find(c) != std::string_view::npos; });
  if (value.empty() || !plain || has_stray_colon(value) || has_acting_word(value)) {
    return "is not allowed as a macro value: use only numbers, names (of the C++ keywords, only type names), spaces, "
           "the signs . < > , + - * and, between names, ::";
  }
  return std::nullopt;
}

std::optional<std::string> why_no_function(std::string_view function) {
  constexpr std::size_t kMaxLetters = 200;
  const std::size_t open = std::min(function.find('<'), function.size());
  for (const std::string_view part : scopes_of(function.substr(0, open))) {
    if (auto why = why_no_code_name(part)) {
      return why;
    }
  }
  if (function.size() > kMaxLetters) {
    return fmt::format("has {} characters, a function may have {}", function.size(), kMaxLetters);
  }
  if (open == function.size()) {
    return std::nullopt;
  }
  int depth = 0;
  for (std::size_t i = open; i < function.size(); ++i) {
    depth += function[i] == '<' ? 1 : function[i] == '>' ? -1 : 0;
    if (depth == 0 && i + 1 < function.size()) {
      return "goes on after its template arguments";
    }
  }
  if (depth != 0) {
    return "has template arguments without a closing '>'";
  }
  if (why_no_macro_value(function.substr(open + 1, function.size() - open - 2))) {
    return "has template arguments that are not allowed: use parameters, type variables, macros, numbers and names (of "
           "the C++ keywords, only type names), spaces, the signs . < > , + - * and, between names, ::";
  }
  return std::nullopt;
}

std::optional<std::string> why_no_define(std::string_view define) {
  const std::size_t equals = std::min(define.find('='), define.size());
  if (auto why = why_no_code_name(define.substr(0, equals))) {
    return why;
  }
  return equals == define.size() ? std::nullopt : why_no_macro_value(define.substr(equals + 1));
}

std::optional<std::string> why_no_compiler_option(std::string_view option) {
  const std::size_t dashes = std::min(option.find_first_not_of('-'), option.size());
  const std::string_view text = option.substr(dashes);
  if (dashes == 1 && text.starts_with('D')) {
    return why_no_own_define(text.substr(1));
  }
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto known = std::find_if(std::begin(kOptions), std::end(kOptions),
                                  [&](const KnownOption& one) { return one.name == text.substr(0, equals); });
  if (dashes < 1 || dashes > 2 || known == std::end(kOptions)) {
    return fmt::format("is not an allowed compiler option; allowed are, after `--`: {}; and -D", known_options());
  }
  const bool has_value = equals < text.size();
  if (known->value == OptionValue::none ? !has_value : has_value && fits(known->value, text.substr(equals + 1))) {
    return std::nullopt;
  }
  return fmt::format("gives the compiler option {} a value that is not allowed", known->name);
}

std::optional<std::string> why_no_kernel_name(std::string_view name) {
  constexpr std::size_t kMaxLetters = 128;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return is_part(c) || c == '-' || c == '.'; });
  if (name.empty() || name.size() > kMaxLetters || !plain || name.front() == '-' || name.front() == '.') {
    return "is not a kernel's name: a name consists of letters, digits, '_', '-' and '.', and does not begin with one "
           "of the "
           "last two";
  }
  return std::nullopt;
}

std::filesystem::path kernel_file(const std::filesystem::path& folder, std::string_view kernel,
                                  std::string_view ending) {
  if (const auto why = why_no_kernel_name(kernel)) {
    throw Error(fmt::format("'{}' {}", kernel, *why));
  }
  return folder / fmt::format("{}{}", kernel, ending);
}

std::string_view bare_function(std::string_view function) {
  return scopes_of(function.substr(0, function.find('<'))).back();
}

std::vector<std::string_view> scopes_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t at = name.find("::"); at != std::string_view::npos; at = name.find("::")) {
    parts.push_back(name.substr(0, at));
    name.remove_prefix(at + 2);
  }
  parts.push_back(name);
  return parts;
}

std::string linker_name(std::string_view name) {
  const std::vector<std::string_view> parts = scopes_of(name);
  if (parts.size() == 1) {
    return std::string(name);
  }
  std::string mangled = "_ZN";
  for (const std::string_view part : parts) {
    mangled += fmt::format("{}{}", part.size(), part);
  }
  return mangled + "E";
}

}  // namespace pascaline
