#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/finals/finals_decision.hpp"

namespace pascaline {

/// Compares contenders, by index, by what was measured of them.
class ContenderComparison {
 public:
  /// Who wins.
  struct Choice {
    std::size_t winner = 0;
    double confidence = 0.5;  ///< that it is not worse than the baseline; 1 without one
    bool tie = false;         ///< others are not significantly worse than the best
  };

  ContenderComparison(const ContenderComparison&) = delete;
  ContenderComparison& operator=(const ContenderComparison&) = delete;
  virtual ~ContenderComparison() = default;

  /// Its value by the objective; the lowest is the best.
  [[nodiscard]] virtual double score(std::size_t i) const = 0;
  /// True if `a` is significantly better than `b`.
  [[nodiscard]] virtual bool better(std::size_t a, std::size_t b) const = 0;
  /// The one with the lowest score of those measured in every round.
  [[nodiscard]] std::size_t best() const;
  /// True if more rounds would change nothing: one is better than all others, or those that are not worse than the best
  /// are known to be the same.
  [[nodiscard]] bool settled() const;
  /// `incumbent` has won before, or by time: it stays where nothing is better than it, and what takes its place is
  /// better than it, and than the baseline.
  [[nodiscard]] Choice decide(std::optional<std::size_t> baseline, std::optional<std::size_t> incumbent) const;

 protected:
  explicit ContenderComparison(std::size_t count) : count_(count) {}

  /// The best, and all measured in every round that are not significantly worse.
  [[nodiscard]] std::vector<std::size_t> tie_set() const;
  [[nodiscard]] bool is_tied(std::size_t i) const;
  /// True if it was measured in every round.
  [[nodiscard]] virtual bool is_in(std::size_t /*i*/) const { return true; }
  /// Two-sided p-value of the difference.
  [[nodiscard]] virtual double p(std::size_t a, std::size_t b) const = 0;
  /// True if a member of the tie set is known well enough to be as good as the best.
  [[nodiscard]] virtual bool known_alike(std::size_t i) const = 0;
  /// True if it may take the baseline's place.
  [[nodiscard]] virtual bool beats(std::size_t i, std::size_t baseline) const { return better(i, baseline); }
  /// The incumbent's confidence if it stays though it is not shown to be better than the baseline; nothing if it goes.
  [[nodiscard]] virtual std::optional<double> holds(std::size_t incumbent, std::size_t baseline) const = 0;
  /// The order of those that cannot be distinguished.
  [[nodiscard]] virtual bool comes_first(std::size_t a, std::size_t b) const = 0;

 private:
  std::size_t count_;
};

/// How a contender is measured.
enum class SampleKind : std::uint8_t {
  launches,   ///< single launches, as a sweep times them
  energy,     ///< a window of launches back to back, with the card's power: millijoules a launch
  sustained,  ///< a window of launches in the thermal steady state: microseconds a launch
};

/// A device's reports of itself, as far as objectives need them.
struct DeviceReports {
  std::optional<double> power_w{};  ///< as it says
  bool sane_power = false;          ///< that is a power that a card can have
  bool heat = false;                ///< its temperature or its clock
};

/// Finals compare by an objective: it says what is measured, for how long, and how two contenders compare.
class FinalsObjective {
 public:
  FinalsObjective() = default;
  FinalsObjective(const FinalsObjective&) = delete;
  FinalsObjective& operator=(const FinalsObjective&) = delete;
  virtual ~FinalsObjective() = default;

  /// Its name in databases and options.
  [[nodiscard]] virtual Objective id() const noexcept = 0;
  /// How it is compared by unless somebody asks for something else.
  [[nodiscard]] virtual ObjectiveOptions defaults() const;
  /// True if the rounds that every finals have decide it, and nothing is measured after them.
  [[nodiscard]] virtual bool by_time_alone() const noexcept { return false; }
  /// True if configurations that promise to need little energy belong among the finalists, too.
  [[nodiscard]] virtual bool wants_low_energy() const noexcept { return false; }
  /// Completes a sentence that begins with a device: why it cannot be measured by this there. Empty if it can.
  [[nodiscard]] virtual std::string refusal(const DeviceReports& /*device*/) const { return {}; }

  [[nodiscard]] virtual SampleKind sampling() const noexcept = 0;
  /// Seconds that a window of one contender takes at most.
  [[nodiscard]] virtual double window_s(const FinalsOptions& options) const = 0;
  /// Seconds that the first window of all takes beyond that.
  [[nodiscard]] virtual double first_window_s(const FinalsOptions& /*options*/) const { return 0; }
  /// Notes what was measured of a contender in its trial.
  virtual void note(Trial& trial, const Contender& contender) const = 0;
  /// Compares these contenders, or all trials where it is by time alone. All arguments must outlive it.
  [[nodiscard]] virtual std::unique_ptr<ContenderComparison> compare(const std::vector<Contender>& contenders,
                                                                     const std::vector<Trial>& trials,
                                                                     const FinalsOptions& options) const = 0;
};

[[nodiscard]] const FinalsObjective& objective_of(Objective objective);
/// The one that finals with these options decide by besides time.
[[nodiscard]] inline const FinalsObjective& objective_of(const FinalsOptions& options) {
  return objective_of(options.objective.objective);
}

/// That of the rounds that every finals begin with.
[[nodiscard]] const FinalsObjective& time_objective();

}  // namespace pascaline
