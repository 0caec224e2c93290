#include "model/vision/vision_layout.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/requirements.hpp"

namespace pascaline {
namespace {

// Steps by which activations share memory: before the blocks, within each of them, and behind some of them.
enum VisionStep : int {
  kTowerPatches,
  kTowerPositions,
  kTowerNormed,
  kTowerProjected,
  kTowerAttended,
  kTowerOutput,
  kTowerWide,
  kTowerNarrow,
  kTowerMerged,
  kTowerFeature
};

}  // namespace

std::string feature_name(std::size_t index) { return fmt::format("feature {}", index); }

std::vector<ArenaTensor> vision_tensors(const VisionConfig& config, std::int64_t patches, std::int64_t longest_side) {
  const auto bytes = [](std::int64_t rows, std::int64_t width) {
    return static_cast<std::size_t>(rows * width) * sizeof(float);
  };
  const std::int64_t tokens = patches / (config.merge * config.merge);
  const std::int64_t heads = config.heads * padded_head_dim(config);
  std::vector<ArenaTensor> tensors{
      {"pixels", bytes(patches, config.patch_values()), kTowerPatches, kTowerPatches},
      {"patches", bytes(patches, config.hidden), kTowerPatches, kTowerPositions},
      {"hidden", bytes(patches, config.hidden), kTowerPositions, kTowerFeature},
      {"normed", bytes(patches, config.hidden), kTowerNormed, kTowerProjected},
      {"qkv", bytes(patches, 3 * heads), kTowerProjected, kTowerAttended},
      {"attended", bytes(patches, heads), kTowerAttended, kTowerOutput},
      {"mlp_input", bytes(patches, config.hidden), kTowerOutput, kTowerWide},
      {"wide", bytes(patches, config.intermediate), kTowerWide, kTowerNarrow},
      {"merge_input", bytes(patches, config.hidden), kTowerMerged, kTowerMerged},
      {"merge_wide", bytes(tokens, config.merged()), kTowerMerged, kTowerFeature},
      {"positions", bytes(patches, 2), kTowerPatches, kTowerFeature},
      {"segment_starts", bytes(tokens + 1, 1), kTowerPatches, kTowerFeature},
      {"cosine", bytes(longest_side, padded_head_dim(config) / 4), kTowerPatches, kTowerFeature},
      {"sine", bytes(longest_side, padded_head_dim(config) / 4), kTowerPatches, kTowerFeature}};
  for (std::size_t i = 0; i <= config.deepstack_indexes.size(); ++i) {
    tensors.push_back({feature_name(i), bytes(tokens, config.out_hidden), kTowerPatches, kTowerFeature});
  }
  return tensors;
}

RopeTables vision_tables(const VisionConfig& config, std::int64_t longest_side) {
  RopeTables tables = rope_tables(longest_side, config.head_dim() / 4, config.rope_theta);
  const std::int64_t padded = padded_head_dim(config);
  if (padded == config.head_dim()) {
    return tables;
  }
  const double ratio = static_cast<double>(padded) / static_cast<double>(config.head_dim());
  const auto scale = static_cast<float>(std::sqrt(std::sqrt(ratio)));
  RopeTables filled{tables.positions, padded / 4, {}, {}};
  for (std::int64_t row = 0; row < tables.positions; ++row) {
    for (std::int64_t slot = 0; slot < filled.slots; ++slot) {
      const bool turns = slot < tables.slots;
      const auto from = static_cast<std::size_t>(turns ? row * tables.slots + slot : 0);
      filled.cosine.push_back(turns ? scale * tables.cosine[from] : 1.0F);
      filled.sine.push_back(turns ? scale * tables.sine[from] : 0.0F);
    }
  }
  return filled;
}

}  // namespace pascaline
