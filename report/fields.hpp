#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/trial_counts.hpp"
#include "report/json_values.hpp"

// Each object of the report's JSON document is one table of fields, from which the writer, the reference page and the
// schema come. The type of a field is that of the C++ value it is written from.

namespace pascaline {

class FieldTable;

/// The type of a value as the page and the schema state it.
struct FieldType {
  std::string text;               ///< "list of search", "number or null"
  nlohmann::ordered_json schema;  ///< of JSON Schema
  const FieldTable* table{};      ///< of the object in it, if there is one
  bool may_be_absent = false;
};

/// One key of an object, as the page states it.
struct FieldText {
  std::string name;
  FieldType type;
  std::string unit;     ///< empty: none
  std::string meaning;  ///< a sentence
};

/// An object, as the page and the schema state it.
class FieldTable {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& meaning() const { return meaning_; }
  [[nodiscard]] const std::vector<FieldText>& fields() const { return fields_; }

 protected:
  FieldTable(std::string name, std::string meaning) : name_(std::move(name)), meaning_(std::move(meaning)) {}
  std::string name_;
  std::string meaning_;
  std::vector<FieldText> fields_;
};

/// A number written to six digits: for curves and tables of many numbers.
struct Coarse {
  double value = 0;
};

/// A field that is left out where it has no value.
template <typename Value>
struct IfPresent {
  std::optional<Value> value;
};

/// An object whose keys are names from the database.
template <typename Value>
struct ByName {
  std::vector<std::pair<std::string, Value>> entries;
};

/// How many values an enumeration with names has.
template <typename Enumeration>
inline constexpr std::size_t kEnumerators = 0;
template <>
inline constexpr std::size_t kEnumerators<TrialStatus> = kTrialStatuses;
template <>
inline constexpr std::size_t kEnumerators<TrialStage> = 2;

namespace field_types {

template <template <typename...> typename Template, typename Type>
inline constexpr bool kIs = false;
template <template <typename...> typename Template, typename... Arguments>
inline constexpr bool kIs<Template, Template<Arguments...>> = true;

[[nodiscard]] inline FieldType or_null(FieldType type) {
  type.text += " or null";
  type.schema = {{"anyOf", {type.schema, {{"type", "null"}}}}};
  return type;
}

[[nodiscard]] inline FieldType simple(const char* text, const char* schema) { return {text, {{"type", schema}}}; }

template <typename Value>
[[nodiscard]] FieldType type_of() {
  if constexpr (std::is_same_v<Value, bool>) {
    return simple("boolean", "boolean");
  } else if constexpr (std::is_integral_v<Value>) {
    return simple("integer", "integer");
  } else if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, Coarse>) {
    return simple("number", "number");
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    return simple("text", "string");
  } else if constexpr (std::is_enum_v<Value>) {
    FieldType type{"", {{"enum", nlohmann::ordered_json::array()}}};
    for (std::size_t i = 0; i < kEnumerators<Value>; ++i) {
      const std::string_view name = name_of(static_cast<Value>(i));
      type.text += fmt::format("{}`{}`", i == 0 ? "" : ", ", name);
      type.schema["enum"].push_back(name);
    }
    return type;
  } else if constexpr (std::is_same_v<Value, pascaline::Value>) {
    return {"value", {{"type", {"number", "boolean", "string"}}}};
  } else if constexpr (std::is_same_v<Value, Config>) {
    return {"values by name", {{"type", "object"}, {"additionalProperties", type_of<pascaline::Value>().schema}}};
  } else if constexpr (kIs<std::optional, Value>) {
    return or_null(type_of<typename Value::value_type>());
  } else if constexpr (kIs<IfPresent, Value>) {
    FieldType type = type_of<typename decltype(Value::value)::value_type>();
    type.text += " or absent";
    type.may_be_absent = true;
    return type;
  } else if constexpr (kIs<std::vector, Value>) {
    FieldType type = type_of<typename Value::value_type>();
    return {"list of " + type.text, {{"type", "array"}, {"items", type.schema}}, type.table};
  } else if constexpr (kIs<ByName, Value>) {
    const FieldType type = type_of<typename decltype(Value::entries)::value_type::second_type>();
    return {type.text + "s by name", {{"type", "object"}, {"additionalProperties", type.schema}}};
  } else {
    const FieldTable& table = fields_of(static_cast<const Value*>(nullptr));
    return {"[" + table.name() + "](#" + table.name() + ")", {{"$ref", "#/$defs/" + table.name()}}, &table};
  }
}

template <typename Value>
[[nodiscard]] nlohmann::ordered_json json_of(const Value& value) {
  if constexpr (std::is_integral_v<Value>) {
    return value;
  } else if constexpr (std::is_same_v<Value, double>) {
    return json_number(value);
  } else if constexpr (std::is_same_v<Value, Coarse>) {
    return json_coarse(value.value);
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    return json_text(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<Value, pascaline::Value>) {
    return json_value(value);
  } else if constexpr (std::is_same_v<Value, Config>) {
    return json_config(value);
  } else if constexpr (kIs<std::optional, Value>) {
    return value ? json_of(*value) : nlohmann::ordered_json();
  } else if constexpr (kIs<IfPresent, Value>) {
    return value.value ? json_of(*value.value) : nlohmann::ordered_json(nlohmann::ordered_json::value_t::discarded);
  } else if constexpr (kIs<std::vector, Value>) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& element : value) {
      list.push_back(json_of(element));
    }
    return list;
  } else if constexpr (kIs<ByName, Value>) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const auto& [name, entry] : value.entries) {
      object[json_text(name)] = json_of(entry);
    }
    return object;
  } else {
    return fields_of(&value).json(value);
  }
}

}  // namespace field_types

