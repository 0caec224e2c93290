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
  std::size_t bits;
};

constexpr std::array<TypeEntry, 17> kTypes{{
    {ElementType::float32, "float32", 32},
    {ElementType::float16, "float16", 16},
    {ElementType::bfloat16, "bfloat16", 16},
    {ElementType::float64, "float64", 64},
    {ElementType::int32, "int32", 32},
    {ElementType::int64, "int64", 64},
    {ElementType::uint32, "uint32", 32},
    {ElementType::int8, "int8", 8},
    {ElementType::uint8, "uint8", 8},
    {ElementType::q8_0, "q8_0", 8},
    {ElementType::q4_0, "q4_0", 4},
    {ElementType::q4_1, "q4_1", 4},
    {ElementType::q4_k, "q4_k", 4},
    {ElementType::q6_k, "q6_k", 6},
    {ElementType::int8_row, "int8_row", 8},
    {ElementType::int4_g128, "int4_g128", 4},
    {ElementType::float16x, "float16x", 16},
}};

const TypeEntry& entry_of(ElementType type) {
  if (!is_element_type(type)) {
    throw Error(fmt::format("there is no element type with value {}", static_cast<unsigned>(type)));
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

bool is_matrix_format(ElementType type) noexcept { return is_element_type(type) && type > ElementType::uint8; }

bool is_packed_format(ElementType type) noexcept { return is_matrix_format(type) && type != ElementType::float16x; }

std::size_t bits_of(ElementType type) { return entry_of(type).bits; }

std::size_t size_of(ElementType type) {
  const TypeEntry& entry = entry_of(type);
  if (is_packed_format(type)) {
    throw Error(fmt::format("values of {} share scales, so that one by itself has no size", entry.name));
  }
  if (entry.bits % 8 != 0) {
    throw Error(fmt::format("an element of {} has {} bits, which are no whole bytes", entry.name, entry.bits));
  }
  return entry.bits / 8;
}

std::size_t bytes_of(ElementType type, std::size_t count) {
  if (is_matrix_format(type)) {
    throw Error(fmt::format("{} is a format of matrices: its bytes follow from rows and columns", name_of(type)));
  }
  return packed_bytes(bits_of(type), count);
}

MatrixLayout layout_of(ElementType type) {
  constexpr std::int64_t kRows = 32;
  constexpr std::int64_t kUnit = 16 * kRows;        // 16 bytes of each row
  constexpr std::int64_t kFloat16xHeadBytes = 128;  // a cache line of a GPU, so that rows lie in lines as without it
  switch (type) {
    case ElementType::q8_0:
      return {kRows, 64, 4 * kUnit + 4 * kRows, 0};
    case ElementType::q4_0:
      return {kRows, 64, 2 * kUnit + 4 * kRows, 0};
    case ElementType::q4_1:
      return {kRows, 64, 2 * kUnit + 8 * kRows, 0};
    case ElementType::q4_k:
      return {kRows, 256, 9 * kUnit, 0};
    case ElementType::q6_k:
      return {kRows, 256, 13 * kUnit + 2 * kRows, 0};
    case ElementType::int8_row:
      return {kRows, 64, 4 * kUnit, 4 * kRows};
    case ElementType::int4_g128:
      return {kRows, 128, 4 * kUnit + 4 * kRows, 0};
    case ElementType::float16x:
      return {1, 1, 2, 0, kFloat16xHeadBytes};
    default:
      return {1, 1, static_cast<std::int64_t>(size_of(type)), 0};
  }
}

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
