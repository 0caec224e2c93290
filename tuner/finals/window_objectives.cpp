#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/util/statistics.hpp"
#include "tuner/finals/objective.hpp"

// The objectives that are measured in windows of launches back to back, and the list of all.
namespace pascaline {
namespace {

// Windows that read the very same, as those of a coarse sensor may, are not known any better than this.
constexpr double kMinRelativeError = 0.001;
constexpr double kMaxSettlingSeconds = 2;  // until the card's power reading is steady
constexpr double kSustainedFactor = 1.25;
constexpr int kSustainedRounds = 5;

// The geometric mean, without the lowest and the highest tenth.
double mean_of_windows(const Contender& contender) {
  std::vector<double> logs;
  for (const double value : contender.values) {
    logs.push_back(std::log(value));
  }
  return std::exp(trimmed_mean(std::move(logs)).mean);
}

/// Compares by paired t-tests on the logarithms of the windows of each round, of which the lowest and the highest tenth
/// do not count: a window in which the machine was busy otherwise is far off (`trimmed_mean`). Of those that cannot be
/// distinguished the fastest comes first, then the first by the configuration's text.
class WindowComparison : public ContenderComparison {
 public:
  WindowComparison(const std::vector<Contender>& contenders, const std::vector<Trial>& trials,
                   const FinalsOptions& options)
      : ContenderComparison(contenders.size()), contenders_(contenders), trials_(trials), options_(options.objective) {
    for (const Contender& contender : contenders_) {
      rounds_ = std::max(rounds_, contender.values.size());
    }
  }

  [[nodiscard]] double score(std::size_t i) const override { return mean_of_windows(contenders_[i]); }
  [[nodiscard]] bool better(std::size_t a, std::size_t b) const override {
    const double others = std::max(1.0, static_cast<double>(contenders_.size()) - 1);
    return difference(a, b) < -options_.tie_width && p(a, b) <= options_.p_value / (options_.looks().count() * others);
  }

 protected:
  /// Logarithm of `a` over `b`, of the rounds that both have.
  [[nodiscard]] virtual double difference(std::size_t a, std::size_t b) const { return of_rounds(a, b).mean; }
  /// The standard error of that.
  [[nodiscard]] virtual double error(std::size_t a, std::size_t b) const {
    const auto rounds = static_cast<double>(std::min(contenders_[a].values.size(), contenders_[b].values.size()));
    return std::max(of_rounds(a, b).error, kMinRelativeError / std::sqrt(rounds));
  }
  [[nodiscard]] const Trial& trial(std::size_t i) const { return trials_[contenders_[i].trial]; }

  [[nodiscard]] bool is_in(std::size_t i) const override { return contenders_[i].values.size() == rounds_; }
  [[nodiscard]] double p(std::size_t a, std::size_t b) const override {
    const int degrees = of_rounds(a, b).degrees;
    return degrees < 1 ? 1.0 : student_t_p(difference(a, b) / error(a, b), degrees);
  }
  [[nodiscard]] bool known_alike(std::size_t i) const override {
    return i == best() ||
           (std::abs(difference(i, best())) <= options_.tie_width && error(i, best()) <= options_.tie_width / 2);
  }
  // The winner by time stays wherever it ties with the best.
  [[nodiscard]] std::optional<double> holds(std::size_t incumbent, std::size_t baseline) const override {
    return !is_tied(incumbent) ? std::nullopt
           : is_tied(baseline) ? std::optional(0.5)
                               : std::optional(1.0 - p(incumbent, baseline) / 2.0);
  }
  [[nodiscard]] bool comes_first(std::size_t a, std::size_t b) const override {
    const auto rank = [this](std::size_t i) { return std::pair(trial(i).time->median_us, trial(i).config.text()); };
    return rank(a) < rank(b);
  }

 private:
  [[nodiscard]] TrimmedMean of_rounds(std::size_t a, std::size_t b) const {
    std::vector<double> logs;
    const std::vector<double>& of_a = contenders_[a].values;
    const std::vector<double>& of_b = contenders_[b].values;
    for (std::size_t round = 0; round < std::min(of_a.size(), of_b.size()); ++round) {
      logs.push_back(std::log(of_a[round] / of_b[round]));
    }
    return trimmed_mean(std::move(logs));
  }

