#include "report/json_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "report/text.hpp"

namespace pascaline {
namespace {

using ReportJson = nlohmann::ordered_json;

ReportJson rounded(double value, int digits) {
  if (!std::isfinite(value)) {
    return nullptr;
  }
  if (value == std::trunc(value) && std::abs(value) < 1e15) {
    return static_cast<std::int64_t>(value);  // "12" instead of "12.0"
  }
  const std::string text = fmt::format("{:.{}g}", value, digits);
  double out = value;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

ReportJson json_number(double value) { return rounded(value, 10); }

ReportJson json_coarse(double value) { return rounded(value, 6); }

std::string json_text(std::string_view text) {
  std::string out = shown_text(text);
  if (out.size() > kMaxShownLine) {
    std::size_t end = kMaxShownLine;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0U) == 0x80U) {
      --end;
    }
    out.resize(end);
    out += "…";
  }
  return out;
}

ReportJson json_value(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return json_text(*text);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return *real;
  }
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag;
  }
  return std::get<std::int64_t>(value);
}

ReportJson json_config(const Config& config) {
  ReportJson object = ReportJson::object();
  for (const auto& [name, value] : config.settings()) {
    object[json_text(name)] = json_value(value);
  }
  return object;
}

}  // namespace pascaline
