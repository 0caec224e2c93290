#include "tuner/measure/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/util/statistics.hpp"

namespace pascaline {
namespace {

constexpr int kMinTrialSamples = Race::kMinSamples;  // that make a trial
constexpr double kCanaryEverySeconds = 0.1;
constexpr int kMaxPauses = 20;  // of one configuration: each mark leads to one, so this bounds the marked samples

int counted_samples(const std::vector<Sample>& samples) {
  return static_cast<int>(
      std::count_if(samples.begin(), samples.end(), [](const Sample& sample) { return sample.counted(); }));
}

/// The samples of one configuration. A stretch is what lies between two canaries: it counts if both were as when
/// steady.
class Sampling {
 public:
  Sampling(DeviceMonitor& monitor, const MeasureOptions& options, const Race& race)
      : monitor_(monitor),
        options_(options),
        race_(race),
        began_s_(monitor.now_s()),
        waited_before_s_(monitor.waited_s()) {
    if (monitor_.canary_age_s() > kCanaryEverySeconds) {
      monitor_.canary();
    }
    note_canary();
  }

  template <typename Take>
  Measured run(const Take& take) {
    while (become_fit()) {
      measured_.samples.push_back(take());
      const bool over = done();
      if (over || monitor_.canary_age_s() >= kCanaryEverySeconds) {
        close_stretch();
      }
      if ((over && done()) || monitor_.time_is_up()) {
        break;
      }
    }
    conclude();
    measured_.wait_ms = waited_ms();
    return std::move(measured_);
  }

 private:
  bool become_fit() {
    if (monitor_.may_measure()) {
      return true;
    }
    if (++pauses_ > kMaxPauses) {
      return false;
    }
    if (!monitor_.wait_until_fit()) {
      measured_.gave_up = !monitor_.time_is_up();
      return false;
    }
    note_canary();
    return true;
  }

  void note_canary() {
    if (monitor_.last_canary_us() && !monitor_.canary_drifted()) {
      canaries_.push_back(*monitor_.last_canary_us());
    }
    stretch_ = measured_.samples.size();
  }

  void close_stretch() {
    if (monitor_.passive() || stretch_ == measured_.samples.size()) {
      return;
    }
    monitor_.canary();
    if (monitor_.canary_drifted()) {
      mark_drifted(measured_.samples, stretch_);
    }
    note_canary();
  }

  [[nodiscard]] double waited_ms() const { return 1000 * (monitor_.waited_s() - waited_before_s_); }

  // What samples are multiplied by, as far as is known.
  [[nodiscard]] double clock_scale() const { return canaries_.empty() ? 1.0 : monitor_.scale_of(canaries_.back()); }

  [[nodiscard]] bool done() {
    const double spent_ms = 1000 * (monitor_.now_s() - began_s_) - waited_ms();
    const SamplingVerdict verdict = judge_samples(measured_.samples, clock_scale(), spent_ms, options_, race_);
    measured_.dropped = verdict == SamplingVerdict::dropped;
    return verdict != SamplingVerdict::more;
  }

  void conclude() {
    measured_.canary_us = canaries_.empty() ? std::nullopt : std::optional(median(canaries_));
    measured_.clock_scale = measured_.canary_us ? monitor_.scale_of(*measured_.canary_us) : 1.0;
    const int count = counted_samples(measured_.samples);
    if (measured_.gave_up || count >= std::min(kMinTrialSamples, options_.max_samples)) {
      return;
    }
    if (monitor_.time_is_up()) {
      measured_.cut_short = true;
      return;
    }
    const auto throttled = std::count_if(measured_.samples.begin(), measured_.samples.end(), [](const Sample& sample) {
      return sample.mark == SampleMark::power_throttle || sample.mark == SampleMark::thermal_throttle;
    });
    const auto all = static_cast<std::ptrdiff_t>(measured_.samples.size());
    if (2 * throttled > all) {
      measured_.unfit = fmt::format(
          "the card slowed down ({}) in {} of {} launches and never in between: the kernel "
          "drives it to its limit; lower the clock, or give --tolerate {}",
          name_of(measured_.samples.back().mark), throttled, all,
          measured_.samples.back().mark == SampleMark::thermal_throttle ? "thermal" : "power");
    } else {
      measured_.gave_up = true;
    }
  }

