#pragma once

#include "tuner/search/searcher.hpp"

namespace pascaline {

/// When a search has little left to gain: where the searcher expects of no trial to be faster than the best by more
/// than a share of it, and that many times in a row, as a fit of its model may change its mind.
class StopRule {
 public:
  /// `min_gain`: the share; 0: a search goes on as long as there is something to propose.
  explicit StopRule(double min_gain) : min_gain_(min_gain) {}

  /// Asked once after each proposal.
  [[nodiscard]] bool is_reached(const Searcher& searcher) {
    if (!(min_gain_ > 0)) {
      return false;  // what it takes to know is spared
    }
    const auto gain = searcher.expected_improvement();
    in_a_row_ = gain && *gain < min_gain_ ? in_a_row_ + 1 : 0;
    return in_a_row_ >= kInARow;
  }

  /// Proposals that expect little.
  static constexpr int kInARow = 8;

 private:
  double min_gain_;
  int in_a_row_ = 0;
};

}  // namespace pascaline
