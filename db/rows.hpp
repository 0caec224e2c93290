#pragma once

#include <optional>
#include <string>

#include "db/connection.hpp"
#include "db/process_identity.hpp"
#include "db/store.hpp"

namespace pascaline {

// Each reader takes the columns its list names, from the query's current column on.

/// Columns of `read_device` in the view `trial_details` and in `devices`.
inline constexpr std::string_view kDetailDevice =
    "device_kind, device, compute_capability, sm_count, memory_bytes, limits";
[[nodiscard]] DeviceRow read_device(Query& row);

inline constexpr std::string_view kDetailToolkit = "compiler, compiler_version, target, driver_version";
[[nodiscard]] ToolkitRow read_toolkit(Query& row);

/// Four columns: kernel, dimensions, types, data.
[[nodiscard]] Problem read_problem(Query& row);

/// A column `config` of that table; throws BadColumnError.
[[nodiscard]] Config read_config(Query& row, std::string_view table);

/// Columns of `read_process` in `sessions`.
inline constexpr std::string_view kProcess = "process_id, process_start, boot_id";
[[nodiscard]] ProcessIdentity read_process(Query& row);

/// Four columns: median, low, high, count; nothing if they are NULL.
[[nodiscard]] std::optional<TimeSummary> read_summary(Query& row);

/// One field of a summary, nothing (NULL) without one.
template <typename Field>
[[nodiscard]] std::optional<Field> field(const std::optional<TimeSummary>& summary, Field TimeSummary::*member) {
  return summary ? std::optional((*summary).*member) : std::nullopt;
}

/// A name that an enumeration must know; throws Error otherwise (something newer wrote the file).
template <typename Enum>
[[nodiscard]] Enum known(std::optional<Enum> value, std::string_view name) {
  if (!value) {
    throw Error("the database holds the unknown name '" + std::string(name) + "'; use a newer program");
  }
  return *value;
}

/// JSON objects of a problem, in its order.
[[nodiscard]] std::string dimensions_json(const Problem& problem);
[[nodiscard]] std::string types_json(const Problem& problem);

}  // namespace pascaline
