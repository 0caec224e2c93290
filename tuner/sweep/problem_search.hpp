#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "db/store.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/search/searcher.hpp"
#include "tuner/search/stop_rule.hpp"
#include "tuner/static_model/energy_estimate.hpp"
#include "tuner/sweep/code_judge.hpp"
#include "tuner/sweep/compiler_axis.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

/// The search for one problem's best variant on one kind of device: what is proposed, what is known, what is best. It
/// touches neither device nor database.
class ProblemSearch {
 public:
  /// A compiled configuration that is worth the device's time.
  struct Candidate {
    Config config;
    Binary binary;
    std::string run_key;
    int passed_over = 0;  ///< for ones whose code promises more
  };
  /// A trial that took no time of the device: rejected, not compiled, or the same code as another.
  struct ResolvedTrial {
    Trial trial;
    bool duplicate = false;
  };

  /// `space` must outlive it. Throws Error if the problem does not fit the space.
  /// `compilers`, which must outlive it: those that the space has among its parameters (CompilerAxis::searched);
  /// nullptr for a space without.
  ProblemSearch(const Space& space, SweepProblem wanted, const DeviceLimits& limits, const SweepOptions& options,
                const CompilerAxis* compilers = nullptr);

  /// Takes in what the database knows under the same key, and what was on the device when an earlier process ended.
  void recall(const std::vector<Store::Known>& known, const std::vector<Config>& left);

  /// Called while it looks for valid configurations; what it throws ends `propose` and `untried_near`.
  void heed(StopCheck check) { check_ = std::move(check); }

  /// Asked, once the search begins, what is known of the problem's configurations beforehand.
  using Knowledge = std::function<std::vector<Prior>(const SearchDomain&)>;
  void ask_before_search(Knowledge knowledge) { knowledge_ = std::move(knowledge); }

  /// From now on what the searcher proposed is measured in the order of what its machine code promises, and left out
  /// where it cannot win; the searcher learns what it is expected to take.
  void judge_by_code(CodeEstimator estimator) { judge_.emplace(std::move(estimator)); }

  /// How many times as slow as the fastest a finalist is at most that was chosen for its energy.
  static constexpr double kSlowestThrifty = 1.1;
  /// Fewest finalists, if there are so many, that are the fastest whatever `choose_thrifty` says.
  static constexpr int kFewestFastest = 5;
  /// From now on half of the finalists, of those behind the first `kFewestFastest`, are not the fastest but, of those
  /// up to `kSlowestThrifty` times as slow, the ones that are expected to take least energy.
  void choose_thrifty(EnergyEstimator estimator) {
    energy_ = std::move(estimator);
    ++rankings_;
  }

  /// The next configuration to compile; nothing if there is none to propose (any more, or within the trials allowed).
  /// Throws SpaceError if no configuration is valid.
  [[nodiscard]] std::optional<Config> propose();
  /// Whether the last `propose` gave nothing because the next valid configuration is far away: ask again.
  [[nodiscard]] bool looking() const noexcept { return looking_; }
  /// Whether nothing more will be proposed.
  [[nodiscard]] bool spent() const noexcept { return spent_; }
  /// Whether no trial is expected to be faster than the best by `SweepOptions::min_gain`; without a limit of time
  /// nothing more is proposed then.
  [[nodiscard]] bool little_left() const noexcept { return little_left_; }
  /// Why nothing more is proposed although nothing was usable yet: the reason for which the first configurations all
  /// did not compile. Empty otherwise.
  [[nodiscard]] const std::string& hopeless() const noexcept { return hopeless_; }
  /// Configurations in a row, from the first, that make it hopeless.
  static constexpr int kHopelessAfter = 16;
  /// Takes a compilation of what was proposed; returns a trial if that settles it.
  [[nodiscard]] std::optional<ResolvedTrial> compiled(const Config& config, Compiled compiled);
  /// Compiled and not measured yet.
  [[nodiscard]] std::size_t ready() const noexcept { return ready_.size(); }
  /// Proposed and not settled.
  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  /// How many may be open: as many as it takes for the device not to wait for compilers, and no more, as each is
  /// proposed without knowing of those before it.
  [[nodiscard]] std::size_t ahead() const noexcept { return ahead_; }
  /// Whether what is proposed next depends on what comes of what is open.
  [[nodiscard]] bool learns() const noexcept { return searcher_ == nullptr || searcher_->learns(); }
  /// Usable times so far, for searches of other problems.
  [[nodiscard]] std::vector<std::pair<Config, double>> times_us() const;
  [[nodiscard]] std::optional<Candidate> take_ready();
  /// Gives back what was taken and will not be measured now.
  void put_back(Candidate candidate);
  /// Learns of a stored trial of a proposed configuration; returns the trials of configurations that were waiting
  /// because they run as the same code.
  [[nodiscard]] std::vector<ResolvedTrial> observe(const Trial& trial, std::int64_t stored_id,
                                                   const std::string& run_key);

