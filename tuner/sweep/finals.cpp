#include "tuner/sweep/finals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/error.hpp"
#include "core/util/statistics.hpp"
#include "tuner/measure/trial_setup.hpp"
#include "tuner/monitor/energy.hpp"
#include "tuner/monitor/sustained.hpp"

namespace pascaline {
namespace {

constexpr int kFewestSamples = 3;
constexpr double kLongestEnergySeconds = 3;  // until the power is steady, besides the window
constexpr int kDisturbedFactor = 2;          // passes over the finalists for each round wanted, at most

using Finalist = std::pair<Config, Binary>;

/// One go at the finals; a finalist's failure ends it by an exception.
class Finals {
 public:
  /// `running` is kept at the finalist on the device: an index into `left`, which holds indices into `finalists`.
  Finals(TrialRunner& runner, const std::vector<Finalist>& finalists, const std::vector<std::size_t>& left,
         const FinalsOptions& options, const FinalsEvents& events, std::size_t& running)
      : runner_(runner),
        monitor_(runner.monitor()),
        finalists_(finalists),
        left_(left),
        options_(options),
        events_(events),
        running_(running) {}

  FinalsResult run() {
    make_ready();
    note_canary();
    if (time_rounds()) {
      summarize_trials();
      decide_finals(result_, cut_ ? options_up_to(result_.rounds) : options_);
      if (options_.objective.objective != Objective::time) {
        decide_by_objective();
      }
      take_energies();
    } else {
      result_.out_of_time = cut_;
      result_.gave_up = !cut_;
    }
    return std::move(result_);
  }

 private:
  void put_on(std::size_t finalist) {
    running_ = finalist;
    if (events_.running) {
      events_.running(left_[finalist]);
    }
  }

  void make_ready() {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      put_on(i);
      const auto& [config, binary] = finalists_[left_[i]];
      ready_.push_back(std::make_unique<TrialRunner::Ready>(runner_.make_ready(config, binary)));
      work_.push_back(ready_[i]->work(runner_.device()));
      result_.trials.push_back(blank_trial(runner_.space(), config, binary));
      result_.trials.back().stage = TrialStage::finals;
      runner_.phase("launch");
      work_[i].launch();
      runner_.device().synchronize();
    }
  }

  void note_canary() {
    monitor_.canary();
    if (monitor_.last_canary_us() && !monitor_.canary_drifted()) {
      canaries_.push_back(*monitor_.last_canary_us());
    }
  }

  // Those that were planned behind it are no looks.
  [[nodiscard]] FinalsOptions options_up_to(int rounds) const {
    FinalsOptions options = options_;
    options.rounds = rounds;
    return options;
  }

  // False if the card did not become fit, or the time was up before there was anything to decide by. A round with a
  // marked sample does not count as one.
  bool time_rounds() {
    int passes = 0;
    while (result_.rounds < options_.rounds && passes++ < kDisturbedFactor * options_.rounds) {
      cut_ = !monitor_.has_time_for(longest_round_s_);
      if (cut_) {
        break;
      }
      const double begun_s = monitor_.now_s();
      std::vector<std::size_t> begins;
      for (const Trial& trial : result_.trials) {
        begins.push_back(trial.samples.size());
      }
      if (!time_round()) {
        cut_ = monitor_.time_is_up();
        if (!cut_) {
          return false;
        }
        drop_round(begins);
        break;
      }
      longest_round_s_ = std::max(longest_round_s_, monitor_.now_s() - begun_s);
      if (close_round(begins)) {
        ++result_.rounds;
        if (finals_look_after(result_.rounds, options_)) {
          summarize_trials();
          if (finals_are_settled(result_, options_)) {
            break;
          }
        }
      }
      if (events_.round) {
        events_.round(result_.rounds);
      }
    }
    if (cut_ && result_.rounds < std::min(kMinFinalsRounds, options_.rounds)) {
      return false;
    }
    summarize_trials();
    return std::all_of(result_.trials.begin(), result_.trials.end(), [this](const Trial& trial) {
      return trial.time->count >= std::min(kFewestSamples, options_.rounds * options_.launches);
    });
  }

