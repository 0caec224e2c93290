#include "tests/core/space/template_source.hpp"

#include <regex>
#include <sstream>

namespace pascaline::testing {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// Index of the parenthesis that closes the one at `open`; npos if there is none.
std::size_t closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  return std::string::npos;
}

TemplateParameter parse_parameter(const std::string& text) {
  TemplateParameter parameter;
  std::string rest = std::regex_replace(text, std::regex(R"(\b__restrict__\b|\bvolatile\b)"), " ");
  parameter.is_pointer = rest.find('*') != std::string::npos;
  parameter.is_const = std::regex_search(rest, std::regex(R"(\bconst\b)"));
  rest = trimmed(std::regex_replace(rest, std::regex(R"(\bconst\b|\*)"), " "));
  const std::size_t space = rest.find_last_of(" \n");
  if (space != std::string::npos) {
    parameter.name = rest.substr(space + 1);
    parameter.type = std::regex_replace(trimmed(rest.substr(0, space)), std::regex(R"(\s+)"), " ");
  }
  return parameter;
}

}  // namespace

bool TemplateSource::defines(const std::string& macro) const {
  return std::regex_search(text_, std::regex("(^|\\n)\\s*#\\s*define\\s+" + macro + "\\b"));
}

std::optional<std::vector<TemplateParameter>> TemplateSource::signature(const std::string& function) const {
  const std::regex entry("extern\\s+\"C\"\\s+__global__[^;{]*?\\b" + function + "\\s*\\(");
  std::smatch match;
  if (!std::regex_search(text_, match, entry)) {
    return std::nullopt;
  }
  const auto open = static_cast<std::size_t>(match.position() + match.length()) - 1;
  const std::size_t close = closing(text_, open);
  std::vector<TemplateParameter> parameters;
  std::istringstream list(text_.substr(open + 1, close - open - 1));
  for (std::string parameter; std::getline(list, parameter, ',');) {
    parameters.push_back(parse_parameter(parameter));
  }
  return parameters;
}

}  // namespace pascaline::testing
