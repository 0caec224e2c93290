#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/command.hpp"
#include "core/device/device_rates.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline::cli {

/// What `pascaline rank` was asked for.
struct RankCommandOptions {
  KernelOptions kernel;
  std::string architecture = "sm_61";
  std::string device_name;  ///< of a probed device; empty: a typical one
  std::string database;     ///< that knows it
  int sm_count = 0;         ///< 0: the architecture's
  double clock_mhz = 0;     ///< 0: the card's
  double memory_gbps = 0;   ///< …
  std::size_t top = 20;
  std::size_t compile = 0;
  std::uint64_t sample = 20'000;
  std::string against;
  std::size_t min_trials = 10;
  std::string cache;
  VariantOptions variants;
  bool as_json = false;

  /// Puts the rates that were given in place of the card's.
  void adjust(DeviceRates& rates) const {
    rates.clock_mhz = clock_mhz > 0 ? clock_mhz : rates.clock_mhz;
    rates.memory_gbps = memory_gbps > 0 ? memory_gbps : rates.memory_gbps;
  }
};

}  // namespace pascaline::cli
