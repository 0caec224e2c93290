#include "core/element_type.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace pascaline {

static_assert([] {
  for (std::size_t i = 0; i < kElementTypes.size(); ++i) {
    if (kElementTypes[i].type != static_cast<ElementType>(i)) {
      return false;
    }
  }
  return true;
}());

std::string names_of(std::span<const FormatTraits> types) {
  std::string names;
  for (const FormatTraits& type : types) {
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

const FormatTraits& traits_of(ElementType type) {
  if (!is_element_type(type)) {
    throw Error(fmt::format("no element type has the value {}", static_cast<unsigned>(type)));
  }
  return kElementTypes[static_cast<std::size_t>(type)];
}

std::size_t bits_of(ElementType type) { return traits_of(type).bits; }

std::size_t size_of(ElementType type) {
  const FormatTraits& traits = traits_of(type);
  if (is_packed_format(type)) {
    throw Error(fmt::format("values of {} share scales, so that a single one has no size", traits.name));
  }
  return traits.bits / 8;
}

std::size_t bytes_of(ElementType type, std::size_t count) {
  if (is_matrix_format(type)) {
    throw Error(fmt::format("{} is a format of matrices: its bytes follow from rows and columns", name_of(type)));
  }
  return packed_bytes(bits_of(type), count);
}

MatrixLayout layout_of(ElementType type) { return traits_of(type).layout; }

std::string_view name_of(ElementType type) { return traits_of(type).name; }

std::optional<ElementType> element_type_from(std::string_view name) noexcept {
  const auto* const found = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                         [name](const FormatTraits& traits) { return traits.name == name; });
  return found == kElementTypes.end() ? std::nullopt : std::optional(found->type);
}

}  // namespace pascaline
