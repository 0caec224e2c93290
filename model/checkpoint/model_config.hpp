#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/hf/quantization_config.hpp"
#include "model/checkpoint/model_location.hpp"
#include "runtime/ops/norm_epsilon.hpp"

namespace pascaline {

/// The kinds of models that can be read; `traits_of` says what sets them apart.
enum class ModelFamily : std::uint8_t { qwen3_vl, qwen3, llama };

/// Sizes of the text decoder.
struct TextConfig {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;     ///< of queries; heads · head_dim need not equal hidden
  std::int64_t kv_heads = 0;  ///< divides heads
  std::int64_t head_dim = 0;  ///< even
  std::int64_t intermediate = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  double rope_theta = 0;
  /// Frequencies of time, height, width; together head_dim / 2. Where positions have one axis, it is the first.
  std::array<std::int64_t, 3> mrope_section{};
  bool tied = false;  ///< the head is the embedding
  NormEpsilon norm_epsilon = {};
  bool normalises_heads = true;  ///< queries and keys, before they turn
  /// By what the frequencies are divided so that positions reach farther than in training; empty where they are not.
  std::vector<float> rope_divisors = {};

  friend bool operator==(const TextConfig&, const TextConfig&) = default;
};

/// In place of a token that a model has not.
inline constexpr std::int64_t kNoVideoToken = -1;

/// Sizes of a vision tower, and the tokens that stand for images.
struct VisionConfig {
  std::int64_t hidden = 0;
  std::int64_t depth = 0;
  std::int64_t heads = 0;  ///< divides hidden
  std::int64_t intermediate = 0;
  std::int64_t in_channels = 0;
  std::int64_t patch = 0;                       ///< pixels along an edge
  std::int64_t temporal_patch = 0;              ///< frames
  std::int64_t merge = 0;                       ///< patches along an edge that become one token
  std::int64_t out_hidden = 0;                  ///< the decoder's hidden
  std::int64_t positions = 0;                   ///< learned positions, a square grid
  double rope_theta = 10000;                    ///< base of the angles; the released models leave it out
  std::vector<std::int64_t> deepstack_indexes;  ///< blocks whose output is injected, ascending
  std::int64_t image_token = 0;
  std::int64_t video_token = kNoVideoToken;  ///< images do without
  std::int64_t start_token = 0;
  std::int64_t end_token = 0;

  [[nodiscard]] std::int64_t head_dim() const noexcept { return hidden / heads; }
  /// Edge of the grid of learned positions.
  [[nodiscard]] std::int64_t position_side() const noexcept;
  /// Values of a patch: channels · frames · pixels.
  [[nodiscard]] std::int64_t patch_values() const noexcept { return in_channels * temporal_patch * patch * patch; }
  /// Width of merge × merge patches side by side.
  [[nodiscard]] std::int64_t merged() const noexcept { return hidden * merge * merge; }

  friend bool operator==(const VisionConfig&, const VisionConfig&) = default;
};

/// A model as its config.json describes it: a text decoder, and a vision tower if it reads images.
struct ModelConfig {
  ModelFamily family = ModelFamily::qwen3_vl;
  TextConfig text;
  std::optional<VisionConfig> vision;
  std::vector<std::int64_t> eos_tokens;  ///< may be empty, as generation_config.json has them too
  FolderQuantization quantization = FolderQuantization::none;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// Reads the text of a config.json; `file` begins every complaint. Nothing that a forward pass needs has a default, and
/// nothing that may change its results is passed over: throws ModelError with the JSON pointer of a key that is
/// missing, impossible, not supported or not known; a family that is not known is named with those that are.
[[nodiscard]] ModelConfig parse_model_config(std::string_view text, const std::string& file);

/// The same of a folder's config.json, but a head with values of its own is not tied (see `untie_other_head`); of a
/// GGUF file what `read_gguf_config` says, with the vision tower that `read_projector_config` finds in its projector.
/// Throws ModelError for a projector beside a folder, too.
[[nodiscard]] ModelConfig load_model_config(const ModelLocation& model);

}  // namespace pascaline