  // Each round begins with another finalist: what runs right behind the canary is at a small disadvantage.
  bool time_round() {
    const std::size_t first = turn_++;
    for (std::size_t turn = 0; turn < ready_.size(); ++turn) {
      const std::size_t i = (first + turn) % ready_.size();
      put_on(i);
      for (int launch = 0; launch < options_.launches; ++launch) {
        if (monitor_.time_is_up()) {
          return false;
        }
        if (!monitor_.may_measure() && !monitor_.wait_until_fit()) {
          return false;
        }
        result_.trials[i].samples.push_back(take_sample(monitor_, work_[i], runner_.options().cold_cache));
      }
    }
    return true;
  }

  void drop_round(const std::vector<std::size_t>& begins) {
    for (std::size_t i = 0; i < begins.size(); ++i) {
      result_.trials[i].samples.resize(begins[i]);
    }
  }

  // Marks what lies between this canary and the one before if this one is off; whether every sample counts.
  bool close_round(const std::vector<std::size_t>& begins) {
    note_canary();
    bool undisturbed = true;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      std::vector<Sample>& samples = result_.trials[i].samples;
      if (monitor_.canary_drifted()) {
        mark_drifted(samples, begins[i]);
      }
      undisturbed = undisturbed && std::all_of(samples.begin() + static_cast<std::ptrdiff_t>(begins[i]), samples.end(),
                                               [](const Sample& sample) { return sample.counted(); });
    }
    return undisturbed;
  }

  // All were timed in turn, so one canary and one scale are everyone's.
  void summarize_trials() {
    const std::optional<double> canary_us = median_of(canaries_);
    for (Trial& trial : result_.trials) {
      trial.canary_us = canary_us;
      trial.clock_scale = canary_us ? monitor_.scale_of(*canary_us) : 1.0;
      trial.time = scaled_summary(trial.samples, trial.clock_scale);
    }
  }

  // A winner's and a baseline's that finals before measured in the same state of the card: the seconds that measuring
  // again takes go to samples. By an objective the windows of a round are compared with each other, and taken anew.
  bool take_energies_again() {
    std::vector<std::size_t> wanted{result_.winner};
    if (result_.baseline_trial && *result_.baseline_trial != result_.winner) {
      wanted.push_back(*result_.baseline_trial);
    }
    const auto known = options_.energies && options_.objective.objective == Objective::time
                           ? energies_again(*options_.energies, result_.trials, wanted)
                           : std::nullopt;
    for (std::size_t i = 0; known && i < wanted.size(); ++i) {
      Trial& trial = result_.trials[wanted[i]];
      trial.energy_mj = (*known)[i];
      trial.reason = "its energy is what the finals before measured";
    }
    result_.energies_again = known.has_value();
    return result_.energies_again;
  }

  // Of the winner and the baseline, which is what is compared: it takes one to three seconds each. What was decided
  // stands, whether or not the card stays fit for this and there is time.
  void take_energies() {
    if (options_.energy_window_ms > 0 && take_energies_again()) {
      return;
    }
    for (std::size_t i = 0; i < ready_.size() && options_.energy_window_ms > 0; ++i) {
      if ((i != result_.winner && i != result_.baseline_trial) || result_.trials[i].energy_mj) {
        continue;
      }
      if (!monitor_.has_time_for(kLongestEnergySeconds + options_.energy_window_ms / 1000) ||
          !monitor_.read_sensors().power_w || !monitor_.wait_until_fit()) {
        return;
      }
      put_on(i);
      result_.trials[i].energy_mj =
          measure_energy_mj(monitor_, work_[i], result_.trials[i].time->median_us, options_.energy_window_ms);
    }
  }

  // What the objective's winner is compared with in any case.
  [[nodiscard]] bool always_contends(std::size_t i) const { return i == result_.winner || i == result_.baseline_trial; }

