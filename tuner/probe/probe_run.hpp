#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/device/probe.hpp"
#include "db/store.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// What is to be measured, and how.
struct ProbeOptions {
  std::vector<ProbePart> only;  ///< empty: all parts
  double seconds = 60;          ///< for all parts, about; compiling is not counted
  std::string target;           ///< architecture that code is made for; empty: the device's own
  std::string nvrtc;
  std::filesystem::path kernels;  ///< folder of the probe's kernels
  std::filesystem::path cache;
  std::function<void(ProbePart)> on_part;  ///< called before each; may be empty
};

/// What was found, and what built the code for it.
struct ProbeOutcome {
  Probe probe;
  ToolkitRow toolkit;
};

/// Why a part cannot be measured on that kind of device, whatever it is asked with; empty if it can. The emulator runs
/// kernels on the processor: memory and launches are timed there, nothing that speaks of an SM.
[[nodiscard]] std::string why_not_on(DeviceKind kind, ProbePart part);

/// Measures the device's parts one after the other. A part that cannot be measured, for want of memory or because its
/// kernels do not compile, too, is left out with the reason. Nothing
/// if `stop` was set meanwhile: half a probe is none. Throws Error without a compiler for the target, CudaError or
/// EmulatorError if the device fails.
[[nodiscard]] std::optional<ProbeOutcome> run_probe(Device& device, const ProbeOptions& options,
                                                    const std::atomic<bool>& stop);

}  // namespace pascaline
