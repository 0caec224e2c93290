#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "db/exchange/recorded_space.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {

/// A recorded space to be searched: exactly its configurations, and what became of each. Const use is thread-safe.
class RecordedDomain {
 public:
  /// Throws Error if the space has no configuration that is `ok`.
  explicit RecordedDomain(const RecordedSpace& space);

  [[nodiscard]] const SearchDomain& domain() const noexcept { return domain_; }
  /// The recorded trial of a configuration of the domain.
  [[nodiscard]] const RecordedTrial& trial(const Point& point) const;
  [[nodiscard]] Observation observation(const Point& point) const;

  [[nodiscard]] const std::vector<RecordedTrial>& trials() const noexcept { return trials_; }
  /// Times of the `ok` ones, ascending, in microseconds.
  [[nodiscard]] const std::vector<double>& times_us() const noexcept { return times_us_; }
  [[nodiscard]] double optimum_us() const noexcept { return times_us_.front(); }
  /// The lowest median of an `ok` one's recorded launches; nothing unless those of each were recorded, more than three.
  [[nodiscard]] const std::optional<double>& best_median_us() const noexcept { return best_median_us_; }
  /// Median of a configuration's recorded launches, in microseconds; 0 if there are none, or it is not `ok`.
  [[nodiscard]] double median_us(const Point& point) const { return medians_us_[index_.at(point)]; }

 private:
  std::vector<RecordedTrial> trials_;
  std::vector<double> times_us_;
  std::vector<double> medians_us_;  ///< of each trial's launches, 0 where none were recorded
  std::optional<double> best_median_us_{};
  SearchDomain domain_;
  std::unordered_map<Point, std::size_t, PointHash> index_;
};

}  // namespace pascaline
