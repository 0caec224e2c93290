#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/checkpoint/model_config.hpp"

namespace pascaline::testing {

/// Logits of a prompt's last token and of three tokens after it, with weights that are hashes of their names.
struct GoldenRun {
  std::vector<std::int32_t> tokens;
  bool with_image = false;                    ///< of 4 x 6 patches, hashed as well
  std::vector<float> last;                    ///< first logits of the prompt's last token
  std::vector<float> first;                   ///< and of its first
  std::int32_t best = 0;                      ///< the likeliest token
  double norm = 0;                            ///< of all logits of the last token
  std::array<std::vector<float>, 3> decoded;  ///< first logits after 100, 200 and 300
};

/// A small model of the same form, and what it computes in float64.
struct GoldenModel {
  const char* name;
  ModelConfig config;
  GoldenRun text;
  GoldenRun image;
  std::vector<float> without_deepstack;     ///< first logits of the image's run if features were left out
  std::vector<float> with_plain_positions;  ///< or if positions had one axis
  std::vector<float> first_feature;         ///< of the image's first token
  std::vector<float> last_feature;
  std::vector<std::vector<float>> first_deepstack;
};

/// With heads of 16, for processors.
[[nodiscard]] GoldenModel golden_model_a();
/// With the heads of real models.
[[nodiscard]] GoldenModel golden_model_b();
/// As A, with vision heads of 72, as in the largest model of the family.
[[nodiscard]] GoldenModel golden_model_c();

}  // namespace pascaline::testing
