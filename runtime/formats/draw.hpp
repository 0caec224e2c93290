#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/problem.hpp"
#include "core/space/space.hpp"

namespace drawing {
struct Plan;  // kernel_templates/inputs/draw.cuh, which installations have as data alone
}

namespace pascaline {

/// Fills a matrix [rows, columns], or a buffer of as many elements, with numbers: `Fill::none` and `Fill::zero` zeros;
/// `Fill::uniform` numbers from `low` to `high`; `Fill::normal` numbers of the mean `low` and the standard deviation
/// `high`, at most six of these away; `Fill::ramp` equal steps from `low` to `high`, and `Fill::row_ramp` those in each
/// row; `Fill::constant` the number `low`; `Fill::sorted` random numbers in ascending order from `low` to `high`;
/// `Fill::permutation` the whole numbers from `low` on, as many as elements, shuffled. Integers are rounded down. In
/// packed formats values are random integers with random scales, from about `low` to `high`; in float16x as in other
/// types, with an exponent width and a bias by the seed.
struct DrawnMatrix {
  ElementType type = ElementType::float32;
  std::int64_t rows = 0;
  std::int64_t columns = 1;
  Fill fill = Fill::uniform;
  double low = -1;
  double high = 1;
  std::uint64_t seed = 0;
};

/// Bytes that the matrix takes.
[[nodiscard]] std::size_t bytes_of(const DrawnMatrix& matrix);

/// Draws on the processor, by all its threads. The same matrix is the same bytes on every machine, and on every device
/// that has `plan_of`'s result drawn. `to`, aligned to 16 bytes, has `bytes_of(matrix)`; throws Error otherwise.
void draw_into(std::span<std::byte> to, const DrawnMatrix& matrix);
/// The same for a device; its memory has `bytes_of(matrix)`, aligned to 16. With 0 units all of it is 0, but for the
/// header of float16x.
[[nodiscard]] drawing::Plan plan_of(const DrawnMatrix& matrix);

[[nodiscard]] std::vector<std::byte> draw_matrix(const DrawnMatrix& matrix);
[[nodiscard]] std::vector<std::byte> draw_matrix(ElementType type, std::int64_t rows, std::int64_t columns, Fill fill,
                                                 double low, double high, std::uint64_t seed);
/// One row. Throws Error for formats of matrices.
[[nodiscard]] std::vector<std::byte> draw_elements(ElementType type, std::size_t count, Fill fill, double low,
                                                   double high, std::uint64_t seed);

/// A number that looks random, the same for the same state, as `drawing::splitmix`.
[[nodiscard]] std::uint64_t splitmix(std::uint64_t state) noexcept;

}  // namespace pascaline
