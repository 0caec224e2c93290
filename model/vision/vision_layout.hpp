#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/decoder/positions.hpp"
#include "runtime/memory/arena.hpp"

namespace pascaline {

/// What encoding images of that many patches, with sides up to that, works with: activations, and for all of the time
/// "positions", "segment_starts", "cosine", "sine" and the features that come out.
[[nodiscard]] std::vector<ArenaTensor> vision_tensors(const VisionConfig& config, std::int64_t patches,
                                                      std::int64_t longest_side);

/// Of the tower's result (0) and of what is injected into the decoder's layer `index - 1`.
[[nodiscard]] std::string feature_name(std::size_t index);

/// Cosines and sines for heads filled up to `padded_head_dim`: slots that were filled in do not turn. Attention scales
/// its scores by the padded size; as turning is linear, what is wanting of the scale goes to queries and keys here.
[[nodiscard]] RopeTables vision_tables(const VisionConfig& config, std::int64_t longest_side);

}  // namespace pascaline
