#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/json_values.hpp"

namespace pascaline {

/// A list of what `make` makes of each of the elements.
template <typename Elements, typename Make>
[[nodiscard]] nlohmann::ordered_json list_of(const Elements& elements, Make make) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& element : elements) {
    list.push_back(make(element));
  }
  return list;
}

/// For whole numbers; others are rounded by `json_number`.
template <typename Number>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<Number>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// Object of names and whole numbers.
template <typename Pairs>
[[nodiscard]] nlohmann::ordered_json numbers_object(const Pairs& pairs) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : pairs) {
    object[json_text(name)] = value;
  }
  return object;
}

/// Object of type variables and their types.
template <typename Types>
[[nodiscard]] nlohmann::ordered_json types_object(const Types& types) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, type] : types) {
    object[json_text(name)] = name_of(type);
  }
  return object;
}

/// Trials by status; `all`: also those that did not occur.
[[nodiscard]] nlohmann::ordered_json statuses_json(const std::array<std::size_t, kStatusCount>& statuses, bool all);

/// Each count under its name.
[[nodiscard]] nlohmann::ordered_json counts_json(const TrialCounts& counts);

[[nodiscard]] nlohmann::ordered_json problem_json(const ReportProblem& problem);

}  // namespace pascaline
