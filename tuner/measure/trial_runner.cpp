#include "tuner/measure/trial_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "model/fusion/site_space.hpp"
#include "tuner/measure/agreement.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

TrialRunner::TrialRunner(DeviceMonitor& monitor, const BoundSpace& space, std::optional<ReferenceRun> reference,
                         MeasureOptions options, std::uint64_t seed)
    : monitor_(&monitor),
      device_(&monitor.device()),
      space_(&space),
      measured_(space.measured()),
      reference_(std::move(reference)),
      options_(options),
      seed_(seed) {}

TrialRunner::TrialRunner(DeviceMonitor& monitor, const BoundSpace& space, const Binary& reference,
                         MeasureOptions options, std::uint64_t seed)
    : TrialRunner(monitor, space, ReferenceRun{reference, untuned_config(space)}, options, seed) {}

TrialRunner::TrialRunner(DeviceMonitor& monitor, const BoundSpace& site, DispatcherOptions kernels,
                         MeasureOptions options, std::uint64_t seed)
    : TrialRunner(monitor, site, std::nullopt, options, seed) {
  kernels_ = std::move(kernels);
}

TimedWork TrialRunner::Ready::work(Device& device) {
  if (kernels.size() == 1) {
    return {[this, &device] { launch_all(device, kernels, geometries, *arguments); },
            [this, &device](bool cold_cache) {
              return device.time_launch_us(kernels.front(), geometries.front(), arguments->pointers(), cold_cache);
            }};
  }
  if (!kernels.empty()) {
    // A driver may load code at its first launch, but not while it records.
    launch_all(device, kernels, geometries, *arguments);
    device.synchronize();
    graph = device.record([&] { launch_all(device, kernels, geometries, *arguments); });
  }
  return {[this, &device] { device.launch(graph); },
          [this, &device](bool cold_cache) { return device.time_launch_us(graph, cold_cache); }};
}

void TrialRunner::phase(std::string_view name) const {
  if (phase_) {
    phase_(name);
  }
}

void TrialRunner::give(GivenData given) {
  given_ = std::move(given);
  run_whole_shape();
}

void TrialRunner::prepare() {
  if (data_ || site_) {
    return;
  }
  if (!kernels_) {
    require_reference_fits(measured_, reference_.value());
  }
  phase("inputs");
  if (kernels_) {
    auto site = std::make_unique<SiteBench>(*device_, *kernels_, space_->problem(), seed_, drawing_);
    site->prepare();
    site_ = std::move(site);
    return;
  }
  data_.emplace(*device_, measured_, load_launches(*device_, reference_->binary), reference_->config, drawing_, given_);
  try {
    data_->draw(seed_);
  } catch (const ReferenceError&) {
    data_.reset();
    throw;
  }
  weak_checks_ = data_->weak_checks();
  draws_ms_ += data_->draw_ms();
}

// Every trial gets fresh inputs where drawing them and computing the reference is cheap; where it is not (a large
// problem on a card with slow float64), inputs are kept until drawing has cost less than a tenth of the trials.
void TrialRunner::refresh_inputs() {
  if (draws_ms_ > trials_ms_ / 10 || !data_->draws()) {
    return;
  }
  phase("inputs");
  data_->draw(++seed_);
  draws_ms_ += data_->draw_ms();
}

TrialRunner::Ready TrialRunner::make_ready(const Config& config, const Binary& binary) {
  given_.require_unchanged();
  prepare();
  phase("load");
  if (site_) {
    const std::string alternative = alternative_of(config);
    if (const auto why = site_->build(alternative)) {
      throw EmulatorError(why->second);
    }
    site_->run(alternative);
    return {config, {}, {}, std::nullopt, site_->record(alternative)};
  }
  const auto load = [&]() -> Ready {
    Ready ready{config, load_launches(*device_, binary), measured_.geometries(config),
                LaunchArguments(*device_, measured_, config, data_->buffers())};
    std::ignore = ready.arguments->copy_variables(*device_, ready.kernels);
    return ready;
  };
  try {
    return load();
  } catch (const Error& error) {
    if (!is_out_of_memory(error) || !data_->free_expected()) {
      throw;
    }
  }
  return load();
}

