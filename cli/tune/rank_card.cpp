#include "cli/tune/rank_card.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/error.hpp"
#include "core/util/suggestion.hpp"
#include "db/stored_probe.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline::cli {
namespace {

// The device of that name that was probed last.
DeviceRow probed_row(const Store& store, const std::string& name) {
  std::vector<std::string> names;
  for (const StoredProbe& stored : store.probes(nullptr)) {
    if (stored.device.name == name && stored.device.kind == "cuda") {
      return stored.device;
    }
    if (stored.device.kind == "cuda") {
      names.push_back(stored.device.name);
    }
  }
  throw Error(fmt::format("{} knows no GPU called '{}' that was probed{}; run pascaline probe on it",
                          store.file().string(), name, did_you_mean(name, names)));
}

// "sm_61" of "6.1".
std::string architecture_of(const DeviceRow& device) {
  std::string digits = device.compute_capability;
  std::erase(digits, '.');
  return "sm_" + digits;
}

RankCard probed_card(const RankCommandOptions& options) {
  const Store store(database_path(options.database), OpenMode::read_only);
  const DeviceRow device = probed_row(store, options.device_name);
  const auto typical = typical_rates(device.compute_capability, stored_limits(device, DeviceLimits{}));
  if (!typical) {
    throw Error(fmt::format("nothing is known of compute capability '{}' of {}", device.compute_capability,
                            options.device_name));
  }
  const MeasuredRates measured = store.measured_rates(device);
  RankCard card{architecture_of(device), *typical, sm61::sm_rates(measured), true};
  use_measured(card.rates, measured);
  return card;
}

RankCard typical_card(const RankCommandOptions& options) {
  auto limits = limits_of_architecture(options.architecture);
  if (!limits) {
    throw Error(fmt::format("unknown architecture '{}': it is one of {}", options.architecture, known_architectures()));
  }
  limits->sm_count = options.sm_count > 0 ? options.sm_count : limits->sm_count;
  return {options.architecture, typical_rates(options.architecture, *limits).value(), {}, false};
}

}  // namespace

RankCard rank_card(const RankCommandOptions& options) {
  RankCard card = options.device_name.empty() ? typical_card(options) : probed_card(options);
  options.adjust(card.rates);
  return card;
}

}  // namespace pascaline::cli
