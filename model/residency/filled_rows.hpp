#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/weight_recipe.hpp"

namespace pascaline {

/// A sentence about matrices whose rows are filled up with zeros to what the format that they are kept in packs
/// together: how many, an example, and what the zeros take of the device's memory. Nothing if there are none,
/// or if the zeros take less than so many bytes. Throws Error for a recipe that does not fit the model.
[[nodiscard]] std::optional<std::string> filled_rows_note(const ModelConfig& config, const WeightRecipe& matrices,
                                                          std::uint64_t least_bytes = 0);

}  // namespace pascaline
