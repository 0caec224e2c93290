#pragma once

#include "tuner/search/fresh_points.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {

/// Every valid configuration, in the order of the space where its parameters hang together.
class ExhaustiveSearcher : public Searcher {
 public:
  /// Throws Error if the configurations cannot be numbered.
  explicit ExhaustiveSearcher(const SearchDomain& domain);
  std::vector<Point> propose(std::size_t count) override;
  void observe(const Point& point, const Observation& observation) override;
  [[nodiscard]] bool looking() const noexcept override { return looking_; }
  [[nodiscard]] bool learns() const noexcept override { return false; }

 private:
  const SearchDomain& domain_;
  std::uint64_t next_ = 0;
  bool looking_ = false;
  PointSet known_;  ///< observed
};

/// Uniform over the valid configurations, without repetition.
class RandomSearcher : public Searcher {
 public:
  RandomSearcher(const SearchDomain& domain, std::uint64_t seed) : points_(domain, seed) {}
  std::vector<Point> propose(std::size_t count) override;
  void observe(const Point& point, const Observation& observation) override;
  [[nodiscard]] bool learns() const noexcept override { return false; }

 private:
  FreshPoints points_;
};

}  // namespace pascaline
