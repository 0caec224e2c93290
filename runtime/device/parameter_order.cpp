#include "runtime/device/parameter_order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/space/code_words.hpp"

namespace pascaline {
namespace {

// The text between an open parenthesis before `begin` and its counterpart, without comments; nothing if there is none.
std::optional<std::string> parenthesised(std::string_view source, std::size_t begin) {
  std::string text;
  int depth = 1;
  for (std::size_t i = begin; i < source.size(); ++i) {
    const std::string_view rest = source.substr(i);
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      const std::size_t end = rest.find(rest[1] == '/' ? "\n" : "*/", 2);
      if (end == std::string_view::npos) {
        return std::nullopt;
      }
      i += rest[1] == '/' ? end : end + 1;
      text += ' ';
      continue;
    }
    depth += source[i] == '(' ? 1 : source[i] == ')' ? -1 : 0;
    if (depth == 0) {
      return text;
    }
    text += source[i];
  }
  return std::nullopt;
}

std::string last_word(std::string_view text) {
  text = text.substr(0, text.find_first_of("=["));
  while (!text.empty() && !is_word(text.back())) {
    text.remove_suffix(1);
  }
  std::size_t begin = text.size();
  while (begin > 0 && is_word(text[begin - 1])) {
    --begin;
  }
  return std::string(text.substr(begin));
}

std::vector<std::string> names_in(std::string_view parameters) {
  std::vector<std::string> names;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= parameters.size(); ++i) {
    const char c = i < parameters.size() ? parameters[i] : ',';
    depth += c == '(' || c == '<' ? 1 : c == ')' || c == '>' ? -1 : 0;
    if (c == ',' && (depth == 0 || i == parameters.size())) {
      names.push_back(last_word(parameters.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return names;
}

std::optional<std::size_t> place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional<std::size_t>(found - names.begin());
}

// The first place at which each side has a name that the other has elsewhere.
std::optional<std::size_t> first_swapped(const std::vector<std::string>& names,
                                         const std::vector<LaunchedArgument>& arguments) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool given_elsewhere = std::any_of(arguments.begin(), arguments.end(), [&](const LaunchedArgument& argument) {
      return argument.name == names[i];
    });
    if (names[i] != arguments[i].name && given_elsewhere && place_of(names, arguments[i].name)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

// A mention in which the order is right, or that is not understood, clears it: of several one may be a call or a
// comment.
std::optional<std::string> parameter_order_fault(std::string_view source, const std::string& function,
                                                 const std::vector<LaunchedArgument>& arguments) {
  std::optional<std::string> fault;
  for (std::size_t at = source.find(function); at != std::string_view::npos; at = source.find(function, at + 1)) {
    std::size_t open = at + function.size();
    while (open < source.size() && std::isspace(static_cast<unsigned char>(source[open])) != 0) {
      ++open;
    }
    if ((at > 0 && is_word(source[at - 1])) || open >= source.size() || source[open] != '(') {
      continue;
    }
    const std::optional<std::string> parameters = parenthesised(source, open + 1);
    const std::vector<std::string> names = parameters ? names_in(*parameters) : std::vector<std::string>();
    const std::optional<std::size_t> swapped =
        names.size() == arguments.size() ? first_swapped(names, arguments) : std::nullopt;
    if (!swapped) {
      return std::nullopt;
    }
    fault = fmt::format(
        "{} takes '{}' as its argument {}, but the search space gives '{}' there; list the arguments in "
        "the kernel's order",
        function, names[*swapped], *swapped + 1, arguments[*swapped].name);
  }
  return fault;
}

}  // namespace pascaline
