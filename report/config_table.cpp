#include "report/config_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace pascaline {
namespace {

// Reading without a document in between: there may be hundreds of thousands of configurations.
class SettingReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return false; }
  bool boolean(bool value) override { return set(value); }
  bool number_integer(number_integer_t value) override { return set(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()) &&
           set(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return set(value); }
  bool string(string_t& value) override { return set(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return !std::exchange(inside_, true); }
  bool key(string_t& value) override {
    settings.emplace_back(std::move(value), Value{});
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*elements*/) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

  std::vector<Config::Setting> settings;

 private:
  bool set(Value value) {
    if (settings.empty()) {
      return false;  // a document that is a scalar
    }
    settings.back().second = std::move(value);
    return true;
  }
  bool inside_ = false;
};

// 0 for texts.
double number_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? 1 : 0;
  }
  const auto* real = std::get_if<double>(&value);
  return real != nullptr ? *real : 0;
}

}  // namespace

void ConfigTable::add(std::string_view config_json) {
  SettingReader reader;
  if (!nlohmann::json::sax_parse(config_json.begin(), config_json.end(), &reader)) {
    throw Error(
        fmt::format("'{}' is not a configuration; the database was damaged or changed by another program: restore "
                    "a copy",
                    config_json));
  }
  for (std::size_t i = 0; i < reader.settings.size(); ++i) {
    auto& [name, value] = reader.settings[i];
    Column& in = column(name, i);
    const auto [known, fresh] = in.index_of.try_emplace(value, static_cast<std::uint32_t>(in.values.size()));
    if (fresh) {
      in.values.push_back(std::move(value));
    }
    in.rows.resize(rows_, kAbsent);
    in.rows.push_back(known->second);
  }
  ++rows_;
}

std::optional<std::size_t> ConfigTable::index(std::size_t parameter, std::size_t row) const {
  const std::vector<std::uint32_t>& rows = columns_[parameter].rows;
  return row < rows.size() && rows[row] != kAbsent ? std::optional<std::size_t>(rows[row]) : std::nullopt;
}

// Configurations of one space name the same parameters in the same order.
ConfigTable::Column& ConfigTable::column(const std::string& name, std::size_t expected) {
  if (expected < columns_.size() && columns_[expected].name == name) {
    return columns_[expected];
  }
  const auto found =
      std::find_if(columns_.begin(), columns_.end(), [&](const Column& known) { return known.name == name; });
  if (found != columns_.end()) {
    return *found;
  }
  Column& added = columns_.emplace_back();
  added.name = name;
  return added;
}

bool value_less(const Value& a, const Value& b) {
  const auto* text_a = std::get_if<std::string>(&a);
  const auto* text_b = std::get_if<std::string>(&b);
  if (text_a != nullptr && text_b != nullptr) {
    return *text_a < *text_b;
  }
  return text_a == nullptr && (text_b != nullptr || number_of(a) < number_of(b));
}

}  // namespace pascaline
