#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/space/expression.hpp"

namespace pascaline {

/// Parses JSON text; throws SpaceError naming `file`, line and column of a syntax error, or the pointer of a key
/// that occurs twice in one object.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);

/// Text of a file of search spaces or workloads; throws SpaceError naming it.
[[nodiscard]] std::string read_space_file(const std::filesystem::path& file);

/// A JSON value with its place, so that every complaint names file and JSON pointer (SpaceError).
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, const std::string& file, std::string pointer = {})
      : value_(&value), file_(&file), pointer_(std::move(pointer)) {}

  [[noreturn]] void fail(const std::string& problem) const;

  /// Requires an object with no keys but these.
  void only_keys(std::initializer_list<std::string_view> known) const;
  /// Requires an object and gives its keys.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] bool has(std::string_view key) const;
  /// Whether it has that member with a value other than null.
  [[nodiscard]] bool has_value(std::string_view key) const;
  /// The member; fails if it is missing.
  [[nodiscard]] JsonNode at(std::string_view key) const;
  [[nodiscard]] JsonNode at(std::size_t index) const;
  /// Requires an array and gives its length.
  [[nodiscard]] std::size_t array_size() const;

  [[nodiscard]] std::string text() const;
  /// Text that is not empty.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double real() const;
  [[nodiscard]] bool boolean() const;
  /// A string or an integer, parsed as an expression.
  [[nodiscard]] Expression expression(const Symbols& symbols) const;

  [[nodiscard]] const nlohmann::json& value() const noexcept { return *value_; }
  [[nodiscard]] const std::string& pointer() const noexcept { return pointer_; }
  [[nodiscard]] const std::string& file() const noexcept { return *file_; }

 private:
  const nlohmann::json* value_;
  const std::string* file_;
  std::string pointer_;
};

}  // namespace pascaline
