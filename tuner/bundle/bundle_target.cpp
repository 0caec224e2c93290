#include "tuner/bundle/bundle_target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "core/device/emulator_name.hpp"
#include "core/error.hpp"
#include "runtime/bundle/bundle.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

BundleTarget blank_target(const BundleTargetOptions& options) {
  BundleTarget target;
  target.architecture = stored_architecture(options.architecture);
  if (is_emulator_name(options.architecture)) {
    target.kind = BinaryKind::host_object;
    if (options.ptx) {
      throw Error("there is no PTX for the emulated device; leave out --ptx");
    }
    return target;
  }
  target.kind = options.ptx ? BinaryKind::ptx : BinaryKind::cubin;
  const auto limits = limits_of_architecture(options.architecture);
  if (!limits) {
    throw Error(fmt::format("unknown architecture '{}': it is one of {}, or emulator", options.architecture,
                            known_architectures()));
  }
  target.limits = *limits;
  return target;
}

std::string toolkit_target(const BundleTarget& target) {
  Bundle bundle;
  bundle.architecture = target.architecture;
  bundle.kind = target.kind;
  return target_of(bundle);
}

std::string device_text(const DeviceRow& row) { return fmt::format("{} with {} SMs", row.name, row.sm_count); }

std::string found_instead(const std::vector<Winner>& all) {
  std::set<std::string> found;
  for (const Winner& winner : all) {
    found.insert(fmt::format("{} on {}", shown_architecture(winner.toolkit.target), device_text(winner.device)));
  }
  return found.empty() ? "it has no winners" : fmt::format("it has winners for {}", fmt::join(found, "; "));
}

// The one device of the winners.
DeviceRow only_device(const std::filesystem::path& database, const std::vector<Winner>& winners) {
  std::vector<DeviceRow> devices;
  std::vector<std::string> texts;
  for (const Winner& winner : winners) {
    if (std::none_of(devices.begin(), devices.end(),
                     [&](const DeviceRow& known) { return same_identity(known, winner.device); })) {
      devices.push_back(winner.device);
      texts.push_back(device_text(winner.device));
    }
  }
  if (devices.size() > 1) {
    throw Error(fmt::format("{} has winners of several devices: {}; choose one with --device-name and --sm-count",
                            database.string(), fmt::join(texts, ", ")));
  }
  return devices.front();
}

}  // namespace

BundleTarget tuned_target(const std::filesystem::path& database, const BundleTargetOptions& options) {
  BundleTarget target = blank_target(options);
  const std::vector<Winner> all = Store(database, OpenMode::read_only).winners({}, nullptr);
  const std::string wanted = toolkit_target(target);
  std::copy_if(all.begin(), all.end(), std::back_inserter(target.winners), [&](const Winner& winner) {
    return winner.toolkit.target == wanted &&
           (options.device_name.empty() || winner.device.name == options.device_name) &&
           (options.sm_count == 0 || winner.device.sm_count == options.sm_count);
  });
  if (target.winners.empty()) {
    throw Error(
        fmt::format("{} has no winners for {}{}: {}; tune for it (pascaline sweep), or make a bundle of the "
                    "default configurations with --untuned",
                    database.string(), shown_architecture(wanted),
                    options.device_name.empty() ? "" : " on " + options.device_name, found_instead(all)));
  }
  target.device = only_device(database, target.winners);
  const DeviceLimits limits = stored_limits(*target.device, target.limits);
  target.limits = target.kind == BinaryKind::ptx ? tighter(limits, target.limits) : limits;
  target.driver_version = target.winners.front().toolkit.driver_version;
  return target;
}

BundleTarget untuned_target(const BundleTargetOptions& options) {
  BundleTarget target = blank_target(options);
  if (target.kind == BinaryKind::host_object) {
    const DeviceInfo host = open_device("emulator")->info();
    target.limits = host.limits;
    target.device = device_row(host);
  } else if (options.sm_count > 0) {
    target.limits.sm_count = options.sm_count;
  }
  return target;
}

}  // namespace pascaline
