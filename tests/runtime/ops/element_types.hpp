#pragma once

#include "core/problem.hpp"

namespace pascaline::testing {

inline constexpr ElementType kFloat = ElementType::float32;
inline constexpr ElementType kHalf = ElementType::float16;
inline constexpr ElementType kInt = ElementType::int32;

}  // namespace pascaline::testing
