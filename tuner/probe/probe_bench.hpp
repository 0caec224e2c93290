#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/probe.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device.hpp"
#include "tuner/probe/block_spans.hpp"
#include "tuner/probe/probe_kernels.hpp"
#include "tuner/probe/probe_sampler.hpp"

namespace pascaline {

/// What the parts of a probe share while they measure.
struct ProbeBench {
  Device& device;
  ProbeKernels& kernels;
  ProbeSampler& sampler;
  Probe& probe;           ///< gets what is measured
  int sm = 0;             ///< compute capability of the device, 61 for 6.1; 0 on the emulator
  int code_sm = 0;        ///< … that code is made for
  double schedulers = 4;  ///< of an SM

  [[nodiscard]] std::uint32_t sm_count() const { return static_cast<std::uint32_t>(device.info().limits.sm_count); }
  [[nodiscard]] bool is_emulator() const { return device.info().kind == DeviceKind::emulator; }
  void leave_out(ProbePart part, std::string reason) { probe.left_out.emplace_back(part, std::move(reason)); }
  void add(std::vector<ProbeValue> values) { probe.values.insert(probe.values.end(), values.begin(), values.end()); }
};

/// One launch: its time by the device's events, and the clocks of its SMs.
struct ClockedLaunch {
  double us = 0;
  LaunchClocks clocks;
};

/// A kernel of the probe that tells its clocks (kernel_templates/probe/clocks.cuh).
class ClockedKernel {
 public:
  ClockedKernel(Device& device, const Binary& binary, std::uint32_t blocks, std::uint32_t threads);

  /// Launches and waits. `arguments` are those of the kernel; `spans` and `places` are to be among them.
  [[nodiscard]] ClockedLaunch run(const std::vector<void*>& arguments, bool cold_cache = false);
  void* spans = nullptr;   ///< address on the device: the value of the argument `spans`
  void* places = nullptr;  ///< …

 private:
  Device& device_;
  Kernel kernel_;
  Geometry geometry_;
  Buffer spans_buffer_;
  Buffer places_buffer_;
};

/// How many rounds take about `wanted_us`, if `run` launches so many and returns what they took in microseconds.
[[nodiscard]] int rounds_for(double wanted_us, const std::function<double(int rounds)>& run);

/// A buffer of zeros.
[[nodiscard]] Buffer zeros(Device& device, std::size_t bytes);

// Each measures one part and adds its values, or says why it is left out. Throws ProbeStopped, CudaError or
// EmulatorError.
void measure_clock(ProbeBench& bench);
void measure_arithmetic(ProbeBench& bench);
void measure_shared(ProbeBench& bench);
void measure_l2(ProbeBench& bench);
void measure_memory(ProbeBench& bench);
void measure_launch(ProbeBench& bench);
void measure_latency(ProbeBench& bench);
void measure_conflicts(ProbeBench& bench);

}  // namespace pascaline