  DeviceMonitor& monitor_;
  const MeasureOptions& options_;
  const Race& race_;
  double began_s_;
  double waited_before_s_;
  Measured measured_;
  std::vector<double> canaries_;
  std::size_t stretch_ = 0;  // where it begins
  int pauses_ = 0;
};

}  // namespace

SamplingVerdict judge_samples(const std::vector<Sample>& samples, double clock_scale, double spent_ms,
                              const MeasureOptions& options, const Race& race) {
  if (race.lost(samples, clock_scale)) {
    return SamplingVerdict::dropped;
  }
  const int count = counted_samples(samples);
  const bool limited = count >= options.max_samples || (count >= kMinTrialSamples && spent_ms > options.budget_ms);
  const auto is_known = [&] { return relative_half_width(summarize(samples)) <= options.target_half_width; };
  return limited || (count >= options.min_samples && is_known()) ? SamplingVerdict::enough : SamplingVerdict::more;
}

void take_measured(Trial& trial, Measured measured, const MeasureOptions& options, double best_us) {
  trial.warm_up_ms = measured.warm_up_ms;
  trial.evict_ms = measured.evict_ms;
  trial.sample_ms = measured.sample_ms;
  trial.wait_ms = measured.wait_ms;
  trial.samples = std::move(measured.samples);
  trial.canary_us = measured.canary_us;
  trial.clock_scale = measured.clock_scale;
  trial.reason = std::move(measured.unfit);
  if (measured.gave_up || measured.cut_short || !trial.reason.empty()) {
    trial.status = TrialStatus::rejected;
    return;
  }
  trial.time = summarize(trial.samples, trial.clock_scale);
  trial.status = TrialStatus::ok;
  if (measured.dropped) {
    trial.status = TrialStatus::dropped;
    trial.reason =
        fmt::format("slower than the best so far, {:.2f} us, after {} samples (chance of error at most {:g})", best_us,
                    trial.time->count, options.race_error);
  }
}

void mark_drifted(std::vector<Sample>& samples, std::size_t begin) {
  for (std::size_t i = begin; i < samples.size(); ++i) {
    samples[i].mark = samples[i].counted() ? SampleMark::canary_drift : samples[i].mark;
  }
}

namespace {

TimedWork work_of(Device& device, const Kernel& kernel, const Geometry& geometry, std::span<void* const> arguments) {
  return {[&device, &kernel, &geometry, arguments] { device.launch(kernel, geometry, arguments); },
          [&device, &kernel, &geometry, arguments](bool cold_cache) {
            return device.time_launch_us(kernel, geometry, arguments, cold_cache);
          }};
}

}  // namespace

Sample take_sample(DeviceMonitor& monitor, const TimedWork& work, bool cold_cache) {
  Sample sample;
  sample.time_us = work.time_us(cold_cache);
  sample.mark = monitor.check();
  const Sensors& sensors = monitor.last_sensors();
  sample.temperature_c = sensors.temperature_c;
  sample.sm_clock_mhz = sensors.sm_clock_mhz;
  sample.power_w = sensors.power_w;
  return sample;
}

Sample take_sample(DeviceMonitor& monitor, const Kernel& kernel, const Geometry& geometry,
                   std::span<void* const> arguments, bool cold_cache) {
  return take_sample(monitor, work_of(monitor.device(), kernel, geometry, arguments), cold_cache);
}

Measured measure(DeviceMonitor& monitor, const TimedWork& work, const MeasureOptions& options, double best_us,
                 const NoiseScale& noise) {
  const double start_s = monitor.now_s();
  for (int i = 0; i < options.warm_up && !monitor.time_is_up(); ++i) {
    work.launch();
  }
  monitor.device().synchronize();
  const double warm_s = monitor.now_s();
  double timing_s = 0;
  double evict_us = 0;
  const TimedWork watched{work.launch, [&](bool cold_cache) {
                            const double begin_s = monitor.now_s();
                            const double time_us = work.time_us(cold_cache);
                            timing_s += monitor.now_s() - begin_s;
                            evict_us += monitor.device().evict_us();
                            return time_us;
                          }};
  const Race race(best_us, options.race_error, options.target_half_width, noise);
  Sampling sampling(monitor, options, race);
  Measured measured = sampling.run([&] { return take_sample(monitor, watched, options.cold_cache); });
  measured.warm_up_ms = 1000 * (warm_s - start_s);
  measured.evict_ms = evict_us / 1000;
  measured.sample_ms = std::max(0.0, 1000 * timing_s - measured.evict_ms);
  return measured;
}

Measured measure(DeviceMonitor& monitor, const Kernel& kernel, const Geometry& geometry,
                 std::span<void* const> arguments, const MeasureOptions& options, double best_us,
                 const NoiseScale& noise) {
  return measure(monitor, work_of(monitor.device(), kernel, geometry, arguments), options, best_us, noise);
}

}  // namespace pascaline
