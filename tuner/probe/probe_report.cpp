#include "tuner/probe/probe_report.hpp"

#include <fmt/format.h>

#include "core/device/device_rates.hpp"
#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/sm61/sm_model.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tuner/probe/conflict_chains.hpp"

namespace pascaline {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> all_sms(std::optional<double> per_clock, const DeviceRates& rates) {
  return per_clock ? std::optional(*per_clock * static_cast<double>(rates.limits.sm_count) * rates.clock_mhz / 1e3)
                   : std::nullopt;
}

bool code_is_read(const DeviceRow& device) {
  return device.compute_capability.starts_with("5.") || device.compute_capability == "6.0" ||
         device.compute_capability == "6.1" || device.compute_capability == "6.2";
}

Json value_json(const ProbeValue& value, const DeviceRow& device) {
  const ProbeQuantityInfo& info = info_of(value.quantity);
  Json out{{"part", name_of(info.part)}, {"unit", info.unit},     {"median", value.median},
           {"low", value.low},           {"high", value.high},    {"spread", value.spread},
           {"samples", value.samples},   {"steady", value.steady}};
  const auto assumed = assumed_value(value.quantity, device);
  out["table"] = assumed ? Json(*assumed) : Json();
  out["ratio"] = assumed && *assumed > 0 ? Json(value.median / *assumed) : Json();
  return out;
}

std::string number_text(double value) {
  const double size = value < 0 ? -value : value;
  return fmt::format("{:.{}f}", value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string value_line(const ProbeValue& value, const DeviceRow& device) {
  const ProbeQuantityInfo& info = info_of(value.quantity);
  const auto assumed = assumed_value(value.quantity, device);
  const bool has_ratio = assumed && *assumed > 0;
  return fmt::format(
      "{:<10} {:<40} {:>10} {:<23} {:>7} {:>10} {:>6}{}\n", name_of(info.part), info.words, number_text(value.median),
      info.unit, value.quantity == ProbeQuantity::conflict_slots ? "-" : fmt::format("{:.1f} %", 100 * value.spread),
      assumed ? number_text(*assumed) : "-", has_ratio ? fmt::format("{:.2f}", value.median / *assumed) : "-",
      value.steady ? "" : "  unsteady");
}

std::string notes_of(const Probe& probe) {
  std::string text;
  if (const auto fit = fit_conflicts(probe.chains)) {
    text += fmt::format("Bank conflicts: {}.\n", conflict_verdict(*fit, probe.chains.size()));
  }
  for (std::size_t i = 0; i < probe.left_out.size(); ++i) {
    const auto& [part, reason] = probe.left_out[i];
    const bool goes_on = i + 1 < probe.left_out.size() && probe.left_out[i + 1].second == reason;
    const bool is_first = i == 0 || probe.left_out[i - 1].second != reason;
    text += fmt::format("{}{}{}", is_first ? "Left out: " : ", ", name_of(part),
                        goes_on ? "" : fmt::format(": {}.\n", clean_line(reason)));
  }
  bool unsteady = false;
  for (const ProbeValue& value : probe.values) {
    unsteady = unsteady || !value.steady;
  }
  if (unsteady) {
    text +=
        "Unsteady values are kept but not used in place of tables: something else used the device, or it changed its "
        "clock. Try again on an idle device.\n";
  }
  if (probe.throttled) {
    text += "The card slowed down for its power or temperature while it was measured.\n";
  }
  return text;
}

}  // namespace

std::optional<double> assumed_value(ProbeQuantity quantity, const DeviceRow& device) {
  const auto rates =
      device.kind == "cuda" ? typical_rates(device.compute_capability, stored_limits(device, {})) : std::nullopt;
  if (!rates) {
    return std::nullopt;
  }
  switch (quantity) {
    case ProbeQuantity::sm_clock_mhz:
      return rates->clock_mhz;
    case ProbeQuantity::ffma_per_clock:
      return rates->fp32_lanes;
    case ProbeQuantity::ffma_gflops:
      return rates->peak_gflops();
    case ProbeQuantity::dp4a_per_clock:
      return rates->dp4a_lanes;
    case ProbeQuantity::dp4a_gops:
      return rates->peak_int8_gops();
    case ProbeQuantity::shared_bytes_per_clock:
      return rates->shared_bytes;
    case ProbeQuantity::shared_gbps:
      return all_sms(rates->shared_bytes, *rates);
    case ProbeQuantity::l2_bytes_per_clock:
      return rates->l2_bytes;
    case ProbeQuantity::l2_gbps:
      return all_sms(rates->l2_bytes, *rates);
    case ProbeQuantity::read_gbps:
    case ProbeQuantity::copy_gbps:
      return rates->memory_gbps;
    case ProbeQuantity::launch_us:
      return rates->launch_us;
    case ProbeQuantity::ffma_latency:
      return rates->arithmetic_latency;
    case ProbeQuantity::shared_latency:
      return rates->shared_latency;
    case ProbeQuantity::l2_latency:
      return code_is_read(device) ? std::optional(sm61::SmRates{}.global_latency) : std::nullopt;
    case ProbeQuantity::conflict_slots:
      return code_is_read(device) ? std::optional(sm61::SmRates{}.conflict) : std::nullopt;
    case ProbeQuantity::queued_launch_us:
    case ProbeQuantity::graph_launch_us:
    case ProbeQuantity::memory_latency:
      return std::nullopt;
  }
  return std::nullopt;
}

Json probe_json(const StoredProbe& stored) {
  const Probe& probe = stored.probe;
  Json out{{"uuid", probe.uuid},
           {"device",
            {{"kind", stored.device.kind},
             {"name", stored.device.name},
             {"compute_capability", stored.device.compute_capability},
             {"sm_count", stored.device.sm_count},
             {"memory_bytes", stored.device.memory_bytes},
             {"uuid", probe.device_uuid}}},
           {"toolkit",
            {{"compiler", stored.toolkit.compiler},
             {"version", stored.toolkit.version},
             {"target", stored.toolkit.target},
             {"driver_version", stored.toolkit.driver_version}}},
           {"program_version", probe.program_version},
           {"started_unix_ms", probe.started_unix_ms},
           {"finished_unix_ms", probe.finished_unix_ms},
           {"temperature_c", probe.temperature_c ? Json(*probe.temperature_c) : Json()},
           {"throttled", probe.throttled},
           {"values", Json::object()},
           {"chains", Json::array()},
           {"conflict_fit", Json()},
           {"left_out", Json::array()}};
  for (const ProbeValue& value : probe.values) {
    out["values"][std::string(info_of(value.quantity).name)] = value_json(value, stored.device);
  }
  for (const ProbeChain& chain : probe.chains) {
    out["chains"].push_back({{"variant", chain.variant},
                             {"conflicts_per_ffma", chain.conflicts},
                             {"slots_per_ffma", chain.slots},
                             {"low", chain.low},
                             {"high", chain.high},
                             {"samples", chain.samples}});
  }
  if (const auto fit = fit_conflicts(probe.chains)) {
    out["conflict_fit"] = {{"slots", fit->slope},         {"low", fit->low},
                           {"high", fit->high},           {"slots_without_conflicts", fit->at_zero},
                           {"explained", fit->explained}, {"chains", probe.chains.size()}};
  }
  for (const auto& [part, reason] : probe.left_out) {
    out["left_out"].push_back({{"part", name_of(part)}, {"reason", reason}});
  }
  return out;
}

std::string probe_text(const StoredProbe& stored) {
  const DeviceRow& device = stored.device;
  const std::string capability =
      device.compute_capability.empty() ? "" : fmt::format("compute capability {}, ", device.compute_capability);
  std::string text = fmt::format("{} ({}{} {}), {}\n", clean_line(device.name), capability, device.sm_count,
                                 device.kind == "cuda" ? "SMs" : "processors", clean_line(describe(stored.toolkit)));
  text += fmt::format("{:<10} {:<40} {:>10} {:<23} {:>7} {:>10} {:>6}\n", "part", "", "measured", "", "spread", "table",
                      "ratio");
  for (const ProbeValue& value : stored.probe.values) {
    text += value_line(value, device);
  }
  if (device.kind != "cuda") {
    text += "These are times of this machine's processor, which runs the kernels: they say nothing of a GPU.\n";
  }
  return text + notes_of(stored.probe);
}

}  // namespace pascaline
