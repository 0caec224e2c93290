#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tuner/finals/objective.hpp"

namespace pascaline {

/// A round is measured next: each of `turns`, in this order.
struct Round {
  SampleKind sampling = SampleKind::launches;
  std::vector<std::size_t> turns{};  ///< contenders, by index; empty: the finals are over
  double window_s = 0;               ///< seconds that a window takes at most
  bool first = false;                ///< the first with this sampling: nothing has warmed the card yet

  [[nodiscard]] bool over() const noexcept { return turns.empty(); }
};

/// The samples of a contender in its turn.
struct Turn {
  std::vector<Sample> launches{};  ///< with their marks
  double value = 0;                ///< of a window, in the unit of its sampling
  std::string note{};              ///< for the contender's trial; empty: none
};

/// The samples of a round.
struct RoundSamples {
  enum class End : std::uint8_t { whole, out_of_time, failed };

  std::vector<Turn> turns{};          ///< in the round's order; none counts where it did not become whole
  std::vector<double> canaries_us{};  ///< around the launches, those that are as when the card was steady
  double seconds = 0;                 ///< that it took
  End end = End::whole;
  std::string why_not{};  ///< why it did not become whole
};

/// One comparison of contenders: which rounds it takes, when it is over, and what it decides. It decides by time, then
/// by `objective` if that is another one, and then wants the energies of winner and baseline, if they are not known. It
/// neither measures nor waits:
///
///     for (Round round = finals.next(left_s); !round.over(); round = finals.next(left_s)) finals.add(measure(round));
class Finals {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  /// `clock_scale`: what times are to be multiplied by when the canary takes so many microseconds; empty: 1.
  Finals(std::vector<Trial> contenders, const FinalsObjective& objective, FinalsOptions options,
         std::function<double(double canary_us)> clock_scale = {});

  /// The next round that is over in `left_s` seconds.
  [[nodiscard]] Round next(double left_s = kUnlimited);
  /// Adds the samples of the last round that `next` returned.
  void add(RoundSamples samples);
  /// Leaves a contender out and begins again with the others, whose indices follow on without it.
  void fail(std::size_t contender, std::string reason);

  /// The contenders that did not fail, with what was measured of them.
  [[nodiscard]] const std::vector<Trial>& contenders() const noexcept { return result_.trials; }
  /// Their decision, once they are over; nothing if all contenders failed.
  [[nodiscard]] std::optional<FinalsResult> decided() const;

 private:
  enum class Stage : std::uint8_t { times, windows, energies, over };

  void begin();
  [[nodiscard]] bool wants_times(double left_s);
  void add_times(RoundSamples samples);
  void summarize_trials();
  [[nodiscard]] bool decide_by_time();

  void begin_windows(double left_s);
  [[nodiscard]] std::vector<std::size_t> near_contenders(double left_s) const;
  [[nodiscard]] bool wants_windows(double left_s);
  void leave_out(const ContenderComparison& compare);
  void add_windows(RoundSamples samples);
  void decide_by_objective();

  void reuse_energies();
  [[nodiscard]] bool wants_energy(double left_s);
  void add_energy(RoundSamples samples);

  [[nodiscard]] bool is_compared(std::size_t trial) const;  // in any case

  const FinalsObjective& objective_;
  FinalsOptions options_;
  std::function<double(double)> clock_scale_;
  std::vector<Trial> blanks_{};  ///< the contenders as they were given
  FinalsResult result_{};
  Stage stage_ = Stage::times;
  Round round_{};
  std::vector<double> canaries_us_{};
  int passes_ = 0;  ///< rounds by time, the disturbed ones included
  double longest_round_s_ = 0;
  bool cut_ = false;  ///< the time is up
  bool settled_ = false;
  std::vector<std::size_t> members_{};  ///< contenders that windows are measured of
  int windows_ = 0;                     ///< rounds of these
  std::size_t next_energy_ = 0;
};

}  // namespace pascaline
