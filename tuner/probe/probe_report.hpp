#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/device/probe.hpp"
#include "db/stored_probe.hpp"

namespace pascaline {

/// What the tables say of a quantity of that device where nothing is measured; nothing where they say nothing.
[[nodiscard]] std::optional<double> assumed_value(ProbeQuantity quantity, const DeviceRow& device);

/// A probe as `pascaline probe --json` prints it: device, toolkit, each value with unit, spread and what the tables
/// say, the loops that tell what a bank conflict costs, and the line through them.
[[nodiscard]] nlohmann::ordered_json probe_json(const StoredProbe& stored);

/// The same as lines for a terminal, ending in a newline.
[[nodiscard]] std::string probe_text(const StoredProbe& stored);

}  // namespace pascaline
