#pragma once

#include <initializer_list>

#include "runtime/ops/checks.hpp"

namespace pascaline::ops {

/// Packed formats that products take.
inline constexpr std::initializer_list<ElementType> kPackedFormats{
    ElementType::q8_0, ElementType::q4_0,     ElementType::q4_1,     ElementType::q4_k,
    ElementType::q6_k, ElementType::int8_row, ElementType::int4_g128};

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