Trial TrialRunner::run(const Config& config, const Compiled& compiled, double best_us) {
  given_.require_unchanged();
  const auto start = Clock::now();
  gave_up_ = false;
  cut_short_ = false;
  Trial trial = blank_trial(*space_, config, compiled.result.binary);
  trial.status = compiled.status;
  trial.reason = compiled.result.reason;
  agrees_with_.reset();
  wrong_outputs_.clear();
  if (compiled.status == TrialStatus::ok) {
    run_compiled(trial, compiled.result.binary, best_us);
    find_agreement(config, compiled.result.binary);
  }
  trials_ms_ += ms_since(start);
  return trial;
}

void TrialRunner::run_compiled(Trial& trial, const Binary& binary, double best_us) {
  const auto too_large =
      kernels_ ? std::nullopt : exceeds_limits(*space_, space_->space().launches, trial.config, binary);
  if (too_large) {
    trial.status = TrialStatus::rejected;
    trial.reason = *too_large;
    return;
  }
  try {
    prepare();  // what else fails here is the problem's or the machine's fault, not the configuration's
  } catch (const ReferenceError& error) {
    trial.status = TrialStatus::rejected;
    trial.reason = error.what();
    return;
  }
  trial.status = TrialStatus::launch_failed;
  try {
    if (site_) {
      build_and_time_site(trial, best_us);
    } else {
      load_verify_measure(trial, binary, best_us);
    }
  } catch (const ReferenceError& error) {  // with other inputs than before
    trial.status = TrialStatus::rejected;
    trial.reason = error.what();
    data_.reset();
  } catch (const CudaError& error) {
    trial.reason = error.what();
    recover();
  } catch (const EmulatorError& error) {
    trial.reason = error.what();
    recover();
  }
}

void TrialRunner::load_verify_measure(Trial& trial, const Binary& binary, double best_us) {
  const auto verify_start = Clock::now();
  Ready ready = make_ready(trial.config, binary);
  trial.load_ms = ms_since(verify_start);
  const double draws_before_ms = draws_ms_;
  refresh_inputs();
  trial.inputs_ms = draws_ms_ - draws_before_ms;
  const bool right = verify(trial, ready);
  trial.verify_ms = ms_since(verify_start);
  if (!right) {
    // An element without a number, or unwritten, is the configuration's own fault.
    if (trial.max_error) {
      wrong_outputs_ = data_->outputs();
      if (!std::ranges::all_of(wrong_outputs_, [](const std::vector<double>& values) {
            return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
          })) {
        wrong_outputs_.clear();
      }
    }
    data_->restore_inputs();  // it may have written anywhere
    trial.status = TrialStatus::wrong_result;
    return;
  }
  time(trial, ready, best_us);
}

void TrialRunner::time(Trial& trial, Ready& ready, double best_us) {
  phase("measure");
  const auto start = Clock::now();
  Measured measured = measure(*monitor_, ready.work(*device_), options_, best_us, noise_);
  trial.measure_ms = ms_since(start);
  gave_up_ = measured.gave_up;
  cut_short_ = measured.cut_short;
  take_measured(trial, std::move(measured), options_, best_us);
  if (has_time(trial.status)) {
    noise_.add(trial.samples);
  }
}

// The earlier ones are launched again, as inputs may be others since. One that now fails, or for which there is no
// memory, is of no use any more.
void TrialRunner::find_agreement(const Config& config, const Binary& binary) {
  if (wrong_outputs_.empty()) {
    return;
  }
  try {
    for (const auto& [other, code] : wrong_) {
      Ready ready = make_ready(other, code);
      launch(ready, kPoisons.front());
      if (data_->agrees_with(wrong_outputs_)) {
        agrees_with_ = other;
        break;
      }
    }
  } catch (const Error&) {
    wrong_.clear();
    recover();
    return;
  }
  data_->restore_inputs();
  if (!agrees_with_ && wrong_.size() < kMaxWrongResults) {
    wrong_.emplace_back(config, binary);
    agrees_with_ = config;
  }
}

