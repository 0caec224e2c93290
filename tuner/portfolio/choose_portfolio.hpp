#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace pascaline {

/// What a configuration takes for a problem where that is not known.
inline constexpr double kUnknownTime = std::numeric_limits<double>::infinity();

/// Times of configurations for problems. All configurations are numbered alike in every row.
struct TimeMatrix {
  struct Row {
    std::vector<double> time_us;  ///< of each configuration; `kUnknownTime` where it is not known
    double best_us = 0;           ///< the least known of the problem, of these configurations or of others
    std::size_t group = 0;        ///< the case the row belongs to: a card, a compiler, an assumption
  };
  std::size_t configs = 0;
  std::vector<Row> rows;  ///< of each problem in each case
};

/// How near the best of a portfolio comes to the best known, over the rows of a matrix.
struct PortfolioQuality {
  double mean = 1;            ///< geometric, of all rows
  double worst_group = 1;     ///< the greatest geometric mean of a group's rows
  double worst = 1;           ///< the greatest of a row
  std::size_t worst_row = 0;  ///< which that is
  std::size_t uncovered = 0;  ///< rows for which no time of a member is known; each counts as its slowest known time
};

[[nodiscard]] PortfolioQuality portfolio_quality(const TimeMatrix& times, const std::vector<std::size_t>& members);

/// A portfolio, the most useful configuration first.
struct PortfolioChoice {
  std::vector<std::size_t> members;       ///< the given ones, then the chosen ones
  std::vector<PortfolioQuality> quality;  ///< of the given ones, and after each that was chosen
};

/// Chooses up to `most` configurations beside those `given` so that the mean of `mean` and `worst_group`, as
/// logarithms, is least: greedily, then exchanging members while that helps, then in greedy order. Ends before `most`
/// when no configuration improves it by a factor of 1.0005. Of equal ones the first is taken. Throws Error if the
/// matrix has no row.
[[nodiscard]] PortfolioChoice choose_portfolio(const TimeMatrix& times, const std::vector<std::size_t>& given,
                                               std::size_t most);

}  // namespace pascaline
