#pragma once

#include <cstddef>
#include <vector>

#include "core/elements.hpp"

// Rows that references round as products with packed weights take them (runtime/formats/int8_activations.hpp).
namespace pascaline {

/// Rounds rows of `width` columns to int8, each row or each 32 columns of it with a scale, and gives what the integers
/// stand for; leaves them as they are where a weight of that type takes floats.
void round_rows(std::vector<double>& rows, std::size_t width, ElementType weight);

/// How far each product of such rows with the rows of `matrix` [n, width] may be off where `rows`, before rounding, may
/// be off by `errors`: a value near the middle of two integers is then rounded to the other one. [rows, n].
[[nodiscard]] std::vector<double> rounding_slack(const std::vector<double>& rows, const std::vector<double>& errors,
                                                 std::size_t width, ElementType weight,
                                                 const std::vector<double>& matrix);

/// The products of rows `a` [m, k] with the rows of `b` [n, k]: [m, n].
[[nodiscard]] std::vector<double> product_of_rows(const std::vector<double>& a, const std::vector<double>& b,
                                                  std::size_t k);
/// The same of the rows of `x` after RMSNorm with weights `norm` [k] and `epsilon`, as products with a weight of that
/// type take them: packed ones round what the norm's weights give, before the rows' factors.
[[nodiscard]] std::vector<double> normed_products(const std::vector<double>& x, const std::vector<double>& norm,
                                                  double epsilon, const std::vector<double>& matrix,
                                                  ElementType weight);
/// By how much float32 sums may make such a product with a packed weight differ, in parts of the root mean square of
/// its row.
[[nodiscard]] double error_of_packed_sums(std::size_t k) noexcept;

}  // namespace pascaline
