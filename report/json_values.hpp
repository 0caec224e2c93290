#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// The number rounded to ten significant digits, null if it is not finite.
[[nodiscard]] nlohmann::ordered_json json_number(double value);
[[nodiscard]] nlohmann::ordered_json json_number(const std::optional<double>& value);

/// The same to six digits: for curves and tables of many numbers.
[[nodiscard]] nlohmann::ordered_json json_coarse(double value);
[[nodiscard]] nlohmann::ordered_json json_coarse(const std::optional<double>& value);
template <typename Number>
[[nodiscard]] nlohmann::ordered_json json_coarse(const std::vector<Number>& values) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Number& value : values) {
    list.push_back(json_coarse(value));
  }
  return list;
}

/// The text with what is not UTF-8 replaced by U+FFFD; long ones are cut and end with an ellipsis.
[[nodiscard]] std::string json_text(std::string_view text);

/// The value as it is, a number stays a number.
[[nodiscard]] nlohmann::ordered_json json_value(const Value& value);
/// Object of names and values.
[[nodiscard]] nlohmann::ordered_json json_config(const Config& config);

/// Median, bounds and count; null if there is none.
[[nodiscard]] nlohmann::ordered_json json_time(const std::optional<TimeSummary>& time);

}  // namespace pascaline
