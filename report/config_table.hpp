#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"

namespace pascaline {

/// Configurations of many trials, each parameter's values kept once.
class ConfigTable {
 public:
  /// Adds what `Config::json` wrote; throws Error on anything but an object of scalars.
  void add(std::string_view config_json);
  /// Number of configurations added.
  [[nodiscard]] std::size_t size() const noexcept { return rows_; }
  [[nodiscard]] std::size_t parameters() const noexcept { return columns_.size(); }
  [[nodiscard]] const std::string& name(std::size_t parameter) const { return columns_[parameter].name; }
  /// Values of the parameter in the order of their first use.
  [[nodiscard]] const std::vector<Value>& values(std::size_t parameter) const { return columns_[parameter].values; }
  /// Index into `values` for the configuration, nothing if it does not have the parameter.
  [[nodiscard]] std::optional<std::size_t> index(std::size_t parameter, std::size_t row) const;

 private:
  static constexpr std::uint32_t kAbsent = 0xffffffff;
  struct Column {
    std::string name;
    std::vector<Value> values;
    std::map<Value, std::uint32_t> index_of;
    std::vector<std::uint32_t> rows;  ///< may end early: absent from there on
  };
  Column& column(const std::string& name, std::size_t expected);

  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

/// Numbers (true is 1) ascending, then texts.
[[nodiscard]] bool value_less(const Value& a, const Value& b);

}  // namespace pascaline
