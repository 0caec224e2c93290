#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "core/util/stop_check.hpp"
#include "tuner/sweep/candidate_table.hpp"

namespace pascaline {

/// What a problem's tuning is compared with: the default or, where that is not usable, the usable configuration nearest
/// to it (`closeness`), which an untuned program would run.
class Baseline {
 public:
  /// `bound` must outlive it.
  explicit Baseline(const BoundSpace& bound) : bound_(bound), default_config_(bound.default_config()) {}

  [[nodiscard]] const Config& default_config() const noexcept { return default_config_; }
  /// The default is not usable, with the reason; an empty one: it is.
  void lose_default(std::string why) { why_no_default_ = std::move(why); }
  /// Why the default is not usable, for display; empty while it is, or has not been measured.
  [[nodiscard]] const std::string& why_no_default() const noexcept { return why_no_default_; }

  /// Once the default is lost: the next configuration to try in its place, of those that an untuned program would try
  /// one after the other until one is usable. Nothing if there is none to try now.
  [[nodiscard]] std::optional<Config> next_stand_in(const CandidateTable& table, const StopCheck& check);
  /// A configuration is usable.
  void note_usable(const Config& usable);
  /// A configuration is not usable any more.
  void note_discarded(const Config& discarded, const CandidateTable& table);
  /// Nothing if neither is usable, or the default may still be.
  [[nodiscard]] std::optional<Config> config(const CandidateTable& table) const;

 private:
  const BoundSpace& bound_;
  Config default_config_;
  std::string why_no_default_{};
  std::vector<Config> no_stand_in_{};  ///< nearer to the default than what is tried next, and not usable
  std::optional<Config> stand_in_{};   ///< the one tried now
  std::optional<std::pair<std::vector<std::size_t>, Config>> nearest_{};  ///< usable one, behind its `closeness`
};

}  // namespace pascaline
