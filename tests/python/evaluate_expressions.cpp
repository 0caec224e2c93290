// Evaluates expressions of search spaces for import_t1_test.py. Reads {"symbols": […], "points": [[…], …],
// "expressions": […]} from standard input and prints a line for each expression, with a character for each point:
// 0, 1 (not 0), z (division by zero), o (overflow), s (a bad shift); or "error: …" if it is no expression.

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/space/expression.hpp"

namespace pascaline {
namespace {

char outcome(const Expression& expression, const std::vector<std::int64_t>& point) {
  Arithmetic why = Arithmetic::fine;
  const auto value = expression.try_evaluate(point, &why);
  if (value) {
    return *value != 0 ? '1' : '0';
  }
  return why == Arithmetic::division_by_zero ? 'z' : why == Arithmetic::overflow ? 'o' : 's';
}

std::string line_of(const std::string& text, const Symbols& symbols,
                    const std::vector<std::vector<std::int64_t>>& points) {
  try {
    const Expression expression = Expression::parse(text, symbols);
    std::string line;
    for (const std::vector<std::int64_t>& point : points) {
      line += outcome(expression, point);
    }
    return line;
  } catch (const ExpressionError& error) {
    return std::string("error: ") + error.what();
  }
}

void evaluate_all(std::istream& in, std::ostream& out) {
  const nlohmann::json input = nlohmann::json::parse(in);
  Symbols symbols;
  for (const auto& name : input.at("symbols")) {
    symbols.add(name.get<std::string>());
  }
  const auto points = input.at("points").get<std::vector<std::vector<std::int64_t>>>();
  for (const auto& text : input.at("expressions")) {
    out << line_of(text.get<std::string>(), symbols, points) << '\n';
  }
}

}  // namespace
}  // namespace pascaline

int main() {
  try {
    pascaline::evaluate_all(std::cin, std::cout);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
