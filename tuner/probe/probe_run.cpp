#include "tuner/probe/probe_run.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "core/device/device_rates.hpp"
#include "core/error.hpp"
#include "core/version.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/probe/probe_bench.hpp"

namespace pascaline {
namespace {

constexpr double kWarmUpSeconds = 2;      // until clocks are those of a busy card
constexpr double kQuantitiesOfTime = 24;  // what is measured for as long each, conflicts being worth six

std::int64_t unix_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

// 61 of "sm_61"; 0 of "host".
int sm_of(const std::string& architecture) {
  int number = 0;
  if (architecture.starts_with("sm_")) {
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  }
  return number;
}

// Each issues an instruction of 32 lanes a clock.
double schedulers_of(const DeviceInfo& info) { return fp32_lanes_of(info.architecture).value_or(128) / 32; }

void warm_up(Device& device, ProbeSampler& sampler) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kWarmUpSeconds);
  while (std::chrono::steady_clock::now() < end) {
    sampler.look();
    for (int i = 0; i < 50; ++i) {
      (void)device.time_canary_us();
    }
  }
}

void measure(ProbeBench& bench, ProbePart part) {
  switch (part) {
    case ProbePart::clock:
      return measure_clock(bench);
    case ProbePart::arithmetic:
      return measure_arithmetic(bench);
    case ProbePart::shared:
      return measure_shared(bench);
    case ProbePart::l2:
      return measure_l2(bench);
    case ProbePart::memory:
      return measure_memory(bench);
    case ProbePart::launch:
      return measure_launch(bench);
    case ProbePart::latency:
      return measure_latency(bench);
    case ProbePart::conflicts:
      return measure_conflicts(bench);
  }
}

// What does not compile, cannot be read or does not fit the device's memory costs its part and not all that was
// measured before it. After any other fault of the device nothing more can be asked of it.
void measure_or_leave_out(ProbeBench& bench, ProbePart part) {
  try {
    measure(bench, part);
  } catch (const Error& error) {
    const bool of_device =
        dynamic_cast<const CudaError*>(&error) != nullptr || dynamic_cast<const EmulatorError*>(&error) != nullptr;
    if (of_device && !is_out_of_memory(error)) {
      throw;
    }
    bench.leave_out(part, error.what());
  }
}

void measure_parts(ProbeBench& bench, const ProbeOptions& options) {
  const auto wanted = [&](ProbePart part) {
    return options.only.empty() || std::find(options.only.begin(), options.only.end(), part) != options.only.end();
  };
  for (const ProbePart part : probe_parts()) {
    if (!wanted(part)) {
      continue;
    }
    if (const std::string why = why_not_on(bench.device.info().kind, part); !why.empty()) {
      bench.leave_out(part, why);
      continue;
    }
    if (options.on_part) {
      options.on_part(part);
    }
    bench.sampler.look();
    measure_or_leave_out(bench, part);
  }
}

}  // namespace

std::string why_not_on(DeviceKind kind, ProbePart part) {
  if (kind == DeviceKind::cuda || part == ProbePart::memory || part == ProbePart::launch) {
    return {};
  }
  return "the emulator runs kernels on the processor, which has no SM, no clocks of one and no register banks";
}

std::optional<ProbeOutcome> run_probe(Device& device, const ProbeOptions& options, const std::atomic<bool>& stop) {
  ProbeKernels kernels(compile_target(device.info(), options.target), options.nvrtc, options.kernels, options.cache);
  ProbeOutcome outcome;
  Probe& probe = outcome.probe;
  probe.device_uuid = device.info().uuid;
  probe.program_version = kVersion;
  probe.started_unix_ms = unix_ms();
  outcome.toolkit = toolkit_row(kernels.toolchain(), kernels.target(), device.info());
  ProbeSampler sampler(device, stop, options.seconds / kQuantitiesOfTime);
  ProbeBench bench{device, kernels, sampler, probe};
  bench.sm = sm_of(device.info().architecture);
  bench.code_sm = sm_of(kernels.target().architecture);
  bench.schedulers = schedulers_of(device.info());
  try {
    if (!bench.is_emulator()) {
      warm_up(device, sampler);
    }
    measure_parts(bench, options);
    sampler.look();
  } catch (const ProbeStopped&) {
    return std::nullopt;
  }
  std::sort(probe.values.begin(), probe.values.end(),
            [](const ProbeValue& a, const ProbeValue& b) { return a.quantity < b.quantity; });
  probe.throttled = sampler.throttled();
  probe.temperature_c = device.read_sensors().temperature_c;
  probe.finished_unix_ms = unix_ms();
  return outcome;
}

}  // namespace pascaline
