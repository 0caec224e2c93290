#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/problem.hpp"
#include "core/space/space.hpp"

namespace pascaline {

/// IEEE 754 binary16 nearest to `value`, ties to even; overflow gives infinity.
[[nodiscard]] std::uint16_t half_from_float(float value) noexcept;
/// Exact value of a binary16.
[[nodiscard]] float float_from_half(std::uint16_t bits) noexcept;
/// bfloat16 nearest to `value`, ties to even.
[[nodiscard]] std::uint16_t bfloat_from_float(float value) noexcept;
[[nodiscard]] float float_from_bfloat(std::uint16_t bits) noexcept;

/// A number that looks random, the same for the same state (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
[[nodiscard]] std::uint64_t splitmix(std::uint64_t state) noexcept;

/// `count` elements for an argument, drawn by a counter-based generator (SplitMix64): the same `seed` gives the same
/// bytes on every machine. `Fill::none` and `Fill::zero` give zeros; of `Fill::row_ramp` it is one row.
[[nodiscard]] std::vector<std::byte> draw_elements(ElementType type, std::size_t count, Fill fill, double low,
                                                   double high, std::uint64_t seed);

/// The elements as float64, in the calling thread; `to` has as many. Throws Error as `widen` does.
void widen_into(std::span<double> to, ElementType type, std::span<const std::byte> bytes);
/// The elements as float64, by all processors. Throws Error for types whose elements have no bytes of their own.
[[nodiscard]] std::vector<double> widen(ElementType type, std::span<const std::byte> bytes);

}  // namespace pascaline
