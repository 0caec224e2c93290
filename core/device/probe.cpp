#include "core/device/probe.hpp"

#include <algorithm>
#include <cmath>

namespace pascaline {
namespace {

using Quantity = ProbeQuantity;
using Part = ProbePart;

constexpr std::array<ProbeQuantityInfo, kProbeQuantities> kQuantities{{
    {Quantity::sm_clock_mhz, "sm_clock_mhz", Part::clock, "MHz", "SM clock under load"},
    {Quantity::ffma_per_clock, "ffma_per_clock", Part::arithmetic, "per clock and SM", "FFMA"},
    {Quantity::ffma_gflops, "ffma_gflops", Part::arithmetic, "GFLOP/s", "FFMA, all SMs"},
    {Quantity::dp4a_per_clock, "dp4a_per_clock", Part::arithmetic, "per clock and SM", "dp4a"},
    {Quantity::dp4a_gops, "dp4a_gops", Part::arithmetic, "GOP/s", "dp4a, all SMs"},
    {Quantity::shared_bytes_per_clock, "shared_bytes_per_clock", Part::shared, "bytes per clock and SM",
     "shared memory, read"},
    {Quantity::shared_gbps, "shared_gbps", Part::shared, "GB/s", "shared memory, read, all SMs"},
    {Quantity::l2_bytes_per_clock, "l2_bytes_per_clock", Part::l2, "bytes per clock and SM", "L2, read"},
    {Quantity::l2_gbps, "l2_gbps", Part::l2, "GB/s", "L2, read, all SMs"},
    {Quantity::read_gbps, "read_gbps", Part::memory, "GB/s", "device memory, read"},
    {Quantity::copy_gbps, "copy_gbps", Part::memory, "GB/s", "device memory, copied (read and written)"},
    {Quantity::launch_us, "launch_us", Part::launch, "us", "empty kernel, between two events"},
    {Quantity::queued_launch_us, "queued_launch_us", Part::launch, "us", "empty kernel, back to back"},
    {Quantity::graph_launch_us, "graph_launch_us", Part::launch, "us", "empty kernel, in a graph"},
    {Quantity::ffma_latency, "ffma_latency", Part::latency, "clocks", "FFMA"},
    {Quantity::shared_latency, "shared_latency", Part::latency, "clocks", "load from shared memory"},
    {Quantity::l2_latency, "l2_latency", Part::latency, "clocks", "load from L2"},
    {Quantity::memory_latency, "memory_latency", Part::latency, "clocks", "load from device memory"},
    {Quantity::conflict_slots, "conflict_slots", Part::conflicts, "issue slots", "register bank conflict"},
}};

constexpr std::array kParts{Part::clock,  Part::arithmetic, Part::shared,  Part::l2,
                            Part::memory, Part::launch,     Part::latency, Part::conflicts};
constexpr std::array<std::string_view, kParts.size()> kPartNames{"clock",  "arithmetic", "shared",  "l2",
                                                                 "memory", "launch",     "latency", "conflicts"};

}  // namespace

std::span<const ProbeQuantityInfo, kProbeQuantities> probe_quantities() noexcept { return kQuantities; }

const ProbeQuantityInfo& info_of(ProbeQuantity quantity) noexcept {
  return kQuantities[static_cast<std::size_t>(quantity)];
}

std::optional<ProbeQuantity> probe_quantity_from(std::string_view name) noexcept {
  const auto found = std::find_if(kQuantities.begin(), kQuantities.end(),
                                  [&](const ProbeQuantityInfo& info) { return info.name == name; });
  return found == kQuantities.end() ? std::nullopt : std::optional(found->quantity);
}

std::span<const ProbePart> probe_parts() noexcept { return kParts; }

std::string_view name_of(ProbePart part) noexcept { return kPartNames[static_cast<std::size_t>(part)]; }

std::optional<ProbePart> probe_part_from(std::string_view name) noexcept {
  const auto found = std::find(kPartNames.begin(), kPartNames.end(), name);
  return found == kPartNames.end() ? std::nullopt
                                   : std::optional(kParts[static_cast<std::size_t>(found - kPartNames.begin())]);
}

const ProbeValue* Probe::find(ProbeQuantity quantity) const noexcept {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const ProbeValue& value) { return value.quantity == quantity; });
  return found == values.end() ? nullptr : &*found;
}

MeasuredRates measured_rates(std::span<const Probe> probes) {
  MeasuredRates rates;
  std::array<std::int64_t, kProbeQuantities> measured{};
  for (const Probe& probe : probes) {
    for (const ProbeValue& value : probe.values) {
      const auto at = static_cast<std::size_t>(value.quantity);
      const bool later = !rates.values[at] || probe.started_unix_ms > measured[at];
      // A conflict may cost nothing, and then a little less by chance; of all else, what is not above 0 is no rate.
      const bool sensible = value.quantity == ProbeQuantity::conflict_slots || value.median > 0;
      if (value.steady && later && sensible && std::isfinite(value.median)) {
        rates.values[at] = value.median;
        measured[at] = probe.started_unix_ms;
        rates.measured_unix_ms = std::max(rates.measured_unix_ms, probe.started_unix_ms);
      }
    }
  }
  return rates;
}

}  // namespace pascaline