  const std::vector<Contender>& contenders_;
  const std::vector<Trial>& trials_;
  const ObjectiveOptions& options_;
  std::size_t rounds_ = 0;
};

/// Adds the median times with their uncertainty.
class EdpComparison final : public WindowComparison {
 public:
  using WindowComparison::WindowComparison;
  [[nodiscard]] double score(std::size_t i) const override { return WindowComparison::score(i) * time_us(i); }

 protected:
  [[nodiscard]] double difference(std::size_t a, std::size_t b) const override {
    return WindowComparison::difference(a, b) + std::log(time_us(a) / time_us(b));
  }
  [[nodiscard]] double error(std::size_t a, std::size_t b) const override {
    return std::hypot(WindowComparison::error(a, b), time_error(a), time_error(b));
  }

 private:
  [[nodiscard]] double time_us(std::size_t i) const { return trial(i).time->median_us; }
  [[nodiscard]] double time_error(std::size_t i) const { return relative_half_width(*trial(i).time) / kErrorsOf95; }
};

class WindowObjective : public FinalsObjective {
 public:
  [[nodiscard]] std::unique_ptr<ContenderComparison> compare(const std::vector<Contender>& contenders,
                                                             const std::vector<Trial>& trials,
                                                             const FinalsOptions& options) const override {
    return std::make_unique<WindowComparison>(contenders, trials, options);
  }
};

/// Millijoules a launch.
class EnergyObjective : public WindowObjective {
 public:
  [[nodiscard]] Objective id() const noexcept override { return Objective::energy; }
  [[nodiscard]] bool wants_low_energy() const noexcept override { return true; }
  [[nodiscard]] std::string refusal(const DeviceReports& device) const override {
    const std::string reports = device.power_w
                                    ? fmt::format("reports a power that cannot be, {:.4g} W", *device.power_w)
                                    : "does not report its power";
    return device.sane_power ? "" : reports + ", so its energy cannot be measured";
  }
  [[nodiscard]] SampleKind sampling() const noexcept override { return SampleKind::energy; }
  [[nodiscard]] double window_s(const FinalsOptions& options) const override {
    return kMaxSettlingSeconds + options.energy_window_ms / 1000;
  }
  void note(Trial& trial, const Contender& contender) const override { trial.energy_mj = mean_of_windows(contender); }
};

/// Energy times time of a launch: the windows of energy, and the median times of the rounds by time.
class EdpObjective final : public EnergyObjective {
 public:
  [[nodiscard]] Objective id() const noexcept override { return Objective::edp; }
  [[nodiscard]] std::unique_ptr<ContenderComparison> compare(const std::vector<Contender>& contenders,
                                                             const std::vector<Trial>& trials,
                                                             const FinalsOptions& options) const override {
    return std::make_unique<EdpComparison>(contenders, trials, options);
  }
};

/// Microseconds a launch of back-to-back work in the thermal steady state. Its windows take long, so that fewer
/// finalists contend and fewer rounds decide.
class SustainedObjective final : public WindowObjective {
 public:
  [[nodiscard]] Objective id() const noexcept override { return Objective::sustained; }
  [[nodiscard]] ObjectiveOptions defaults() const override {
    ObjectiveOptions options = FinalsObjective::defaults();
    options.contender_factor = kSustainedFactor;
    options.max_rounds = options.rounds_of_all = kSustainedRounds;
    options.rounds_per_look = 1;
    return options;
  }
  [[nodiscard]] std::string refusal(const DeviceReports& device) const override {
    return device.heat ? "" : "reports neither its temperature nor its clock, so nothing shows when it is steady";
  }
  [[nodiscard]] SampleKind sampling() const noexcept override { return SampleKind::sustained; }
  [[nodiscard]] double window_s(const FinalsOptions& options) const override {
    return options.objective.sustain_again_s + options.objective.sustain_window_s;
  }
  [[nodiscard]] double first_window_s(const FinalsOptions& options) const override {
    return std::max(0.0, options.objective.sustain_first_s - options.objective.sustain_again_s);
  }
  void note(Trial& trial, const Contender& contender) const override {
    trial.sustained_us = mean_of_windows(contender);
  }
};

}  // namespace

const FinalsObjective& objective_of(Objective objective) {
  static const EnergyObjective energy;
  static const EdpObjective edp;
  static const SustainedObjective sustained;
  static const std::array<const FinalsObjective*, kObjectives.size()> all{&time_objective(), &energy, &edp, &sustained};
  return *all.at(static_cast<std::size_t>(objective));
}

}  // namespace pascaline
