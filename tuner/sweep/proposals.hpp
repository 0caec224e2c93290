#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "core/space/space_part.hpp"
#include "core/util/stop_check.hpp"
#include "tuner/search/searcher.hpp"
#include "tuner/search/stop_rule.hpp"
#include "tuner/sweep/candidate_table.hpp"

namespace pascaline {

/// The part of a space that is searched.
struct SearchedPart {
  SpacePart part{};
  std::size_t parameters = 0;  ///< of the space, the first so many, that tell parts apart

  [[nodiscard]] bool holds(std::span<const std::uint16_t> indices) const {
    return part.holds(indices.first(parameters));
  }
};

/// Chooses the next trials of one problem: first a list (defaults, portfolio, winners of other shapes), then what a
/// searcher proposes.
class Proposals {
 public:
  struct Options {
    std::string searcher{};  ///< empty: nothing but the list is tried
    std::uint64_t seed = 1;
    double min_gain = 0;  ///< see StopRule
    bool ends_with_little_left = false;
  };
  struct Proposal {
    Config config;
    bool searched = false;  ///< by the searcher
  };
  /// Returns the knowledge of the configurations before any is tried.
  using Knowledge = std::function<std::vector<Prior>(const SearchDomain&)>;

  /// `bound` must outlive it.
  Proposals(const BoundSpace& bound, SearchedPart part, Options options);

  /// Called while it looks for valid configurations; what it throws ends `next` and `untried_near`.
  void heed(StopCheck check) { check_ = std::move(check); }
  [[nodiscard]] const StopCheck& check() const noexcept { return check_; }
  /// Asked once, when the searcher begins.
  void ask_before_search(Knowledge knowledge) { knowledge_ = std::move(knowledge); }

  /// About how many trials there will be.
  void expect(int trials) { expected_trials_ = trials; }
  /// Appends to the list.
  void add(Config config) { first_.push_back(std::move(config)); }
  /// In front of it.
  void add_first(Config config) { first_.push_front(std::move(config)); }
  [[nodiscard]] bool lists(const Config& config) const;
  /// Inserts winners into the list after the first `defaults` entries, if the first is `default_config`. A winner that
  /// is not valid here is replaced by the nearest valid configuration. Returns for each whether it is in the list now:
  /// not if the table knows it, or nothing near it is valid.
  std::vector<bool> add_winners(const std::vector<Config>& winners, const Config& default_config, std::size_t defaults,
                                const CandidateTable& table);
  /// At most `most` valid configurations that the table does not have: first the centres (or the nearest valid ones),
  /// then those that differ from a centre in one parameter, then those that differ in two by a step each. Each group
  /// follows the order of the centres.
  [[nodiscard]] std::vector<Config> untried_near(const std::vector<Config>& centres, std::size_t most,
                                                 const CandidateTable& table);
  /// Has these proposed next and then nothing, as if it were spent, until `search_on`.
  void try_only(const std::vector<Config>& configs);
  /// Back to the search, where it was.
  void search_on();

  /// The next one, which may be known already; nothing if there is none now. Throws SpaceError if no configuration is
  /// valid.
  [[nodiscard]] std::optional<Proposal> next();
  /// Tells the searcher of an outcome, when there is one.
  void observe(const Config& config, const Observation& observation);
  /// Nothing more is to be proposed.
  void end() {
    spent_ = true;
    looking_ = false;
  }

  [[nodiscard]] bool spent() const noexcept { return spent_; }
  /// True if the last `next` gave nothing because the next valid configuration is far away: ask again.
  [[nodiscard]] bool looking() const noexcept { return looking_; }
  /// True if no trial is expected to be faster than the best by `min_gain`.
  [[nodiscard]] bool little_left() const noexcept { return little_left_; }
  /// True if what is proposed next depends on what is observed.
  [[nodiscard]] bool learns() const noexcept { return searcher_ == nullptr || searcher_->learns(); }
  /// True if nothing but the list is tried, now or at all.
  [[nodiscard]] bool only_list() const noexcept { return spent_before_ || options_.searcher.empty(); }
  [[nodiscard]] std::size_t listed() const noexcept { return first_.size(); }

 private:
  [[nodiscard]] SearchDomain& domain();
  void begin_search();

  const BoundSpace& bound_;
  SearchedPart part_;
  Options options_;
  int expected_trials_ = 0;
  StopCheck check_{};
  std::deque<Config> first_{};
  std::optional<SearchDomain> domain_{};  ///< made when it is needed
  std::unique_ptr<Searcher> searcher_{};
  Knowledge knowledge_{};
  std::vector<std::pair<Config, Observation>> observed_{};  ///< for the searcher, once there is one
  StopRule stop_rule_;
  bool little_left_ = false;
  bool looking_ = false;
  bool spent_ = false;
  std::optional<bool> spent_before_{};  ///< in `try_only`: whether it was spent when that began
};

}  // namespace pascaline
