#pragma once

#include <span>
#include <vector>

namespace pascaline {

/// Rank of each value, 1 the smallest; equal ones share the mean of their ranks.
[[nodiscard]] std::vector<double> ranks_of(std::span<const double> values);

/// Spearman's rank correlation of two lists of equal length, ties by mean ranks; 0 where one is constant or has fewer
/// than two values. Throws Error if the lengths differ or a value is NaN.
[[nodiscard]] double rank_correlation(std::span<const double> a, std::span<const double> b);

/// Share of the best `sought` (0 … 1; one at least) of `actual` that lies in the best `kept` (one at least) of
/// `predicted`; small is good. Throws as `rank_correlation`; 0 of empty lists.
[[nodiscard]] double share_found(std::span<const double> actual, std::span<const double> predicted, double sought,
                                 double kept);

}  // namespace pascaline
