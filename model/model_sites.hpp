#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_weights.hpp"
#include "model/fusion/attention_choice.hpp"
#include "model/fusion/fusion_mode.hpp"

namespace pascaline {

/// The sites of a model with some rows and context each, whose tokens attend as that says: every one that it has,
/// once.
[[nodiscard]] std::vector<Problem> sites_of_model(const ModelConfig& config, const ModelWeights& weights,
                                                  ElementType cache, const AttentionChoice& attention);

/// The plan if it is one for this device; one of another is told to `warn` in a line and left out.
[[nodiscard]] FusionFile plan_for_device(FusionFile file, const DeviceRow& device,
                                         const std::function<void(const std::string&)>& warn);

/// The plan if it is one for this model on this device. One of another device, or with a site that this model does not
/// have, is told to `warn` in a line and left out as a whole.
[[nodiscard]] FusionFile plan_for_model(FusionFile file, const DeviceRow& device, const std::vector<Problem>& sites,
                                        const std::function<void(const std::string&)>& warn);

}  // namespace pascaline
