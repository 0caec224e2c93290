#pragma once

#include <cstdint>
#include <optional>

#include "model/checkpoint/hf/generation_config.hpp"
#include "runtime/ops/sample_host.hpp"

namespace pascaline {

/// How a request has tokens chosen. What it leaves out is as the model's makers recommend.
struct SamplingRequest {
  bool greedy = false;  ///< the likeliest token; with a temperature that is not 0, that counts
  std::optional<float> temperature = {};
  std::optional<std::int32_t> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition = {};
  std::optional<float> presence = {};
  std::uint64_t seed = 0;
};

/// The settings for a model with that many tokens. Settings of the model's makers for drawing count where these draw,
/// too. Throws ModelError for one that is a fault and that the request uses, and as `ops::check_settings`.
[[nodiscard]] ops::SamplingSettings requested_sampling(const SamplingRequest& request,
                                                       const GenerationConfig& generation, std::int64_t vocabulary);

}  // namespace pascaline
