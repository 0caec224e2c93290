#pragma once

#include <cstdint>

#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_location.hpp"
#include "model/model_options.hpp"

namespace pascaline {

/// Elements of a vision head, padded to the next multiple of 8, as attention requires.
[[nodiscard]] std::int64_t padded_head_dim(const VisionConfig& config) noexcept;

/// What sets apart a model that reads images; throws Error that says so of one that only reads text.
[[nodiscard]] const VisionConfig& vision_of(const ModelConfig& config);

/// Throws Error naming what no operation can run: heads of sizes that attention has no kernel for, or a vocabulary too
/// large to draw from. `model` is what the configuration is of: files and keys are named as they are there.
void check_supported(const ModelConfig& config, const ModelLocation& model = {});

/// The options with what was left open decided: the context, and a chunk no longer than that. Throws Error naming the
/// option that is out of bounds, and what bounds it as `model` has it.
[[nodiscard]] ModelOptions checked_options(const ModelConfig& config, const ModelOptions& options,
                                           const ModelLocation& model = {});

}  // namespace pascaline
