#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/trial.hpp"
#include "tuner/search/search_domain.hpp"

namespace pascaline {

/// What became of a proposed configuration.
struct Observation {
  TrialStatus status = TrialStatus::ok;
  double time_us = 0;  ///< median; meaningful if `has_time(status)`
};

/// A strategy that proposes valid configurations of one problem's space, each at most once. It never waits for results:
/// what was proposed and not observed yet is taken into account as well as may be.
class Searcher {
 public:
  Searcher() = default;
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;
  virtual ~Searcher() = default;

  /// Up to `count` configurations neither proposed nor observed before; fewer (or none) once the space is spent, or
  /// where it is still looking.
  [[nodiscard]] virtual std::vector<Point> propose(std::size_t count) = 0;
  /// Whether the last call gave fewer because the next valid configuration is far away: the next call looks on. So
  /// whoever proposes can do other things meanwhile.
  [[nodiscard]] virtual bool looking() const noexcept { return false; }
  /// Told of every outcome, also of configurations it did not propose (the default, results of earlier nights).
  virtual void observe(const Point& point, const Observation& observation) = 0;
  /// Whether what is observed changes what is proposed; if not, nothing is lost by proposing far ahead.
  [[nodiscard]] virtual bool learns() const noexcept { return true; }
  /// By what share of the best time the next trial is expected to be faster than it, at most, as it looked at the last
  /// proposal; nothing where that is not known.
  [[nodiscard]] virtual std::optional<double> expected_improvement() const { return std::nullopt; }
};

/// What is known of configurations before any is tried: a prediction of the logarithm of the time, up to a constant.
struct Prior {
  std::function<double(const Point&)> log_time;
  /// How far its differences are believed: 1 as they are, 0 as no more than a hint whose size is to be learned.
  double trust = 1;
};

struct SearchOptions {
  std::uint64_t seed = 1;
  int expected_trials = 200;  ///< about how many will be made: what cools down does so over these
  std::vector<Prior> priors;  ///< for the searchers with a model
};

/// A searcher and one line about it.
struct SearcherName {
  std::string_view name;
  std::string_view summary;
};

/// Those `make_searcher` knows, in the order help shows them; the first is the default.
[[nodiscard]] const std::vector<SearcherName>& searcher_names();

/// `domain` must outlive the searcher. Throws Error for an unknown name or a space too large to be searched
/// exhaustively, and SpaceError if no configuration is valid, naming the constraint that fails most.
[[nodiscard]] std::unique_ptr<Searcher> make_searcher(std::string_view name, const SearchDomain& domain,
                                                      const SearchOptions& options);

}  // namespace pascaline
