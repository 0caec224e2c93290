#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "tuner/search/coordinates.hpp"
#include "tuner/search/fresh_points.hpp"
#include "tuner/search/gaussian_process.hpp"
#include "tuner/search/searcher.hpp"

namespace pascaline {

/// Model-based search (Bayesian optimisation): a Gaussian process over the logarithm of the time, with the priors as
/// its mean, proposes the configuration of the least lower confidence bound (Srinivas et al., "Gaussian Process
/// Optimization in the Bandit Setting", ICML 2010), less where failures are near. Proposals that are still out count as
/// if they had turned out as expected ("kriging believer", Ginsbourger et al., 2010).
class ModelSearcher : public Searcher {
 public:
  ModelSearcher(const SearchDomain& domain, const SearchOptions& options);
  std::vector<Point> propose(std::size_t count) override;
  void observe(const Point& point, const Observation& observation) override;
  /// Of the logarithm of the time, by the process (Jones et al., "Efficient Global Optimization of Expensive Black-Box
  /// Functions", 1998), of the most promising candidate; less where failures are near.
  /// It is computed when it is asked for.
  [[nodiscard]] std::optional<double> expected_improvement() const override;

 private:
  static constexpr std::size_t kMaxWhole = 12'000;  ///< configurations of a space that is a candidate whole

  struct Seen {
    Point point;
    double log_time = 0;
    bool failed = false;
  };
  struct Pending {
    Point point;
    std::optional<std::size_t> believed;  ///< the posterior's observation that stands for it
  };
  struct Candidate {
    Point point;
    double before = 0;  ///< what the priors expect
    float near = 0;     ///< weight of the observations near it
    float failed = 0;   ///< of the failures among them
  };

  [[nodiscard]] std::optional<Point> next();
  [[nodiscard]] std::optional<Point> spread_out();
  [[nodiscard]] std::optional<Point> best_by_model();
  [[nodiscard]] std::optional<std::size_t> least_bound();
  [[nodiscard]] std::vector<double> lower_bounds();
  [[nodiscard]] double risk(const Candidate& candidate) const;
  [[nodiscard]] double largest_improvement() const;
  void believe();
  void take_in();
  void take_in(std::size_t index);
  void revise(std::size_t believed, std::size_t index);
  void rebuild();
  void choose_candidates();
  void narrow_candidates();
  void add_neighbours(const Point& point, Reach reach);
  [[nodiscard]] std::size_t candidate(const Point& point);
  void weigh(Candidate& candidate, std::span<const float> row, std::size_t from, std::size_t to) const;
  [[nodiscard]] std::vector<std::size_t> selection(std::size_t most);
  [[nodiscard]] std::vector<std::size_t> by_time() const;
  [[nodiscard]] std::vector<float> row(const Point& point) const;
  [[nodiscard]] double before(const Point& point) const;
  [[nodiscard]] double value(const Seen& seen) const;
  [[nodiscard]] double apart(std::span<const float> a, std::span<const float> b) const;

  FreshPoints points_;
  Coordinates coordinates_;
  std::vector<Prior> priors_;
  std::vector<double> prior_centres_;
  std::vector<CoordinateKind> kinds_;
  std::size_t plain_ = 0;  ///< coordinates that are no prior's
  bool whole_ = false;     ///< the candidates are all there are
  Covariance covariance_;
  std::vector<Seen> observed_;
  std::vector<std::vector<float>> observed_rows_;
  std::size_t usable_ = 0;
  std::vector<Pending> pending_;

  std::vector<Point> pool_;  ///< drawn once, of a space too large to be a candidate whole
  std::vector<Candidate> candidates_;
  Rows candidate_rows_{0};
  std::unordered_map<Point, std::size_t, PointHash> index_;  ///< of candidates
  std::size_t weighed_ = 0;                                  ///< observations that candidates know of
  bool any_failed_ = false;

  std::optional<Posterior> posterior_;
  std::vector<double> expected_;
  std::vector<double> deviations_;
  std::vector<std::size_t> waiting_;           ///< of `observed_`: not in the posterior yet
  bool by_model_ = false;                      ///< the last proposal was
  std::optional<Point> by_model_point_{};      ///< what it was
  double least_at_proposal_ = 0;               ///< `least_log_`
  mutable std::optional<double> improvement_;  ///< expected at the last proposal, once it was asked for
  double least_log_ = 0;                       ///< of the usable ones, if there are any
  std::size_t next_fit_ = 0;                   ///< usable observations at which the covariance is fitted again
};

}  // namespace pascaline