  /// To be proposed after the defaults, before all else, in place of those that are not valid here the nearest one that
  /// is: what won on other shapes, or on other devices. Before the first proposal. Tells of each whether it is
  /// among the first now: not if it was tried before, or nothing near it is valid.
  std::vector<bool> begin_with_winners(const std::vector<Config>& winners);
  /// Valid configurations that were not tried: of each of the centres itself (or the nearest valid one), then such as
  /// differ in one parameter from one of them, then in two by a step each; the centres in order, `most` in all.
  [[nodiscard]] std::vector<Config> untried_near(const std::vector<Config>& centres, std::size_t most);
  /// Has these proposed next and then nothing, as if the search were spent, until `search_on`.
  void try_only(const std::vector<Config>& configs);
  /// Back to the search, where it was.
  void search_on();

  /// Forgets the time of a configuration that failed in the finals: it is no finalist any more.
  void discard(const Config& config);

  /// What tuning is compared with: the default, or where that is not usable, of the usable ones measured so far the one
  /// nearest to it (`closeness`), which is also proposed as soon as the default is known to fail. That is what an
  /// untuned program runs. Nothing if none is usable.
  [[nodiscard]] std::optional<Config> baseline() const;
  /// Why the default is not usable, for people; empty while it is, or has not been measured.
  [[nodiscard]] const std::string& why_no_default() const noexcept { return why_no_default_; }
  /// The usable trial that told a configuration's time, 0 if there is none.
  [[nodiscard]] std::int64_t trial_of(const Config& config) const;
  [[nodiscard]] const Config& best() const { return ranking_.begin()->second; }
  [[nodiscard]] std::size_t usable() const noexcept { return ranking_.size(); }
  /// What one timed launch of a usable configuration takes, with all that belongs to it.
  [[nodiscard]] double launch_s(const Config& config) const { return launch_s_of(config.text()); }
  /// The same of the configuration with that text.
  [[nodiscard]] double launch_s_of(const std::string& config) const;
  /// Time of a usable configuration, as the search measured it; nothing if it was not tried.
  [[nodiscard]] std::optional<double> time_us(const Config& config) const;
  /// Whether more trials are allowed.
  [[nodiscard]] bool may_try() const noexcept { return done_ + static_cast<int>(open_) < trials_; }
  /// Whether there is something to propose for which the search need not begin.
  [[nodiscard]] bool first_waits() const noexcept { return !first_.empty(); }

  /// Winners of earlier finals: finalists, too, next to the best, as long as they are usable.
  void keep_comparing(std::vector<Config> winners) { standing_ = std::move(winners); }
  /// Whom the finals compare: the best, and such as `choose_thrifty` says; what `keep_comparing` says; of several
  /// compilers each one's best and its default, if they are usable; and behind them the baseline. A binary is missing
  /// if it was compiled by an earlier process.
  [[nodiscard]] std::vector<std::pair<Config, std::optional<Binary>>> finalists() const;
  /// Their configurations only.
  [[nodiscard]] std::vector<Config> finalist_configs() const;
  /// Text of the finalists, those of `keep_comparing` aside: finals need not be repeated while it stays.
  [[nodiscard]] std::string finalists_key() const;

  [[nodiscard]] const BoundSpace& bound() const noexcept { return bound_; }
  [[nodiscard]] const SweepProblem& wanted() const noexcept { return wanted_; }
  [[nodiscard]] int done() const noexcept { return done_; }            ///< trials of this run
  [[nodiscard]] int reused() const noexcept { return reused_; }        ///< known from earlier runs
  [[nodiscard]] int reused_ok() const noexcept { return reused_ok_; }  ///< usable ones among them
  [[nodiscard]] double best_us() const noexcept { return ranking_.empty() ? 0 : ranking_.begin()->first; }
  [[nodiscard]] double default_us() const noexcept { return default_us_; }
  /// Trials to come, at most; fewer if configurations turn out to be known.
  [[nodiscard]] int remaining() const noexcept;
  /// Best time when half of the trials were made, 0 if there was none.
  [[nodiscard]] double best_at_half_us() const noexcept;

