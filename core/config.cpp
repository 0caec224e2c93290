#include "core/config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pascaline {

std::string to_text(const Value& value) {
  struct Printer {
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(bool flag) const { return flag ? "1" : "0"; }
    std::string operator()(double number) const {
      std::string text = fmt::format("{}", number);
      // Without a point or an exponent the compiler would take it for an integer.
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Printer{}, value);
}

std::string setting_text(const Value& value) {
  std::string text = to_text(value);
  if (!text.empty() && text.find_first_of(" ,=\"\\\n\t") == std::string::npos) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return out + '"';
}

Config::Config(std::vector<Setting> settings) : settings_(std::move(settings)) {
  std::sort(settings_.begin(), settings_.end(), [](const Setting& a, const Setting& b) { return a.first < b.first; });
  const auto twin = std::adjacent_find(settings_.begin(), settings_.end(),
                                       [](const Setting& a, const Setting& b) { return a.first == b.first; });
  if (twin != settings_.end()) {
    throw Error(fmt::format("configuration sets parameter '{}' twice", twin->first));
  }
}

const Value* Config::find(std::string_view name) const noexcept {
  const auto at =
      std::lower_bound(settings_.begin(), settings_.end(), name,
                       [](const Setting& setting, std::string_view wanted) { return setting.first < wanted; });
  return at != settings_.end() && at->first == name ? &at->second : nullptr;
}

std::int64_t Config::integer(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) {
    throw Error(fmt::format("configuration has no parameter '{}'", name));
  }
  if (const auto* number = std::get_if<std::int64_t>(value)) {
    return *number;
  }
  if (const auto* flag = std::get_if<bool>(value)) {
    return *flag ? 1 : 0;
  }
  throw Error(fmt::format("parameter '{}' is not an integer: {}", name, to_text(*value)));
}

std::string Config::text() const {
  std::string out;
  for (const auto& [name, value] : settings_) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, setting_text(value));
  }
  return out;
}

nlohmann::json Config::json() const {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : settings_) {
    std::visit([&, &key = name](const auto& native) { object[key] = native; }, value);
  }
  return object;
}

Config Config::from_json(const nlohmann::json& object) {
  if (!object.is_object()) {
    throw Error("a configuration must be a JSON object of parameter values");
  }
  std::vector<Setting> settings;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean()) {
      settings.emplace_back(name, value.get<bool>());
    } else if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
      throw Error(fmt::format("parameter '{}' has a value that does not fit 64 bits: {}", name, value.dump()));
    } else if (value.is_number_integer()) {
      settings.emplace_back(name, value.get<std::int64_t>());
    } else if (value.is_number_float()) {
      settings.emplace_back(name, value.get<double>());
    } else if (value.is_string()) {
      settings.emplace_back(name, value.get<std::string>());
    } else {
      throw Error(fmt::format("parameter '{}' has a value that is not a number, a boolean or text", name));
    }
  }
  return Config(std::move(settings));
}

}  // namespace pascaline
