#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "tuner/static_model/energy_estimate.hpp"
#include "tuner/sweep/candidate_table.hpp"
#include "tuner/sweep/compiler_axis.hpp"

namespace pascaline {

/// Chooses whom finals compare, of the usable configurations of a table.
class FinalistChoice {
 public:
  /// Limit of a finalist that is chosen for its energy: its time relative to the fastest.
  static constexpr double kMaxSlowdown = 1.1;
  /// Fewest finalists, if there are so many, that are the fastest whatever `prefer_low_energy` says.
  static constexpr int kMinFastest = 5;

  /// `most` finalists besides the baseline; `compilers` as of the table.
  FinalistChoice(int most, const CompilerAxis* compilers) : most_(most), compilers_(compilers) {}

  /// From now on half of the finalists after the first `kMinFastest` are chosen for the lowest expected energy instead
  /// of speed, among configurations up to `kMaxSlowdown` times as slow as the fastest.
  void prefer_low_energy(EnergyEstimator estimator);
  /// Winners of earlier finals: finalists, too, next to the best, as long as they are usable.
  void keep_comparing(std::vector<Config> winners) { standing_ = std::move(winners); }

  /// The best, and such as `prefer_low_energy` says; of several compilers each one's best and its default; and behind
  /// them the baseline.
  [[nodiscard]] std::vector<Config> found(const CandidateTable& table, const std::optional<Config>& baseline,
                                          const Config& default_config) const;
  /// Those and what `keep_comparing` says.
  [[nodiscard]] std::vector<Config> all(const CandidateTable& table, const std::optional<Config>& baseline,
                                        const Config& default_config) const;

  /// Configurations whose binaries will be wanted.
  [[nodiscard]] std::size_t kept_binaries() const { return static_cast<std::size_t>(most_) + 8; }

 private:
  [[nodiscard]] const std::vector<Config>& by_energy(const CandidateTable& table) const;

  int most_;
  const CompilerAxis* compilers_;
  EnergyEstimator energy_{};
  mutable std::pair<int, std::vector<Config>> low_energy_{-1, {}};  ///< by energy, of the table after so many changes
  std::vector<Config> standing_{};
};

}  // namespace pascaline
