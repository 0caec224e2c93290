#include "core/device/device_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <utility>

namespace pascaline {
namespace {

// Of one multiprocessor; NVIDIA's table of arithmetic throughput per compute capability, and published measurements of
// latencies.
struct ArchitectureRates {
  int capability;  // major times ten and minor
  double clock_mhz;
  double gbps_per_sm;
  double l2_bytes;
  double shared_latency;
  double global_latency;
  double arithmetic_latency;
};

constexpr std::array<ArchitectureRates, 12> kArchitectureRates{{
    {50, 1100, 16, 32, 24, 400, 6},
    {52, 1100, 14, 32, 24, 400, 6},
    {60, 1400, 12, 32, 24, 400, 6},
    {61, 1650, 16, 32, 24, 400, 6},
    {62, 1300, 25, 32, 24, 400, 6},
    {70, 1500, 11, 32, 19, 400, 4},
    {75, 1700, 11, 32, 19, 400, 4},
    {80, 1400, 15, 48, 23, 450, 4},
    {86, 1750, 11, 32, 23, 450, 4},
    {87, 1300, 12, 32, 23, 450, 4},
    {89, 2500, 8, 32, 23, 450, 4},
    {90, 1800, 36, 32, 29, 550, 4},
}};

// Float32 lanes of an SM by compute capability, from the CUDA Programming Guide's table of arithmetic throughput.
constexpr std::array<std::pair<int, double>, 17> kFp32Lanes{{{50, 128},
                                                             {52, 128},
                                                             {53, 128},
                                                             {60, 64},
                                                             {61, 128},
                                                             {62, 128},
                                                             {70, 64},
                                                             {72, 64},
                                                             {75, 64},
                                                             {80, 64},
                                                             {86, 128},
                                                             {87, 128},
                                                             {89, 128},
                                                             {90, 128},
                                                             {100, 128},
                                                             {103, 128},
                                                             {120, 128}}};

// Lanes of dp4a: of 6.1 and 6.2 by NVIDIA's white papers (four times the float32 rate), of 9.0 as measured on an H200.
constexpr std::array<std::pair<int, double>, 3> kDp4aLanes{{{61, 128}, {62, 128}, {90, 64}}};

// Pascal cards of compute capability 6.1, by SM count: boost clock and bandwidth of the usual product.
struct Product {
  std::int64_t sm_count;
  double clock_mhz;
  double memory_gbps;
};

constexpr std::array<Product, 10> kPascalProducts{{
    {30, 1531, 347},
    {28, 1582, 484},
    {20, 1733, 320},
    {19, 1683, 256},
    {16, 1645, 256},
    {15, 1683, 256},
    {10, 1708, 192},
    {9, 1708, 192},
    {6, 1392, 112},
    {3, 1550, 50},
}};

// 61 of "sm_61", "compute_61" and "6.1".
std::optional<int> capability_of(std::string_view text) {
  std::string digits;
  const std::size_t underscore = text.find('_');
  if (underscore != std::string_view::npos) {
    if (text.substr(0, underscore) != "sm" && text.substr(0, underscore) != "compute") {
      return std::nullopt;
    }
    digits = text.substr(underscore + 1);
  } else {
    const std::size_t point = text.find('.');
    if (point == std::string_view::npos) {
      return std::nullopt;
    }
    digits = std::string(text.substr(0, point)) + std::string(text.substr(point + 1));
  }
  int number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return code == std::errc{} && end == digits.data() + digits.size() && number > 0 ? std::optional(number)
                                                                                   : std::nullopt;
}

std::optional<double> lanes_of(std::span<const std::pair<int, double>> table, std::string_view architecture) {
  const std::optional<int> capability = capability_of(architecture);
  for (const auto& [known, lanes] : table) {
    if (capability == known) {
      return lanes;
    }
  }
  return std::nullopt;
}

}  // namespace

double DeviceRates::peak_gflops() const noexcept {
  return 2 * fp32_lanes * static_cast<double>(limits.sm_count) * clock_mhz / 1e3;
}

std::optional<double> DeviceRates::peak_int8_gops() const noexcept {
  if (!dp4a_lanes) {
    return std::nullopt;
  }
  return 8 * *dp4a_lanes * static_cast<double>(limits.sm_count) * clock_mhz / 1e3;
}

std::optional<double> fp32_lanes_of(std::string_view architecture) { return lanes_of(kFp32Lanes, architecture); }

std::optional<double> dp4a_lanes_of(std::string_view architecture) { return lanes_of(kDp4aLanes, architecture); }

std::optional<DeviceRates> typical_rates(std::string_view architecture, const DeviceLimits& limits) {
  const std::optional<int> capability = capability_of(architecture);
  if (!capability) {
    return std::nullopt;
  }
  // An architecture that is not listed is taken for the last one before it.
  const ArchitectureRates* known = &kArchitectureRates.front();
  for (const ArchitectureRates& row : kArchitectureRates) {
    known = row.capability <= *capability ? &row : known;
  }
  DeviceRates rates;
  rates.limits = limits;
  for (const auto& [listed, lanes] : kFp32Lanes) {
    rates.fp32_lanes = listed <= *capability ? lanes : rates.fp32_lanes;
  }
  rates.dp4a_lanes.reset();
  for (const auto& [listed, lanes] : kDp4aLanes) {
    if (listed == *capability) {
      rates.dp4a_lanes = lanes;
    }
  }
  rates.clock_mhz = known->clock_mhz;
  rates.memory_gbps = known->gbps_per_sm * static_cast<double>(std::max<std::int64_t>(1, limits.sm_count));
  rates.l2_bytes = known->l2_bytes;
  rates.shared_latency = known->shared_latency;
  rates.global_latency = known->global_latency;
  rates.arithmetic_latency = known->arithmetic_latency;
  for (const Product& product : kPascalProducts) {
    if (*capability == 61 && product.sm_count == limits.sm_count) {
      rates.clock_mhz = product.clock_mhz;
      rates.memory_gbps = product.memory_gbps;
      rates.of_product = true;
    }
  }
  return rates;
}

void use_measured(DeviceRates& rates, const MeasuredRates& measured) {
  using Quantity = ProbeQuantity;
  const auto take = [&](double& rate, Quantity quantity) { rate = measured.of(quantity).value_or(rate); };
  take(rates.clock_mhz, Quantity::sm_clock_mhz);
  take(rates.fp32_lanes, Quantity::ffma_per_clock);
  take(rates.shared_bytes, Quantity::shared_bytes_per_clock);
  take(rates.l2_bytes, Quantity::l2_bytes_per_clock);
  take(rates.shared_latency, Quantity::shared_latency);
  take(rates.arithmetic_latency, Quantity::ffma_latency);
  take(rates.launch_us, Quantity::launch_us);
  rates.dp4a_lanes = measured.of(Quantity::dp4a_per_clock) ? measured.of(Quantity::dp4a_per_clock) : rates.dp4a_lanes;
  const auto read = measured.of(Quantity::read_gbps);
  const auto copied = measured.of(Quantity::copy_gbps);
  if (read || copied) {
    rates.memory_gbps = std::max(read.value_or(0), copied.value_or(0));
  }
  const auto hit = measured.of(Quantity::l2_latency);
  const auto miss = measured.of(Quantity::memory_latency);
  if (hit && miss) {
    rates.global_latency = (*hit + *miss) / 2;
  }
  rates.measured_clock = measured.of(Quantity::sm_clock_mhz).has_value();
  rates.measured_memory = read || copied;
}

std::string source_of(const DeviceRates& rates, std::string_view architecture) {
  constexpr std::string_view kMeasured = "measured by pascaline probe";
  if (rates.measured_clock && rates.measured_memory) {
    return std::string(kMeasured);
  }
  const std::string typical = rates.of_product ? "of the common product of that size"
                                               : fmt::format("typical of compute capability {}", architecture);
  if (rates.measured_clock) {
    return fmt::format("clock {}, memory {}; memory not measured", kMeasured, typical);
  }
  if (rates.measured_memory) {
    return fmt::format("memory {}, {}clock {}; clock not measured", kMeasured, rates.of_product ? "boost " : "",
                       typical);
  }
  return rates.of_product ? "boost clock and memory of the common product of that size; not measured"
                          : typical + "; not measured";
}

}  // namespace pascaline
