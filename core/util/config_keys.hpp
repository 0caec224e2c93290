#pragma once

#include <span>
#include <string_view>

#include "core/util/json_reader.hpp"

namespace pascaline {

/// A key of a configuration of which not every value is supported.
struct LimitedKey {
  std::string_view key;
  std::string_view values;  ///< the supported ones, a JSON array
};

/// What the keys of an object of a configuration do here.
struct ConfigKeys {
  std::span<const std::string_view> read;       ///< their reader checks them
  std::span<const LimitedKey> limited;          ///< null is taken, too: as if the key were left out
  std::span<const std::string_view> no_effect;  ///< on results, whatever their value
};

/// Requires that a value is one of those supported; numbers may differ by as much as float32 cannot tell. Throws
/// SpaceError with the value and those supported.
void check_supported(const JsonNode& node, const LimitedKey& limit);

/// Requires the supported values of the object's limited keys, those that are there.
void check_limits(const JsonNode& object, std::span<const LimitedKey> limited);

/// Checks the object's limited keys, which are those known to change results. A key that is none of `keys` and not null
/// is passed over with a warning (see `pass_over_unknown`).
void check_keys(const JsonNode& object, const ConfigKeys& keys);

}  // namespace pascaline