  // Those near the fastest, which come first, the winner by time, which a rule may have decided, and the baseline.
  [[nodiscard]] std::vector<std::size_t> contenders() const {
    std::vector<std::size_t> order(result_.trials.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto time_us = [this](std::size_t i) { return result_.trials[i].time->median_us; };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return time_us(a) < time_us(b); });
    const double longest_us = options_.objective.contender_factor * time_us(order.front());
    std::erase_if(order, [&](std::size_t i) { return time_us(i) > longest_us && !always_contends(i); });
    return order;
  }

  // The slowest go first where there is no time for all; the winner by time and the baseline never do, and something to
  // compare them with stays.
  void fit_contenders(std::vector<std::size_t>& order, double window_s) const {
    const auto fits = [&] {
      const double all_s = window_s * options_.objective.min_rounds * static_cast<double>(order.size());
      return monitor_.has_time_for(first_window_s() + all_s);
    };
    for (std::size_t i = order.size(); i-- > 0 && order.size() > 2 && !fits();) {
      if (!always_contends(order[i])) {
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (!fits()) {
      order.clear();
    }
  }

  // What the first window takes beyond later ones.
  [[nodiscard]] double first_window_s() const {
    const ObjectiveOptions& objective = options_.objective;
    return objective.objective == Objective::sustained
               ? std::max(0.0, objective.sustain_first_s - objective.sustain_again_s)
               : 0;
  }

  void decide_by_objective() {
    ObjectiveDecision& decision = result_.by_objective.emplace();
    decision.objective = options_.objective.objective;
    const double window_s = window_seconds(options_.objective, options_.energy_window_ms);
    std::vector<std::size_t> order = contenders();
    fit_contenders(order, window_s);
    if (order.empty()) {
      decision.out_of_time = true;
      decision.undecided = "there was no time left for it";
      return;
    }
    for (const std::size_t i : order) {
      decision.contenders.push_back({i, {}});
    }
    measure_contenders(decision, window_s);
    if (!decision.undecided.empty()) {
      return;
    }
    for (const Contender& contender : decision.contenders) {
      Trial& trial = result_.trials[contender.trial];
      (needs_power(decision.objective) ? trial.energy_mj : trial.sustained_us) =
          score_of(needs_power(decision.objective) ? Objective::energy : decision.objective, contender, trial);
    }
    decide_objective(decision, result_.trials, result_.baseline_trial, options_.objective, result_.winner);
  }

  void measure_contenders(ObjectiveDecision& decision, double window_s) {
    std::vector<std::size_t> kept{result_.winner};
    if (result_.baseline_trial) {
      kept.push_back(*result_.baseline_trial);
    }
    ObjectiveRounds rounds(decision, result_.trials, options_.objective, std::move(kept));
    for (std::vector<std::size_t> turns = rounds.next(); !turns.empty(); turns = rounds.next()) {
      const double round_s = window_s * static_cast<double>(turns.size());
      if (rounds.rounds() >= options_.objective.min_rounds && !monitor_.has_time_for(round_s)) {
        return;
      }
      for (const std::size_t turn : turns) {
        Contender& contender = decision.contenders[turn];
        const bool first = rounds.rounds() == 0 && turn == turns.front();
        const auto value = measure_window(contender.trial, first, decision.undecided);
        if (!value) {
          drop_last_round(decision, static_cast<std::size_t>(rounds.rounds()));
          return;
        }
        contender.values.push_back(*value);
      }
    }
  }

  // Where the time was up in the middle of a round, those before may be enough.
  void drop_last_round(ObjectiveDecision& decision, std::size_t rounds) const {
    decision.out_of_time = monitor_.time_is_up();
    if (static_cast<int>(rounds) < options_.objective.min_rounds || !decision.out_of_time) {
      return;
    }
    decision.out_of_time = false;
    decision.undecided.clear();
    for (Contender& contender : decision.contenders) {
      contender.values.resize(std::min(contender.values.size(), rounds));
    }
  }

  std::optional<double> measure_window(std::size_t i, bool first, std::string& why_not) {
    put_on(i);
    const double time_us = result_.trials[i].time->median_us;
    return needs_power(options_.objective.objective) ? energy_window(i, time_us, why_not)
                                                     : sustained_window(i, time_us, first, why_not);
  }

  std::optional<double> energy_window(std::size_t i, double time_us, std::string& why_not) {
    if (!monitor_.wait_until_fit()) {
      why_not = "the card did not become fit to be measured on: " + monitor_.reason();
      return std::nullopt;
    }
    const EnergyWindow window = measure_energy_window(monitor_, work_[i], time_us, options_.energy_window_ms);
    if (!window.energy_mj || !window.whole) {
      const std::optional<double> told = monitor_.read_sensors().power_w;
      why_not = !told ? "the card stopped reporting its power"
                : sane_power_w(monitor_.read_sensors())
                    ? "the card did not report a power that can be throughout"
                    : fmt::format("the card reported a power that cannot be, {:.4g} W", *told);
      return std::nullopt;
    }
    if (!window.changed) {
      why_not = fmt::format("the card's power reading is stuck at {:.3g} W",
                            sane_power_w(monitor_.read_sensors()).value_or(0));
      return std::nullopt;
    }
    return window.energy_mj;
  }

  std::optional<double> sustained_window(std::size_t i, double time_us, bool first, std::string& why_not) {
    const ObjectiveOptions& objective = options_.objective;
    SustainedOptions sustained;
    sustained.limit_s = first ? objective.sustain_first_s : objective.sustain_again_s;
    sustained.window_s = objective.sustain_window_s;
    sustained.max_temperature_c = objective.max_temperature_c;
    if (!tells_heat(monitor_.read_sensors())) {
      why_not = "the card stopped reporting its temperature and its clock";
      return std::nullopt;
    }
    const SustainedWindow window = measure_sustained(monitor_, work_[i], time_us, sustained, [&] { put_on(i); });
    why_not = window.why_not;
    if (window.median_us && !window.steady) {
      result_.trials[i].reason =
          fmt::format("temperature, clock or launches still moved after {:.0f} s of this work", sustained.limit_s);
    }
    return window.median_us;
  }

  TrialRunner& runner_;
  DeviceMonitor& monitor_;
  const std::vector<Finalist>& finalists_;
  const std::vector<std::size_t>& left_;
  const FinalsOptions& options_;
  const FinalsEvents& events_;
  std::size_t& running_;
  std::size_t turn_ = 0;
  bool cut_ = false;
  double longest_round_s_ = 0;
  FinalsResult result_;
  std::vector<std::unique_ptr<TrialRunner::Ready>> ready_;  // which stay where they are
  std::vector<TimedWork> work_;
  std::vector<double> canaries_;
};

}  // namespace

std::optional<FinalsResult> run_finals(TrialRunner& runner, const std::vector<std::pair<Config, Binary>>& finalists,
                                       const FinalsOptions& options, const FinalsEvents& events) {
  std::vector<std::size_t> left(finalists.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = i;
  }
  std::vector<Trial> failed;
  while (!left.empty() && !runner.device_lost()) {
    std::size_t running = 0;
    std::string reason;
    try {
      FinalsResult result = Finals(runner, finalists, left, options, events, running).run();
      result.failed = std::move(failed);
      return result;
    } catch (const CudaError& error) {
      reason = error.what();
    } catch (const EmulatorError& error) {
      reason = error.what();
    }
    const auto& [config, binary] = finalists[left[running]];
    failed.push_back(blank_trial(runner.space(), config, binary));
    failed.back().stage = TrialStage::finals;
    failed.back().status = TrialStatus::launch_failed;
    failed.back().reason = std::move(reason);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(running));
    runner.recover();
  }
  return std::nullopt;
}

}  // namespace pascaline
