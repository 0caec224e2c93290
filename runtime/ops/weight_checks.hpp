#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

#include "runtime/ops/checks.hpp"

namespace pascaline::ops {

template <ElementType... types>
inline constexpr std::initializer_list<ElementType> kTypeList{types...};
/// A list of types with all packed formats after them.
template <ElementType... before, std::size_t... packed>
constexpr std::initializer_list<ElementType> and_packed(std::index_sequence<packed...> /*numbers*/) noexcept {
  return kTypeList<before..., packed_formats()[packed].type...>;
}

using PackedNumbers = std::make_index_sequence<packed_formats().size()>;
/// Packed formats, all of which products take, and all types that tables of rows may have.
inline constexpr std::initializer_list<ElementType> kPackedFormats = and_packed<>(PackedNumbers());
inline constexpr std::initializer_list<ElementType> kTableTypes =
    and_packed<ElementType::float32, ElementType::float16, ElementType::bfloat16, ElementType::float16x>(
        PackedNumbers());

/// A linear layer's weight [n, k], of any type that products take.
inline void check_weight(const Checks& check, Operand weight, Extent n, Extent k) {
  if (is_packed_format(weight.tensor->type)) {
    check.dense(weight, kPackedFormats, {n, k});
  } else {
    check.dense(weight, {ElementType::float32, ElementType::float16, ElementType::bfloat16, ElementType::float16x},
                {n, k});
  }
}

}  // namespace pascaline::ops