/// The fields of an object that is written from an `Owner`. `fields_of(const Owner*)` gives it where other objects hold
/// such ones.
template <typename Owner>
class Fields : public FieldTable {
 public:
  Fields(std::string name, std::string meaning) : FieldTable(std::move(name), std::move(meaning)) {}

  /// A field written from what `get`, a member or a function, gives of the owner.
  template <typename Get>
  Fields& add(std::string name, Get get, std::string meaning, std::string unit = {}) & {
    using Given = std::remove_cvref_t<std::invoke_result_t<Get, const Owner&>>;
    fields_.push_back({std::move(name), field_types::type_of<Given>(), std::move(unit), std::move(meaning)});
    writers_.push_back([get](const Owner& owner) { return field_types::json_of<Given>(std::invoke(get, owner)); });
    return *this;
  }
  template <typename Get>
  Fields&& add(std::string name, Get get, std::string meaning, std::string unit = {}) && {
    return std::move(add(std::move(name), std::move(get), std::move(meaning), std::move(unit)));
  }

  /// One for each count of trials.
  template <typename Get>
  Fields&& add_counts(Get get) && {
    for (const TrialCount& count : kTrialCounts) {
      add(
          count.name, [get, &count](const Owner& owner) { return std::invoke(get, owner).*count.value; },
          count.meaning);
    }
    return std::move(*this);
  }

  /// The fields of a base class.
  template <typename Base>
  Fields&& add_all(const Fields<Base>& base) && {
    fields_.insert(fields_.end(), base.fields_.begin(), base.fields_.end());
    writers_.insert(writers_.end(), base.writers_.begin(), base.writers_.end());
    return std::move(*this);
  }

  [[nodiscard]] nlohmann::ordered_json json(const Owner& owner) const {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      nlohmann::ordered_json value = writers_[i](owner);
      if (!value.is_discarded()) {
        object[fields_[i].name] = std::move(value);
      }
    }
    return object;
  }

 private:
  template <typename>
  friend class Fields;
  std::vector<std::function<nlohmann::ordered_json(const Owner&)>> writers_;
};

/// The text of the member; null where it is empty.
template <typename Owner>
[[nodiscard]] auto unless_empty(std::string Owner::*member) {
  return [member](const Owner& owner) { return (owner.*member).empty() ? std::nullopt : std::optional(owner.*member); };
}

[[nodiscard]] inline Coarse coarse(double value) { return {value}; }
template <typename Value>
[[nodiscard]] auto coarse(const std::optional<Value>& value) {
  return value ? std::optional(coarse(*value)) : std::nullopt;
}
template <typename Value>
[[nodiscard]] auto coarse(const std::vector<Value>& values) {
  std::vector<decltype(coarse(values.front()))> list;
  for (const Value& value : values) {
    list.push_back(coarse(value));
  }
  return list;
}
/// The member to six digits.
template <typename Owner, typename Value>
[[nodiscard]] auto coarse(Value Owner::*member) {
  return [member](const Owner& owner) { return coarse(owner.*member); };
}

}  // namespace pascaline
