#pragma once

#include <nlohmann/json.hpp>

#include "model/image/preprocessor_config.hpp"

namespace pascaline::testing {

/// preprocessor_config.json of Qwen3-VL.
inline nlohmann::json config_json() {
  return {{"size", {{"shortest_edge", 65536}, {"longest_edge", 16777216}}},
          {"patch_size", 16},
          {"temporal_patch_size", 2},
          {"merge_size", 2},
          {"image_mean", {0.5, 0.5, 0.5}},
          {"image_std", {0.5, 0.5, 0.5}},
          {"processor_class", "Qwen3VLProcessor"},
          {"image_processor_type", "Qwen2VLImageProcessorFast"}};
}

inline PreprocessorConfig real_config() {
  return parse_preprocessor_config(config_json().dump(), "preprocessor_config.json");
}

}  // namespace pascaline::testing
