#include "tuner/measure/finals_sampler.hpp"

#include <fmt/format.h>

#include "tuner/monitor/energy.hpp"
#include "tuner/monitor/sustained.hpp"

namespace pascaline {

RoundSamples FinalsSampler::measure(const Round& round, const std::vector<Trial>& contenders) {
  RoundSamples samples;
  const double begun_s = monitor_.now_s();
  if (round.sampling == SampleKind::launches) {
    time_launches(round, samples);
  }
  for (std::size_t turn = 0; turn < round.turns.size() && round.sampling != SampleKind::launches; ++turn) {
    const std::size_t contender = round.turns[turn];
    const double time_us = contenders[contender].time->median_us;
    Turn& measured = samples.turns.emplace_back();
    samples.why_not = round.sampling == SampleKind::energy
                          ? energy_window(contender, time_us, measured)
                          : sustained_window(contender, time_us, round.first && turn == 0, measured);
    if (!samples.why_not.empty()) {
      samples.end = end_of_broken_round();
      break;
    }
  }
  samples.seconds = monitor_.now_s() - begun_s;
  return samples;
}

void FinalsSampler::put_on(std::size_t contender) const {
  if (running_) {
    running_(contender);
  }
}

RoundSamples::End FinalsSampler::end_of_broken_round() const {
  return monitor_.time_is_up() ? RoundSamples::End::out_of_time : RoundSamples::End::failed;
}

void FinalsSampler::note_canary(std::vector<double>& canaries_us) {
  monitor_.canary();
  if (monitor_.last_canary_us() && !monitor_.canary_drifted()) {
    canaries_us.push_back(*monitor_.last_canary_us());
  }
}

// Marks what lies between two canaries if the later one is off.
void FinalsSampler::time_launches(const Round& round, RoundSamples& samples) {
  if (!std::exchange(begun_, true)) {
    note_canary(samples.canaries_us);
  }
  for (const std::size_t contender : round.turns) {
    put_on(contender);
    std::vector<Sample>& launches = samples.turns.emplace_back().launches;
    for (int launch = 0; launch < options_.launches; ++launch) {
      if (monitor_.time_is_up() || (!monitor_.may_measure() && !monitor_.wait_until_fit())) {
        samples.end = end_of_broken_round();
        return;
      }
      launches.push_back(take_sample(monitor_, work_[contender], cold_cache_));
    }
  }
  note_canary(samples.canaries_us);
  for (Turn& turn : samples.turns) {
    if (monitor_.canary_drifted()) {
      mark_drifted(turn.launches, 0);
    }
  }
}

std::string FinalsSampler::why_no_power() {
  const Sensors sensors = monitor_.read_sensors();
  return !sensors.power_w        ? "the card stopped reporting its power"
         : sane_power_w(sensors) ? "the card did not report a power that can be throughout"
                                 : fmt::format("the card reported a power that cannot be, {:.4g} W", *sensors.power_w);
}

std::string FinalsSampler::energy_window(std::size_t contender, double time_us, Turn& turn) {
  if (!sane_power_w(monitor_.read_sensors())) {
    return why_no_power();
  }
  if (!monitor_.wait_until_fit()) {
    return "the card did not become fit to be measured on: " + monitor_.reason();
  }
  put_on(contender);
  const EnergyWindow window = measure_energy_window(monitor_, work_[contender], time_us, options_.energy_window_ms);
  if (!window.energy_mj || !window.whole) {
    return why_no_power();
  }
  turn.value = *window.energy_mj;
  return window.changed ? ""
                        : fmt::format("the card's power reading is stuck at {:.3g} W",
                                      sane_power_w(monitor_.read_sensors()).value_or(0));
}

std::string FinalsSampler::sustained_window(std::size_t contender, double time_us, bool first, Turn& turn) {
  const ObjectiveOptions& objective = options_.objective;
  SustainedOptions sustained;
  sustained.limit_s = first ? objective.sustain_first_s : objective.sustain_again_s;
  sustained.window_s = objective.sustain_window_s;
  sustained.max_temperature_c = objective.max_temperature_c;
  put_on(contender);
  if (!reports_heat(monitor_.read_sensors())) {
    return "the card stopped reporting its temperature and its clock";
  }
  const SustainedWindow window =
      measure_sustained(monitor_, work_[contender], time_us, sustained, [&] { put_on(contender); });
  if (window.median_us && !window.steady) {
    turn.note =
        fmt::format("temperature, clock or launches still moved after {:.0f} s of this work", sustained.limit_s);
  }
  turn.value = window.median_us.value_or(0);
  return window.why_not;
}

}  // namespace pascaline