 private:
  static constexpr std::size_t kFirstAhead = 4;
  static constexpr int kMaxPassedOver = 4;

  [[nodiscard]] bool in_part(std::span<const std::uint16_t> indices) const;
  [[nodiscard]] std::size_t own_parameters() const;
  void count_valid();
  void begin_search();
  void begin_with_defaults();
  void begin_with_portfolio();
  [[nodiscard]] const std::vector<Config>& by_energy() const;
  void add_thrifty(std::vector<Config>& chosen, const std::optional<Config>& baseline) const;
  void add_of_each_compiler(std::vector<Config>& chosen, const std::optional<Config>& baseline) const;
  [[nodiscard]] std::optional<Config> propose_stand_in();
  void lose_default(std::string why);
  void keep(const Config& config, double median_us, std::int64_t trial);
  void rank_for_compiler(const Config& config, double median_us);
  void note_failure(const Trial& trial);
  void note_if_nearest(const Config& usable);
  void keep_binary(const Config& config, const Binary& binary);
  void go_before_its_twin(Candidate& standard);
  [[nodiscard]] std::deque<Candidate>::iterator most_promising();
  [[nodiscard]] ResolvedTrial share(const Config& config, const Binary& binary, const Trial& original,
                                    std::int64_t original_id) const;
  [[nodiscard]] bool belongs(const Config& config) const;
  [[nodiscard]] std::vector<Config> found_finalists() const;

  const SweepOptions& options_;
  const CompilerAxis* compilers_;  ///< nullptr: there is no choice of them
  SweepProblem wanted_;
  int trials_;     ///< of this run, at most
  int finalists_;  ///< besides the default
  BoundSpace bound_;
  Config default_config_;
  StopCheck check_;
  bool looking_ = false;
  std::optional<SearchDomain> domain_;  ///< made when the searcher is
  std::unique_ptr<Searcher> searcher_;
  Knowledge knowledge_;
  std::optional<CodeJudge> judge_;
  EnergyEstimator energy_;                               ///< see `choose_thrifty`
  int rankings_ = 0;                                     ///< changes of `ranking_`
  mutable std::pair<int, std::vector<Config>> thrifty_;  ///< by energy, of the ranking after so many changes
  std::set<std::string> searched_;                       ///< what the searcher proposed, where code is judged
  StopRule stop_rule_;
  bool little_left_ = false;
  std::vector<std::pair<Config, Observation>> recalled_;  ///< for the searcher, once there is one
  std::deque<Config> first_;                              ///< to be proposed before the searcher's
  std::set<std::string> known_;
  std::set<std::string> waiting_;  ///< proposed and not settled
  std::deque<Candidate> ready_;
  struct Original {
    std::optional<std::pair<Trial, std::int64_t>> stored;
    std::vector<Candidate> waiting;
  };
  std::map<std::string, Original> originals_;  ///< by run key
  std::multimap<double, Config> ranking_;
  /// By compiler, where there are several: all usable ones, those that share another's time among them.
  std::vector<std::multimap<double, Config>> of_compiler_;
  std::optional<std::pair<std::vector<std::size_t>, Config>> nearest_;  ///< of the usable ones, behind its `closeness`
  struct Measured {
    std::int64_t trial = 0;
    double launch_s = 0;
  };
  std::map<std::string, Measured> measured_;  ///< usable ones
  std::vector<Config> standing_;              ///< see `keep_comparing`
  std::string why_no_default_;
  std::vector<Config> no_stand_in_;         ///< nearer to the default than what is tried next, and not usable
  std::optional<Config> stand_in_;          ///< the one tried now
  std::map<std::string, Binary> binaries_;  ///< of the best and of the default
  std::vector<double> best_history_us_;     ///< after each trial
  std::optional<std::uint64_t> valid_;      ///< configurations, counted where the space is small
  double default_us_ = 0;
  std::size_t open_ = 0;
  std::size_t ahead_ = kFirstAhead;
  bool starved_ = false;  ///< the device found nothing ready since the last trial
  int done_ = 0;
  int reused_ = 0;
  int reused_ok_ = 0;
  int alike_failures_ = 0;  ///< not compiled, for one reason
  std::string alike_reason_;
  std::string hopeless_;
  bool spent_ = false;
  bool only_first_ = false;    ///< see `try_only`
  bool search_spent_ = false;  ///< when that began
  bool default_open_ = false;  ///< proposed and not on the device yet
};

}  // namespace pascaline
