#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/binary.hpp"
#include "core/trial.hpp"
#include "tuner/sweep/compiler_axis.hpp"

namespace pascaline {

/// A configuration of one problem, with everything that the sweep knows of it.
struct Candidate {
  enum class Stage : std::uint8_t {
    proposed,   ///< being compiled
    ready,      ///< compiled; to be measured
    twin,       ///< compiled to the code of another one, whose result it will have
    measuring,  ///< on a device
    settled,    ///< there is a trial of it
  };
  Config config{};
  Stage stage = Stage::proposed;
  bool searched = false;  ///< proposed by the searcher, not by the default, a portfolio or a winner
  std::string run_key{};  ///< tells code and launch; empty before it is compiled
  std::optional<Binary> binary{};
  int passed_over = 0;            ///< for ones whose code promises more
  std::int64_t trial = 0;         ///< the stored one, once it is settled
  std::optional<Trial> result{};  ///< of this process, without samples, where others may share it
  double median_us = 0;           ///< by that trial; 0: it is not usable
  double launch_s = 0;            ///< of a timed launch, with all that belongs to it; 0: unknown
  bool has_own_time = true;       ///< false: its time is that of another one with the same code
};

/// All configurations of one problem that were proposed or recalled: each once, by its text. It owns their stages,
/// results and binaries, and ranks the usable ones by their times.
class CandidateTable {
 public:
  using Ranking = std::multimap<double, const Candidate*>;  ///< by median time, in microseconds

  /// `compilers`: those that configurations name, which must outlive it; nullptr where there is no choice of them.
  explicit CandidateTable(const CompilerAxis* compilers);

  /// False if it is known already.
  bool propose(const Config& config, bool searched);
  /// Takes in a result of an earlier run or process, of a configuration that is not known. A median of 0: not usable.
  void recall(const Config& config, double median_us, std::int64_t trial);
  /// Takes the code of a proposed candidate. Returns nullptr if it is to be measured, else the candidate whose code is
  /// the same: if that is not settled yet, this one is a twin now.
  const Candidate* add_code(const Config& config, Binary binary, std::string run_key);
  /// Lets a candidate and a twin of it, of which neither is on a device, change places: the twin is measured.
  void swap_with_twin(const Config& twin);
  /// Whether that code was taken in before.
  [[nodiscard]] bool has_code(const std::string& run_key) const { return codes_.contains(run_key); }
  /// The ready ones, in the order in which they were compiled.
  [[nodiscard]] const std::deque<Candidate*>& ready() const noexcept { return ready_; }
  /// Takes a ready one for a device.
  Candidate& take(std::size_t index);
  /// Takes back one that was taken and not measured.
  void put_back(const Config& config);
  /// Takes the result of a proposed one: that of a usable one ranks it. Returns the twins, which are to be settled
  /// next.
  [[nodiscard]] std::vector<const Candidate*> settle(const Trial& trial, std::int64_t stored_id);
  /// Forgets the time of a usable one.
  void discard(const Config& config);
  /// Drops all binaries but those of the fastest and those that `needed` wants, where more than twice as many are kept.
  void drop_binaries(std::size_t fastest, const std::function<bool(const Candidate&)>& needed);

  /// nullptr if it is not known.
  [[nodiscard]] const Candidate* find(const Config& config) const { return find(config.text()); }
  [[nodiscard]] const Candidate* find(const std::string& text) const;
  /// The usable one with that configuration; nullptr if it is not known or not usable.
  [[nodiscard]] const Candidate* find_usable(const Config& config) const;
  [[nodiscard]] std::size_t known() const noexcept { return all_.size(); }
  /// Proposed and not settled.
  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  /// Usable ones that have a time of their own.
  [[nodiscard]] const Ranking& ranking() const noexcept { return ranking_; }
  /// Usable ones of a compiler, those without a time of their own among them; only where there is a choice of them.
  [[nodiscard]] const std::vector<Ranking>& rankings_of_compilers() const noexcept { return of_compiler_; }
  [[nodiscard]] double best_us() const noexcept { return ranking_.empty() ? 0 : ranking_.begin()->first; }
  /// How often the ranking changed.
  [[nodiscard]] int changes() const noexcept { return changes_; }

 private:
  /// Of one code: the candidate that is, or was, measured, and those that share its result.
  struct Code {
    Candidate* original = nullptr;
    std::vector<Candidate*> twins{};
  };

  [[nodiscard]] Candidate& at(const Config& config) { return all_.at(config.text()); }
  void rank(Candidate& candidate);

  const CompilerAxis* compilers_;
  std::map<std::string, Candidate> all_{};
  std::map<std::string, Code> codes_{};  ///< by run key
  std::deque<Candidate*> ready_{};
  Ranking ranking_{};
  std::vector<Ranking> of_compiler_{};
  std::size_t open_ = 0;
  std::size_t settled_binaries_ = 0;
  int changes_ = 0;
};

}  // namespace pascaline
