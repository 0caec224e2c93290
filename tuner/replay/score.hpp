#pragma once

#include <vector>

#include "tuner/replay/recorded_domain.hpp"
#include "tuner/replay/replay.hpp"

namespace pascaline {

/// Performance over time against calculated random search, of one space (Willemsen et al., "A Methodology for Comparing
/// Optimization Algorithms for Auto-Tuning", Future Generation Computer Systems 2024): 0 is random search, 1 the
/// optimum at once. Without costs in the record, every evaluation costs the same.
class ScoreScale {
 public:
  static constexpr int kPoints = 50;

  explicit ScoreScale(const RecordedDomain& space);

  /// What the runs are to be given, in the record's costs, in milliseconds.
  [[nodiscard]] double run_budget_ms() const noexcept { return 1.1 * budget_ms_; }
  /// What evaluating a configuration costs on this scale.
  [[nodiscard]] double cost_ms(const RecordedTrial& trial) const;
  /// P at `kPoints` equidistant points of the budget, from the repeats of one searcher.
  [[nodiscard]] std::vector<double> curve(const std::vector<ReplayRun>& runs) const;
  /// Best time that random search is expected to have found by then, in microseconds.
  [[nodiscard]] double random_us(double time_ms) const;

 private:
  [[nodiscard]] std::size_t draws_to(double share) const;
  [[nodiscard]] double expected_us(double draws) const;
  [[nodiscard]] double found_us(const std::vector<ReplayRun>& runs, double time_ms) const;
  void interpolate();

  std::vector<double> descending_us_;
  std::vector<double> ascending_us_;
  bool costs_ = false;
  double draw_ms_ = 1;
  double start_ms_ = 0;
  double budget_ms_ = 0;
  std::vector<double> knots_;   ///< numbers of draws
  std::vector<double> values_;  ///< of random search there
  std::vector<double> slopes_;
};

}  // namespace pascaline
