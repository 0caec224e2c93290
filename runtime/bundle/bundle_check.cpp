#include "runtime/bundle/bundle_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "core/space/space.hpp"
#include "runtime/bundle/bundle_format.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

// The number of "sm_61"; 0 if there is none.
int architecture_number(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (architecture.starts_with(kPrefix)) {
    std::from_chars(architecture.data() + kPrefix.size(), architecture.data() + architecture.size(), number);
  }
  return number;
}

bool can_run(const Bundle& bundle, const DeviceInfo& device) {
  const bool on_host = device.kind == DeviceKind::emulator;
  if (on_host != (bundle.kind == BinaryKind::host_object)) {
    return false;
  }
  if (bundle.kind == BinaryKind::ptx) {
    const int number = architecture_number(bundle.architecture);
    return number > 0 && number <= architecture_number(device.architecture);
  }
  return bundle.architecture == device.architecture;
}

std::string device_text(const DeviceRow& row) {
  return fmt::format("{} ({}{} multiprocessors)", row.name,
                     row.compute_capability.empty() ? "" : row.compute_capability + ", ", row.sm_count);
}

// The value of `NAME=value` as one of the parameter's values.
bool is_value_of(const Parameter& parameter, std::string_view text) {
  return std::any_of(parameter.values.begin(), parameter.values.end(),
                     [&](const Value& value) { return to_text(value) == text; });
}

// What `BoundSpace::defines` can give: parameters, then derived macros, then types, in the space's order.
void check_defines(const Space& space, const BundleCode& code) {
  std::size_t next = 0;
  const auto value_of = [&](const std::string& name) -> std::string_view {
    if (next == code.defines.size() || !code.defines[next].starts_with(name + "=")) {
      throw Error(fmt::format("its code lacks the macro {}, which the search space has", name));
    }
    return std::string_view(code.defines[next++]).substr(name.size() + 1);
  };
  for (const Parameter& parameter : space.parameters) {
    if (!parameter.option.empty()) {
      continue;
    }
    if (const std::string_view value = value_of(parameter.name); !is_value_of(parameter, value)) {
      throw Error(fmt::format("its code has {}={}, which is not among the parameter's values", parameter.name, value));
    }
  }
  for (const DerivedMacro& macro : space.derived) {
    const std::string_view value = value_of(macro.name);
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (fault != std::errc{} || end != value.data() + value.size()) {
      throw Error(fmt::format("its code has {}={}, which is not an integer", macro.name, value));
    }
  }
  for (const TypeVariable& variable : space.types) {
    const std::string_view value = value_of(variable.name);
    const auto type = element_type_from(value);
    if (!type || std::find(variable.allowed.begin(), variable.allowed.end(), *type) == variable.allowed.end()) {
      throw Error(fmt::format("its code has {}={}, which is not a type of the search space", variable.name, value));
    }
  }
  if (next != code.defines.size()) {
    throw Error(fmt::format("its code has a macro {}, which the search space lacks", code.defines[next]));
  }
}

// What `BoundSpace::options` can give: at most one of each option parameter, in the space's order.
void check_options(const Space& space, const BundleCode& code) {
  std::size_t next = 0;
  for (const Parameter& parameter : space.parameters) {
    if (parameter.option.empty() || next == code.options.size()) {
      continue;
    }
    const std::string& option = code.options[next];
    if (option.starts_with(parameter.option) &&
        is_value_of(parameter, std::string_view(option).substr(parameter.option.size()))) {
      ++next;
    }
  }
  if (next != code.options.size()) {
    throw Error(fmt::format("its code was compiled with {}, which the search space does not have", code.options[next]));
  }
}

void check_winner(const Space& space, const BundleWinner& winner, const DeviceLimits& limits) {
  try {
    const BoundSpace bound(space, winner.problem, limits);
    if (const auto why = bound.why_invalid(winner.config)) {
      throw Error(*why);
    }
  } catch (const Error& error) {
    throw Error(
        fmt::format("the winner {} of {} is not valid: {}", winner.config.text(), winner.problem.text(), error.what()));
  }
}

void check_kernel(const BundleKernel& kernel, const std::filesystem::path& kernels, const std::filesystem::path& spaces,
                  const DeviceLimits& limits) {
  const Space space = Space::load(kernel_file(spaces, kernel.name, ".json"));
  const KernelSource source = KernelSource::load(kernel_file(kernels, kernel.name, ".cu"), space);
  if (kernel.source_hash != source.hash) {
    throw Error(fmt::format("it was made for another version of the kernel ({:.8}, here {:.8})", kernel.source_hash,
                            source.hash));
  }
  if (kernel.space_hash != space.hash) {
    throw Error(fmt::format("it was made for another version of the search space ({:.8}, here {:.8})",
                            kernel.space_hash, space.hash));
  }
  if (kernel.function != space.launches.front().function) {
    throw Error(fmt::format("its code is of function {}, the search space's is {}", kernel.function,
                            space.launches.front().function));
  }
  for (const BundleWinner& winner : kernel.winners) {
    check_winner(space, winner, limits);
  }
  for (const BundleCode& code : kernel.codes) {
    check_defines(space, code);
    check_options(space, code);
  }
}

[[noreturn]] void refuse_other_device(const Bundle& bundle, const std::string& file, const std::string& id,
                                      const DeviceRow& here) {
  const bool tuned = std::any_of(bundle.kernels.begin(), bundle.kernels.end(),
                                 [](const BundleKernel& kernel) { return !kernel.winners.empty(); });
  const std::string made = device_text(*bundle.device);
  const std::string own = device_text(here);
  if (tuned) {
    bundle_format::refuse(file, fmt::format("its winners were measured on {}, and {} is {}; make one from a "
                                            "database of this device, or use the winners as they are with --any-device",
                                            made, id, own));
  }
  bundle_format::refuse(file, fmt::format("it has no winners, and its configurations and code are for the limits of "
                                          "{}, and {} is {}; make one for this device (pascaline bundle), or use "
                                          "it as it is with --any-device",
                                          made, id, own));
}

}  // namespace

CompileTarget check_bundle_device(const Bundle& bundle, const std::string& file, const DeviceInfo& device,
                                  bool any_device) {
  if (!can_run(bundle, device)) {
    bundle_format::refuse(
        file, fmt::format("its code is {} for {}, and {} ({}) is {}; make one with pascaline "
                          "bundle --arch {}",
                          bundle.kind == BinaryKind::ptx ? "PTX" : "machine code",
                          shown_architecture(bundle.architecture), device.id, device.name,
                          shown_architecture(device.architecture), shown_architecture(device.architecture)));
  }
  const DeviceRow here = device_row(device);
  if (bundle.device && !any_device && !same_identity(*bundle.device, here)) {
    refuse_other_device(bundle, file, device.id, here);
  }
  return {bundle.architecture, bundle.kind, tighter(bundle.limits, device.limits)};
}

void check_bundle_kernels(const Bundle& bundle, const std::string& file, const std::filesystem::path& kernels,
                          const std::filesystem::path& spaces, const DeviceLimits& limits) {
  for (const BundleKernel& kernel : bundle.kernels) {
    try {
      check_kernel(kernel, kernels, spaces, limits);
    } catch (const Error& error) {
      bundle_format::refuse(file, fmt::format("kernel '{}': {}; make it again with this program's kernels "
                                              "(pascaline bundle)",
                                              kernel.name, error.what()));
    }
  }
}

}  // namespace pascaline
