#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/fusion/fusion_mode.hpp"

namespace pascaline {

/// Of the form of plans that is written here, and read.
inline constexpr int kFusionSchema = 1;

/// A device as a plan names it.
[[nodiscard]] nlohmann::ordered_json fusion_device_json(const DeviceRow& device);

/// Reads a plan: an object with `device` (`kind`, `name`, `compute_capability`, `sm_count`) and `sites`, a list of
/// objects with `site` (`site_decode_mlp HIDDEN=2048 …`) and `alternative`. What else `explain --model --json` writes
/// is passed over. Throws Error, with the file and the entry, for text that is no such plan or has a `schema` other
/// than `kFusionSchema`, sites and alternatives that do not exist, an alternative that its site cannot be computed
/// by, and a site that is a duplicate.
[[nodiscard]] FusionFile parse_fusion(std::string_view text, const std::string& name);
/// Throws Error also if it cannot be read.
[[nodiscard]] FusionFile load_fusion(const std::filesystem::path& file);

}  // namespace pascaline
