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

/// The same to six digits: for curves and tables of many numbers.
[[nodiscard]] nlohmann::ordered_json json_coarse(double value);

/// The text with what is not UTF-8 replaced by U+FFFD; long ones are cut and end with an ellipsis.
[[nodiscard]] std::string json_text(std::string_view text);

/// The value as it is, a number stays a number.
[[nodiscard]] nlohmann::ordered_json json_value(const Value& value);
/// Object of names and values.
[[nodiscard]] nlohmann::ordered_json json_config(const Config& config);

}  // namespace pascaline
