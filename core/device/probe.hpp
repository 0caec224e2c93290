#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pascaline {

/// What `pascaline probe` can be asked for, in the order in which it is measured.
enum class ProbePart : std::uint8_t { clock, arithmetic, shared, l2, memory, launch, latency, conflicts };

/// What is measured of a device.
enum class ProbeQuantity : std::uint8_t {
  sm_clock_mhz,            ///< under load
  ffma_per_clock,          ///< float32 multiply-adds of an SM
  ffma_gflops,             ///< of the device, a multiply-add being two
  dp4a_per_clock,          ///< dp4a instructions of an SM
  dp4a_gops,               ///< of the device, a dp4a being eight
  shared_bytes_per_clock,  ///< read by an SM
  shared_gbps,             ///< read by all SMs
  l2_bytes_per_clock,      ///< read by an SM while all read
  l2_gbps,                 ///< read by all SMs
  read_gbps,               ///< of device memory
  copy_gbps,               ///< bytes read and written
  launch_us,               ///< of an empty kernel, between two events
  queued_launch_us,        ///< each, of many that are launched one after the other, as the host sees it
  graph_launch_us,         ///< each, of many in one graph, as the host sees it
  ffma_latency,            ///< clocks until a result may be used
  shared_latency,          ///< clocks of a load that depends on the one before
  l2_latency,              ///< …
  memory_latency,          ///< …
  conflict_slots,          ///< issue slots of a register bank conflict
};
inline constexpr std::size_t kProbeQuantities = static_cast<std::size_t>(ProbeQuantity::conflict_slots) + 1;

/// How a quantity is stored and shown.
struct ProbeQuantityInfo {
  ProbeQuantity quantity;
  std::string_view name;  ///< "sm_clock_mhz": in databases and JSON
  ProbePart part;
  std::string_view unit;   ///< "MHz"
  std::string_view words;  ///< "SM clock under load"
};

/// Every quantity, in the order of the enumeration.
[[nodiscard]] std::span<const ProbeQuantityInfo, kProbeQuantities> probe_quantities() noexcept;
[[nodiscard]] const ProbeQuantityInfo& info_of(ProbeQuantity quantity) noexcept;
[[nodiscard]] std::optional<ProbeQuantity> probe_quantity_from(std::string_view name) noexcept;

/// Every part, in order.
[[nodiscard]] std::span<const ProbePart> probe_parts() noexcept;
[[nodiscard]] std::string_view name_of(ProbePart part) noexcept;
[[nodiscard]] std::optional<ProbePart> probe_part_from(std::string_view name) noexcept;

/// A quantity as it was measured.
struct ProbeValue {
  ProbeQuantity quantity = ProbeQuantity::sm_clock_mhz;
  double median = 0;
  double low = 0;   ///< of the 95 % confidence interval of the median, or of a slope
  double high = 0;  ///< …
  /// How far the middle 80 % of the samples are apart, over the median; 0 for a slope.
  double spread = 0;
  int samples = 0;
  /// Whether it may stand for the device: a spread of a few per cent at most, and no throttling meanwhile. Only such
  /// values are used in place of tables.
  bool steady = true;
  friend bool operator==(const ProbeValue&, const ProbeValue&) = default;
};

/// A loop of FFMA whose register bank conflicts are known from its machine code, and what it took.
struct ProbeChain {
  std::string variant;   ///< "PAIRS=8 TRIPLES=0 ORDER=1"
  double conflicts = 0;  ///< for each FFMA, as the reader of machine code counts them
  double slots = 0;      ///< median of a scheduler's clocks for each FFMA of a warp
  double low = 0;        ///< of the median's 95 % confidence interval
  double high = 0;       ///< …
  int samples = 0;
  friend bool operator==(const ProbeChain&, const ProbeChain&) = default;
};

/// What one `pascaline probe` found.
struct Probe {
  std::string uuid;
  std::string device_uuid;
  std::string program_version;
  std::int64_t started_unix_ms = 0;
  std::int64_t finished_unix_ms = 0;
  std::optional<double> temperature_c;  ///< at the end
  bool throttled = false;               ///< the card slowed down for its power or temperature meanwhile
  std::vector<ProbeValue> values;       ///< in the order of the enumeration, at most one of each
  std::vector<ProbeChain> chains;
  std::vector<std::pair<ProbePart, std::string>> left_out;  ///< parts, or some of them, with the reason

  [[nodiscard]] const ProbeValue* find(ProbeQuantity quantity) const noexcept;
  friend bool operator==(const Probe&, const Probe&) = default;
};

/// What is known of a device by measurement: of each quantity the steady value that was measured last.
struct MeasuredRates {
  std::array<std::optional<double>, kProbeQuantities> values{};
  std::int64_t measured_unix_ms = 0;  ///< the latest of them; 0: there are none

  [[nodiscard]] std::optional<double> of(ProbeQuantity quantity) const noexcept {
    return values[static_cast<std::size_t>(quantity)];
  }
  [[nodiscard]] bool empty() const noexcept { return measured_unix_ms == 0; }
};

/// Of probes of one device, in any order.
[[nodiscard]] MeasuredRates measured_rates(std::span<const Probe> probes);

}  // namespace pascaline
