#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "tuner/search/fresh_points.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {

/// Simulated annealing (Kirkpatrick et al., "Optimization by Simulated Annealing", Science 1983) on the ratio of times:
/// a random neighbour is accepted if it is faster, or with a probability that falls as the search goes on. Where every
/// neighbour is known it starts again at a random point.
class AnnealingSearcher : public Searcher {
 public:
  AnnealingSearcher(const SearchDomain& domain, const SearchOptions& options);
  std::vector<Point> propose(std::size_t count) override;
  void observe(const Point& point, const Observation& observation) override;

 private:
  [[nodiscard]] std::optional<Point> step();

  FreshPoints points_;
  int expected_trials_;
  int observed_ = 0;
  std::optional<std::pair<Point, double>> here_;
};

/// Local search with restarts: the neighbours of a point in random order, moving to the first that is faster; from a
/// local optimum on to a random point (multi-start, first improvement).
class LocalSearcher : public Searcher {
 public:
  LocalSearcher(const SearchDomain& domain, const SearchOptions& options);
  std::vector<Point> propose(std::size_t count) override;
  void observe(const Point& point, const Observation& observation) override;

 private:
  void surround(const Point& point);
  [[nodiscard]] std::optional<Point> step();

  FreshPoints points_;
  std::optional<std::pair<Point, double>> here_;
  std::deque<Point> around_;  ///< neighbours not tried yet
  std::size_t pending_ = 0;   ///< proposed and not observed
};

/// Genetic algorithm, steady-state: children of two parents chosen by tournament, by uniform crossover and mutation;
/// a child takes the place of the slowest of the population (Goldberg and Deb, "A Comparative Analysis of Selection
/// Schemes", 1991). Children that are not valid or not new are mutated further.
class GeneticSearcher : public Searcher {
 public:
  GeneticSearcher(const SearchDomain& domain, const SearchOptions& options);
  std::vector<Point> propose(std::size_t count) override;
  void observe(const Point& point, const Observation& observation) override;

 private:
  [[nodiscard]] const Point& parent();
  [[nodiscard]] std::optional<Point> child();

  FreshPoints points_;
  std::vector<std::pair<double, Point>> population_;
  std::size_t begun_ = 0;
};

}  // namespace pascaline
