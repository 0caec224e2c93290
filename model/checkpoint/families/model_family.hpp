#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/json_reader.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

/// Other programs store tensors under names that begin otherwise.
struct NamePrefix {
  std::string_view stored;    ///< without `model.` before it
  std::string_view official;  ///< what the model's own names have instead
};

/// All that sets a family of models apart from another: how its config.json is read, and the table of its weights.
struct FamilyTraits {
  std::string_view model_type;  ///< of config.json
  std::string_view name;        ///< for people
  ModelConfig (*read)(const JsonNode& root);
  std::vector<WeightEntry> (*table)(const ModelConfig& config, ModelWeights& places);
  std::span<const NamePrefix> prefixes;
};

/// In the order of `ModelFamily`.
[[nodiscard]] std::span<const FamilyTraits> known_families() noexcept;
[[nodiscard]] const FamilyTraits& traits_of(ModelFamily family);
/// The family that a config.json's `model_type` names; throws SpaceError with the known ones if it is none of them.
[[nodiscard]] ModelFamily family_named(const JsonNode& model_type);

// The families, each in a file of its name.
[[nodiscard]] FamilyTraits qwen3_vl_family() noexcept;
[[nodiscard]] FamilyTraits qwen3_family() noexcept;
[[nodiscard]] FamilyTraits llama_family() noexcept;

}  // namespace pascaline