void TrialRunner::launch(Ready& ready, std::uint8_t poison) {
  data_->poison_outputs(poison);
  ready.arguments->refill_scratch(*device_, poison);
  launch_prepared(ready);
}

void TrialRunner::launch_prepared(const Ready& ready) {
  phase("launch");
  std::ignore = ready.arguments->copy_variables(*device_, ready.kernels);
  launch_all(*device_, ready.kernels, ready.geometries, *ready.arguments);
  device_->synchronize();
  phase("check");
}

// A second launch, over other bytes and on the zeroed scratch as the first left it: so does the dispatcher launch it.
void TrialRunner::launch_again(Ready& ready) {
  for (const LaunchArguments::Scratch& scratch : ready.arguments->scratch()) {
    if (scratch.fill == Fill::none) {
      device_->fill(scratch.buffer, kPoisons.back());
    }
  }
  data_->poison_outputs(kPoisons.back());
  launch_prepared(ready);
}

bool TrialRunner::needs_second_launch(const Ready& ready) {
  const auto& scratch = ready.arguments->scratch();
  return data_->poison_may_pass() || std::any_of(scratch.begin(), scratch.end(), [this](const auto& one) {
           return one.fill == Fill::none || device_->checksum(one.buffer) != 0;
         });
}

// Sets the reason and returns false if the kernel computes something else or writes where it must not.
bool TrialRunner::verify(Trial& trial, Ready& ready) {
  launch(ready, kPoisons.front());
  if (!check_launch(trial, ready)) {
    return false;
  }
  if (!needs_second_launch(ready)) {
    return true;
  }
  launch_again(ready);
  const bool right = check_launch(trial, ready);
  trial.reason += right ? ""
                        : ", although its first launch was right: it reads what it has not written or what that launch "
                          "left in scratch, or leaves elements unwritten";
  return right;
}

bool TrialRunner::check_launch(Trial& trial, const Ready& ready) {
  if (const std::string name = data_->damaged_guard(); !name.empty()) {
    trial.reason = fmt::format("wrote outside of buffer '{}'", name);
    return false;
  }
  for (const LaunchArguments::Scratch& scratch : ready.arguments->scratch()) {
    const std::string& name = space_->space().arguments[scratch.argument].name;
    if (!device_->guards_intact(scratch.buffer)) {
      trial.reason = fmt::format("wrote outside of scratch buffer '{}'", name);
      return false;
    }
  }
  if (const std::string name = data_->changed_input(); !name.empty()) {
    trial.reason = fmt::format("wrote to the input buffer '{}'", name);
    return false;
  }
  const ProblemData::Check check = data_->check_outputs();
  trial.max_error = check.max_error;
  if (!check.passed()) {
    trial.reason =
        fmt::format("error {:.3g} above the tolerance {:.3g} at {}", check.max_error, check.tolerance, check.where);
    return false;
  }
  return true;
}

// A site is verified before its chain is recorded, which must have run once.
void TrialRunner::build_and_time_site(Trial& trial, double best_us) {
  const auto start = Clock::now();
  phase("load");
  const std::string alternative = alternative_of(trial.config);
  if (const auto why = site_->build(alternative)) {
    trial.status = why->first;
    trial.reason = why->second;
    return;
  }
  phase("launch");
  site_->run(alternative);
  phase("check");
  const SiteTensors::Difference difference = site_->difference();
  trial.max_error = difference.error;
  trial.verify_ms = ms_since(start);
  if (!(difference.error <= site_->tolerance())) {
    trial.status = TrialStatus::wrong_result;
    trial.reason = fmt::format(
        "differs from the operations by themselves by {:.3g} of the largest value, above the "
        "tolerance {:.3g}, at {}",
        difference.error, site_->tolerance(), difference.where);
    return;
  }
  Ready ready{trial.config, {}, {}, std::nullopt, site_->record(alternative)};
  time(trial, ready, best_us);
}

// After a launch that failed the context may be lost, and with it every buffer.
void TrialRunner::recover() {
  data_.reset();
  site_.reset();
  try {
    device_->reset();
  } catch (const DeviceLostError&) {
    lost_ = true;
  }
}

}  // namespace pascaline
