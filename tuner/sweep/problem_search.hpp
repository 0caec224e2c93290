#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "tuner/compile/builder.hpp"
#include "tuner/sweep/baseline.hpp"
#include "tuner/sweep/candidate_table.hpp"
#include "tuner/sweep/code_judge.hpp"
#include "tuner/sweep/compiler_axis.hpp"
#include "tuner/sweep/finalist_choice.hpp"
#include "tuner/sweep/proposals.hpp"
#include "tuner/sweep/sweep.hpp"
#include "tuner/sweep/tunable.hpp"

namespace pascaline {

/// How far ahead of the device is compiled: as far as it takes for the device not to wait for compilers, and no more,
/// as each candidate is proposed without knowing of those before it.
class ReadAhead {
 public:
  static constexpr std::size_t kFirst = 4;

  /// How many candidates may be open.
  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  /// The device found nothing ready although so many are open.
  void note_starved(std::size_t open);
  /// A trial is over, and so many candidates are ready.
  void note_trial(std::size_t ready);

 private:
  std::size_t most_ = kFirst;
  bool starved_ = false;  ///< since the last trial
};

/// Notices a kernel, or a toolkit, at fault: nothing was usable and the first configurations all did not compile, for
/// one reason, so the whole space would fail like that.
class HopelessRule {
 public:
  /// Configurations in a row, from the first, that make it hopeless.
  static constexpr int kAfter = 16;

  /// A configuration did not compile; `done`: trials so far, that one included.
  void note_failure(const std::string& reason, int done);
  /// The reason; empty: it is not hopeless.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  int alike_ = 0;
  std::string reason_{};
  std::string why_{};
};

/// The search for one problem's best variant on one kind of device: what is proposed, what is known, what is best. It
/// touches neither device nor database.
class ProblemSearch {
 public:
  /// A trial that took no time of the device: rejected, not compiled, or the same code as another.
  struct ResolvedTrial {
    Trial trial;
    bool duplicate = false;
  };

  /// `tunable` must outlive it. Throws Error if the problem does not fit its space.
  ProblemSearch(const Tunable& tunable, SweepProblem wanted, const DeviceLimits& limits, const SweepOptions& options);

  /// Takes in what the database knows under the same key, and what was on the device when an earlier process ended.
  void recall(const std::vector<Store::Known>& known, const std::vector<Config>& left);

  /// Called while it looks for valid configurations; what it throws ends `propose` and `untried_near`.
  void heed(StopCheck check) { proposals_.heed(std::move(check)); }

  /// Asked, once the search begins, what is known of the problem's configurations beforehand.
  void ask_before_search(Proposals::Knowledge knowledge) { proposals_.ask_before_search(std::move(knowledge)); }

  /// From now on what the searcher proposed is measured in the order of what its machine code promises, and left out
  /// where it cannot win; the searcher learns what it is expected to take.
  void judge_by_code(CodeEstimator estimator) { judge_.emplace(std::move(estimator)); }

  /// See FinalistChoice.
  void prefer_low_energy(EnergyEstimator estimator) { finalists_.prefer_low_energy(std::move(estimator)); }

  /// The next configuration to compile; nothing if there is none to propose (any more, or within the trials allowed).
  /// Throws SpaceError if no configuration is valid.
  [[nodiscard]] std::optional<Config> propose();
  /// Whether the last `propose` gave nothing because the next valid configuration is far away: ask again.
  [[nodiscard]] bool looking() const noexcept { return proposals_.looking() && may_try(); }
  /// Whether nothing more will be proposed.
  [[nodiscard]] bool spent() const noexcept { return proposals_.spent(); }
  /// Whether no trial is expected to be faster than the best by `SweepSearching::min_gain`. Without a time limit the
  /// search proposes nothing more then.
  [[nodiscard]] bool little_left() const noexcept { return proposals_.little_left(); }
  /// Why nothing more is proposed although nothing was usable yet: the reason for which the first configurations all
  /// did not compile. Empty otherwise.
  [[nodiscard]] const std::string& hopeless() const noexcept { return hopeless_.why(); }
  /// Takes a compilation of what was proposed; returns a trial if that settles it.
  [[nodiscard]] std::optional<ResolvedTrial> compiled(const Config& config, Compiled compiled);
  /// Compiled and not measured yet.
  [[nodiscard]] std::size_t ready() const noexcept { return table_.ready().size(); }
  /// Proposed and not settled.
  [[nodiscard]] std::size_t open() const noexcept { return table_.open(); }
  /// See ReadAhead.
  [[nodiscard]] std::size_t ahead() const noexcept { return ahead_.most(); }
  /// Whether what is proposed next depends on what comes of what is open.
  [[nodiscard]] bool learns() const noexcept { return proposals_.learns(); }
  /// Usable times so far, for searches of other problems.
  [[nodiscard]] std::vector<std::pair<Config, double>> times_us() const;
  /// The next one to measure, for a device; nullptr if none is ready.
  [[nodiscard]] const Candidate* take_ready();
  /// Gives back what was taken and will not be measured now.
  void put_back(const Config& config) { table_.put_back(config); }
  /// Learns of a stored trial of a proposed configuration; returns the trials of configurations that were waiting
  /// because they run as the same code.
  [[nodiscard]] std::vector<ResolvedTrial> observe(const Trial& trial, std::int64_t stored_id);

