#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "core/util/json_reader.hpp"

namespace pascaline {

/// A number, text or truth value.
[[nodiscard]] Value read_value(const JsonNode& node);

/// Index of a value among a parameter's; fails at its place if it is not one of them.
[[nodiscard]] std::size_t read_value_index(const JsonNode& node, const Parameter& parameter);

/// Value indices of a configuration from an object of parameters and values; those it does not name have the ones of
/// `base`. Fails at the place of what is no parameter or none of its values.
[[nodiscard]] std::vector<std::uint16_t> read_settings(const JsonNode& node, const std::vector<Parameter>& parameters,
                                                       std::vector<std::uint16_t> base);

/// Limits of a device of the architecture that is the node's key; fails there if it is none.
[[nodiscard]] DeviceLimits read_architecture(const JsonNode& node, const std::string& architecture);

}  // namespace pascaline
