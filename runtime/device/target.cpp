#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/argument_error.hpp"
#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/cuda/jit_link.hpp"

namespace pascaline {
namespace {

// The number of "sm_61", 0 if it is not such a name.
int number_of(const std::string& architecture) {
  int number = 0;
  if (architecture.starts_with("sm_")) {
    const char* end = architecture.data() + architecture.size();
    const auto parsed = std::from_chars(architecture.data() + 3, end, number);
    number = parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
  }
  return number;
}

}  // namespace

CompileTarget compile_target(const DeviceInfo& device, const std::string& target) {
  CompileTarget plan{device.architecture, BinaryKind::cubin, device.limits};
  if (device.kind == DeviceKind::emulator) {
    plan.kind = BinaryKind::host_object;
  }
  if (target.empty() || stored_architecture(target) == device.architecture) {
    return plan;
  }
  const std::optional<DeviceLimits> limits = limits_of_architecture(target);
  if (!limits) {
    throw ArgumentError(fmt::format("'{}' is not an architecture Pascaline knows the limits of; it is one of {}",
                                    target, known_architectures()));
  }
  plan.limits = tighter(device.limits, *limits);
  if (device.kind == DeviceKind::emulator) {
    return plan;
  }
  if (number_of(target) > number_of(device.architecture)) {
    throw ArgumentError(
        fmt::format("{} ({}) is {}, which cannot run code for {}; choose a target that is not newer than it", device.id,
                    device.name, device.architecture, target));
  }
  plan.architecture = target;
  plan.kind = BinaryKind::ptx;
  std::string version = cuda_of_driver(device.driver_version);
  if (std::string library = find_jit_link(version); !library.empty()) {
    plan.translation = {device.architecture, std::move(library), std::move(version)};
  }
  return plan;
}

}  // namespace pascaline
