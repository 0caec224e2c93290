#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/problem.hpp"

namespace pascaline {

/// IEEE 754 binary16 nearest to `value`, ties to even; overflow gives infinity.
[[nodiscard]] std::uint16_t half_from_float(float value) noexcept;
/// Exact value of a binary16.
[[nodiscard]] float float_from_half(std::uint16_t bits) noexcept;
/// bfloat16 nearest to `value`, ties to even.
[[nodiscard]] std::uint16_t bfloat_from_float(float value) noexcept;
[[nodiscard]] float float_from_bfloat(std::uint16_t bits) noexcept;

/// The elements as float64, in the calling thread; `to` has as many. Throws Error as `widen` does.
void widen_into(std::span<double> to, ElementType type, std::span<const std::byte> bytes);
/// The elements as float64, by all processors. Throws Error for types whose elements have no bytes of their own.
[[nodiscard]] std::vector<double> widen(ElementType type, std::span<const std::byte> bytes);

}  // namespace pascaline