  /// To be proposed after the defaults, before all else, in place of those that are not valid here the nearest one that
  /// is: what won on other shapes, or on other devices. Before the first proposal. Tells of each whether it is
  /// among the first now: not if it was tried before, or nothing near it is valid.
  std::vector<bool> begin_with_winners(const std::vector<Config>& winners);
  /// See Proposals.
  [[nodiscard]] std::vector<Config> untried_near(const std::vector<Config>& centres, std::size_t most) {
    return proposals_.untried_near(centres, most, table_);
  }
  /// See Proposals.
  void try_only(const std::vector<Config>& configs) { proposals_.try_only(configs); }
  /// See Proposals.
  void search_on() { proposals_.search_on(); }

  /// Forgets the time of a configuration that failed in the finals: it is no finalist any more.
  void discard(const Config& config);

  /// What tuning is compared with: the default, or where that is not usable, of the usable ones measured so far the one
  /// nearest to it (`closeness`), which is also proposed as soon as the default is known to fail. That is what an
  /// untuned program runs. Nothing if none is usable.
  [[nodiscard]] std::optional<Config> baseline() const { return baseline_.config(table_); }
  /// Why the default is not usable, for people; empty while it is, or has not been measured.
  [[nodiscard]] const std::string& why_no_default() const noexcept { return baseline_.why_no_default(); }
  /// The usable trial that told a configuration's time, 0 if there is none.
  [[nodiscard]] std::int64_t trial_of(const Config& config) const;
  [[nodiscard]] const Config& best() const { return table_.ranking().begin()->second->config; }
  [[nodiscard]] std::size_t usable() const noexcept { return table_.ranking().size(); }
  /// What one timed launch of a usable configuration takes, with all that belongs to it.
  [[nodiscard]] double launch_s(const Config& config) const { return launch_s_of(config.text()); }
  /// The same of the configuration with that text.
  [[nodiscard]] double launch_s_of(const std::string& config) const;
  /// Time of a usable configuration, as the search measured it; nothing if it was not tried.
  [[nodiscard]] std::optional<double> time_us(const Config& config) const;
  /// Whether more trials are allowed.
  [[nodiscard]] bool may_try() const noexcept { return done() + static_cast<int>(table_.open()) < trials_; }

  /// See FinalistChoice.
  void keep_comparing(std::vector<Config> winners) { finalists_.keep_comparing(std::move(winners)); }
  /// Whom the finals compare (FinalistChoice::all). A binary is missing if it was compiled by an earlier process.
  [[nodiscard]] std::vector<std::pair<Config, std::optional<Binary>>> finalists() const;
  /// Their configurations only.
  [[nodiscard]] std::vector<Config> finalist_configs() const {
    return finalists_.all(table_, baseline(), baseline_.default_config());
  }
  /// Text of the finalists, those of `keep_comparing` aside: finals need not be repeated while it stays.
  [[nodiscard]] std::string finalists_key() const;

  [[nodiscard]] const BoundSpace& bound() const noexcept { return bound_; }
  [[nodiscard]] const SweepProblem& wanted() const noexcept { return wanted_; }
  /// Trials of this run.
  [[nodiscard]] int done() const noexcept { return static_cast<int>(best_history_us_.size()); }
  /// Configurations known from earlier runs.
  struct Reused {
    int all = 0;
    int usable = 0;
  };
  [[nodiscard]] const Reused& reused() const noexcept { return reused_; }
  [[nodiscard]] double best_us() const noexcept { return table_.best_us(); }
  [[nodiscard]] double default_us() const;
  /// Trials to come, at most; fewer if configurations turn out to be known.
  [[nodiscard]] int remaining() const noexcept;
  /// Best time of the first `trials` trials, or of all if there are fewer; 0 if none of them is usable.
  [[nodiscard]] double best_after_us(int trials) const noexcept;

 private:
  static constexpr int kMaxPassedOver = 4;

  [[nodiscard]] bool in_part(std::span<const std::uint16_t> indices) const { return part().holds(indices); }
  [[nodiscard]] SearchedPart part() const;
  void count_valid();
  void begin_with_defaults();
  void begin_with_all();
  void begin_with_portfolio();
  [[nodiscard]] std::size_t most_promising();
  [[nodiscard]] std::optional<CodeJudge::Verdict> cannot_win(const Candidate& candidate) const;
  [[nodiscard]] static ResolvedTrial share(Trial blank, const Candidate& original);
  [[nodiscard]] bool belongs(const Config& config) const;

  const SweepOptions& options_;
  const CompilerAxis* compilers_;  ///< nullptr: there is no choice of them
  SweepProblem wanted_;
  int trials_;  ///< of this run, at most
  BoundSpace bound_;
  Baseline baseline_;
  CandidateTable table_;
  Proposals proposals_;
  FinalistChoice finalists_;
  std::optional<CodeJudge> judge_;
  ReadAhead ahead_;
  HopelessRule hopeless_;
  std::vector<double> best_history_us_;  ///< after each trial
  std::optional<std::uint64_t> valid_;   ///< configurations, counted where the space is small
  Reused reused_;
};

}  // namespace pascaline
