#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pascaline {

/// A value of a tunable parameter. Integers and booleans may appear in expressions; text and reals may not.
using Value = std::variant<std::int64_t, bool, double, std::string>;

/// The value as text, as a macro's body would have it (true is `1`).
[[nodiscard]] std::string to_text(const Value& value);
/// The value as it stands after `NAME=` in lists of settings, printed and typed: in double quotes, with `\"` and `\\`
/// inside, where it is empty or has a space, a comma or another sign that could be taken for the end of its setting.
[[nodiscard]] std::string setting_text(const Value& value);

/// One configuration: a value for every parameter of a space. The same Config is proposed, compiled,
/// measured, stored and dispatched. Settings are sorted by name, so equal configurations compare equal.
class Config {
 public:
  using Setting = std::pair<std::string, Value>;

  Config() = default;
  /// Takes settings in any order; throws Error on a duplicate name.
  explicit Config(std::vector<Setting> settings);

  [[nodiscard]] const std::vector<Setting>& settings() const noexcept { return settings_; }
  /// The value of `name`, or nullptr.
  [[nodiscard]] const Value* find(std::string_view name) const noexcept;
  /// The integer (or boolean) value of `name`; throws Error if absent or of another kind.
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  /// Canonical text `A=1 B=2`, sorted by name, values as `setting_text` has them: the key in
  /// caches and in the database.
  [[nodiscard]] std::string text() const;
  /// JSON object name → native value, sorted by name.
  [[nodiscard]] nlohmann::json json() const;
  /// Reads what `json()` wrote; throws Error on anything but an object of scalars.
  static Config from_json(const nlohmann::json& object);

  friend bool operator==(const Config&, const Config&) = default;

 private:
  std::vector<Setting> settings_;
};

}  // namespace pascaline
