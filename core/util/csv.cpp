#include "core/util/csv.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace pascaline {
namespace {

bool is_signed_number(std::string_view text) {
  const std::string_view digits = text.substr(1);  // after the sign
  if (digits.empty() || (std::isdigit(static_cast<unsigned char>(digits.front())) == 0 && digits.front() != '.')) {
    return false;
  }
  double value = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return fault == std::errc() && end == digits.data() + digits.size();
}

// With or without apostrophes in front.
bool runs_as_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  if (text.empty()) {
    return false;
  }
  const bool has_sign = text.front() == '+' || text.front() == '-';
  return has_sign ? !is_signed_number(text) : std::string_view("=@\t\r\n").find(text.front()) != std::string_view::npos;
}

}  // namespace

std::string csv_field(std::string_view text) {
  const bool formula = runs_as_formula(text);
  std::string out = formula ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return out.append(text);
  }
  out.insert(out.begin(), '"');
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + '"';
}

std::string_view csv_original(std::string_view cell) {
  return cell.starts_with('\'') && runs_as_formula(cell) ? cell.substr(1) : cell;
}

}  // namespace pascaline
