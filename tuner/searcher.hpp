#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/space.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// What became of a proposed configuration.
struct Observation {
  TrialStatus status = TrialStatus::ok;
  double time_us = 0;  ///< median; meaningful if status is ok
};

/// A strategy that proposes valid configurations of one problem's space, each at most once.
class Searcher {
 public:
  Searcher() = default;
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;
  virtual ~Searcher() = default;

  /// Up to `count` configurations not proposed before; fewer (or none) once the space is spent.
  [[nodiscard]] virtual std::vector<Config> propose(std::size_t count) = 0;
  /// Told of every outcome, also of configurations it did not propose (the default, results of earlier nights).
  virtual void observe(const Config& config, const Observation& observation) = 0;
};

/// Names `make_searcher` knows, in the order help shows them.
[[nodiscard]] std::vector<std::string_view> searcher_names();

/// `exhaustive` (every valid configuration in the space's order) or `random` (uniform over the valid ones without
/// repetition). `space` must outlive it. Throws Error for an unknown name, and SpaceError if no configuration is
/// valid for this problem and device, naming the constraint that fails most.
[[nodiscard]] std::unique_ptr<Searcher> make_searcher(std::string_view name, const BoundSpace& space,
                                                      std::uint64_t seed);

}  // namespace pascaline
