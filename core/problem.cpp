#include "core/problem.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline {
namespace {

struct TypeEntry {
  ElementType type;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeEntry, 9> kTypes{{
    {ElementType::float32, "float32", 4},
    {ElementType::float16, "float16", 2},
    {ElementType::bfloat16, "bfloat16", 2},
    {ElementType::float64, "float64", 8},
    {ElementType::int32, "int32", 4},
    {ElementType::int64, "int64", 8},
    {ElementType::uint32, "uint32", 4},
    {ElementType::int8, "int8", 1},
    {ElementType::uint8, "uint8", 1},
}};

const TypeEntry& entry_of(ElementType type) {
  if (!is_element_type(type)) {
    throw Error(fmt::format("there is no element type of value {}", static_cast<unsigned>(type)));
  }
  return kTypes[static_cast<std::size_t>(type)];
}

template <typename Value>
std::string nearest(std::string_view name, const std::vector<std::pair<std::string, Value>>& entries) {
  std::vector<std::string> known;
  for (const auto& [key, value] : entries) {
    known.push_back(key);
  }
  return did_you_mean(name, known);
}

}  // namespace

bool is_element_type(ElementType type) noexcept { return static_cast<std::size_t>(type) < kTypes.size(); }

std::size_t size_of(ElementType type) { return entry_of(type).bytes; }

std::string_view name_of(ElementType type) { return entry_of(type).name; }

std::optional<ElementType> element_type_from(std::string_view name) noexcept {
  for (const TypeEntry& entry : kTypes) {
    if (entry.name == name) {
      return entry.type;
    }
  }
  return std::nullopt;
}

std::int64_t Problem::dimension(std::string_view name) const {
  for (const auto& [key, value] : dimensions) {
    if (key == name) {
      return value;
    }
  }
  throw Error(fmt::format("problem of kernel '{}' has no dimension '{}'{}", kernel, name, nearest(name, dimensions)));
}

ElementType Problem::type(std::string_view name) const {
  for (const auto& [key, value] : types) {
    if (key == name) {
      return value;
    }
  }
  throw Error(fmt::format("problem of kernel '{}' has no element type '{}'{}", kernel, name, nearest(name, types)));
}

std::string Problem::text() const {
  std::string out = kernel;
  for (const auto& [name, value] : dimensions) {
    out += fmt::format(" {}={}", name, value);
  }
  for (const auto& [name, type] : types) {
    out += fmt::format(" {}={}", name, name_of(type));
  }
  return out;
}

}  // namespace pascaline
