#pragma once

#include <string>

#include "cli/tune/rank_options.hpp"
#include "core/device/device_rates.hpp"
#include "runtime/device/sm61/sm_model.hpp"

namespace pascaline::cli {

/// The card that configurations are ranked for.
struct RankCard {
  std::string architecture;  ///< "sm_61"
  DeviceRates rates;
  sm61::SmRates sm_rates;
  bool probed = false;  ///< some of the rates may be measured
};

/// The device of `--device-name` as it was probed, or a typical one of `--arch`, with the rates that were given. Throws
/// Error if there is no such device or architecture.
[[nodiscard]] RankCard rank_card(const RankCommandOptions& options);

}  // namespace pascaline::cli
