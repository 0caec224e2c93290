#include "model/checkpoint/gguf/projector_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/gguf/gguf_config.hpp"
#include "model/checkpoint/hf/config_fields.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

// What is read is checked by its reader; the pixels are limits of images, which are read with their preparation.
constexpr std::array<std::string_view, 21> kProjectorKeys{"clip.has_audio_encoder",
                                                          "clip.has_llava_projector",
                                                          "clip.has_vision_encoder",
                                                          "clip.projector_type",
                                                          "clip.use_gelu",
                                                          "clip.use_silu",
                                                          "clip.vision.attention.head_count",
                                                          "clip.vision.attention.layer_norm_epsilon",
                                                          "clip.vision.block_count",
                                                          "clip.vision.embedding_length",
                                                          "clip.vision.feed_forward_length",
                                                          "clip.vision.image_max_pixels",
                                                          "clip.vision.image_mean",
                                                          "clip.vision.image_min_pixels",
                                                          "clip.vision.image_size",
                                                          "clip.vision.image_std",
                                                          "clip.vision.is_deepstack_layers",
                                                          "clip.vision.patch_size",
                                                          "clip.vision.projection_dim",
                                                          "clip.vision.projector_type",
                                                          "clip.vision.spatial_merge_size"};

constexpr std::array<std::string_view, 3> kWindowKeys{"clip.vision.n_wa_pattern", "clip.vision.wa_layer_indexes",
                                                      "clip.vision.window_size"};

constexpr std::string_view kProjectorFile = "mmproj";
constexpr const char* kTextTokens = "tokenizer.ggml.tokens";
constexpr const char* kDeepstackLayers = "qwen3vl.n_deepstack_layers";
constexpr std::int64_t kMaxProjectorPatch = 256;
constexpr std::int64_t kMaxProjectorMerge = 16;

// Of the released models.
constexpr std::int64_t kReleasedVocabulary = 151936;

class ProjectorReader {
 public:
  ProjectorReader(const GgufFile& projector, const GgufFile& text, const ModelConfig& config)
      : file_(&projector), metadata_(&projector.metadata()), text_(&text), config_(&config) {}

  VisionConfig read() {
    check_kind();
    check_text();
    check_keys();
    VisionConfig vision;
    vision.hidden = size("embedding_length", kMaxWidth);
    vision.depth = size("block_count", kMaxLayers);
    vision.heads = size("attention.head_count", kMaxHeads);
    vision.intermediate = size("feed_forward_length", kMaxWidth);
    vision.in_channels = 3;
    vision.temporal_patch = 2;  // the two tensors of the patches' embedding
    vision.patch = size("patch_size", kMaxProjectorPatch);
    vision.merge = size("spatial_merge_size", kMaxProjectorMerge);
    vision.out_hidden = read_output();
    vision.positions = read_positions(vision.patch);
    vision.deepstack_indexes = read_deepstack(vision.depth);
    if (vision.hidden % vision.heads != 0 || vision.head_dim() % 4 != 0) {
      metadata_->fail(key("attention.head_count"),
                      fmt::format("{} values cannot be shared by {} heads, each a multiple "
                                  "of 4",
                                  vision.hidden, vision.heads));
    }
    read_tokens(vision);
    return vision;
  }

 private:
  [[nodiscard]] static std::string key(std::string_view name) { return fmt::format("clip.vision.{}", name); }

  void check_kind() const {
    constexpr const char* kKind = "general.architecture";
    const std::string_view kind = metadata_->text(kKind);
    if (kind != kProjectorArchitecture) {
      metadata_->fail(kKind, fmt::format("{} is a text model and no projector; --model takes it, --mmproj takes the "
                                         "mmproj file of the same model",
                                         quoted_name(kind)));
    }
    constexpr const char* kFileKind = "general.type";
    const std::string_view file_kind = metadata_->find_text(kFileKind).value_or(kProjectorFile);
    if (file_kind != kProjectorFile) {
      metadata_->fail(kFileKind, fmt::format("{} is no projector; give the file of one, which says '{}' or nothing",
                                             quoted_name(file_kind), kProjectorFile));
    }
    check_general_keys(*metadata_);
    // Files of several encoders name the kind of each.
    const char* const key =
        metadata_->has("clip.projector_type") ? "clip.projector_type" : "clip.vision.projector_type";
    const std::string_view type = metadata_->has(key) ? metadata_->text(key) : metadata_->text("clip.projector_type");
    if (type != kProjectorType) {
      metadata_->fail(key, fmt::format("{} is not supported, only {}, of Qwen3-VL", quoted_name(type), kProjectorType));
    }
  }

  void check_text() const {
    if (config_->family != ModelFamily::qwen3_vl) {
      text_->metadata().fail(
          "general.architecture",
          fmt::format("{} only reads text, and {} is the projector of a Qwen3-VL; leave out --mmproj",
                      quoted_name(text_->metadata().text("general.architecture")), metadata_->file()));
    }
  }

  void check_keys() const {
    std::vector<std::string> unknown;
    for (const auto& [name, value] : metadata_->values()) {
      if (std::find(kWindowKeys.begin(), kWindowKeys.end(), name) != kWindowKeys.end()) {
        metadata_->fail(name, "it is not supported: attention within windows changes results");
      }
      if (name.starts_with("clip.") &&
          std::find(kProjectorKeys.begin(), kProjectorKeys.end(), name) == kProjectorKeys.end()) {
        unknown.emplace_back(name);
      }
    }
    pass_over_unknown(metadata_->file(), unknown);
    require_boolean("clip.has_vision_encoder", true);
    require_boolean("clip.has_audio_encoder", false);
    require_boolean("clip.use_gelu", true);
    require_boolean("clip.use_silu", false);
    require_boolean("clip.has_llava_projector", false);
    constexpr double kEpsilon = 1e-6;
    const std::string name = key("attention.layer_norm_epsilon");
    const double epsilon = metadata_->real(name);
    if (!(std::abs(epsilon - kEpsilon) <= 1e-6 * kEpsilon)) {
      metadata_->fail(name, fmt::format("{} is not supported, only {}", epsilon, kEpsilon));
    }
  }

  void require_boolean(const char* name, bool expected) const {
    if (metadata_->find_boolean(name).value_or(expected) != expected) {
      metadata_->fail(name, fmt::format("{} is not supported", !expected));
    }
  }

  [[nodiscard]] std::int64_t size(std::string_view name, std::int64_t limit) const {
    const std::string full = key(name);
    const std::int64_t value = metadata_->integer(full);
    if (value < 1 || value > limit) {
      metadata_->fail(full, fmt::format("{} is not a possible size (1 to {})", value, limit));
    }
    return value;
  }

  [[nodiscard]] std::int64_t read_output() const {
    const std::int64_t output = size("projection_dim", kMaxWidth);
    if (output != config_->text.hidden) {
      metadata_->fail(key("projection_dim"),
                      fmt::format("{}, but {} has the embedding_length {}: the files are of different models", output,
                                  text_->metadata().file(), config_->text.hidden));
    }
    return output;
  }

  // A square grid, of which the metadata have the edge in pixels.
  [[nodiscard]] std::int64_t read_positions(std::int64_t patch) const {
    constexpr const char* kPositions = "v.position_embd.weight";
    const GgufTensor* const positions = file_->find(kPositions);
    if (positions == nullptr || positions->shape.size() != 2) {
      throw ModelError(fmt::format("{}: tensor {}: {}", metadata_->file(), quoted_name(kPositions),
                                   positions == nullptr ? "it is missing" : "it is no matrix"));
    }
    const std::int64_t rows = positions->shape.back();
    const std::int64_t side = size("image_size", kMaxWidth) / patch;
    if (rows > kMaxWidth || side * side != rows || metadata_->integer(key("image_size")) != side * patch) {
      metadata_->fail(key("image_size"), fmt::format("{} pixels are no square of {} positions, each of {} pixels",
                                                     metadata_->integer(key("image_size")), rows, patch));
    }
    return rows;
  }

  [[nodiscard]] std::vector<std::int64_t> read_deepstack(std::int64_t depth) const {
    const std::string name = key("is_deepstack_layers");
    std::vector<std::int64_t> indexes;
    if (metadata_->has(name)) {
      const std::vector<bool> layers = metadata_->booleans(name);
      if (static_cast<std::int64_t>(layers.size()) != depth) {
        metadata_->fail(name, fmt::format("{} values for {} blocks", layers.size(), depth));
      }
      for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i]) {
          indexes.push_back(static_cast<std::int64_t>(i));
        }
      }
    }
    const std::int64_t features = text_->metadata().integer(kDeepstackLayers);
    if (features != static_cast<std::int64_t>(indexes.size()) || features > config_->text.layers) {
      text_->metadata().fail(
          kDeepstackLayers,
          fmt::format(
              "{}, but {} of the blocks of {} give features, to at most {} layers of the decoder: the files are "
              "of different models",
              features, indexes.size(), metadata_->file(), config_->text.layers));
    }
    return indexes;
  }

  void read_tokens(VisionConfig& vision) const {
    const std::array<std::int64_t*, 4> places{&vision.image_token, &vision.video_token, &vision.start_token,
                                              &vision.end_token};
    if (!text_->metadata().has(kTextTokens)) {
      if (config_->text.vocab < kReleasedVocabulary) {
        text_->metadata().fail(kTextTokens, "it is missing from the metadata, and says which tokens stand for images");
      }
      for (std::size_t i = 0; i < places.size(); ++i) {
        *places[i] = kImageTokens[i].released;
      }
      return;
    }
    const std::vector<std::string_view> tokens = text_->metadata().texts(kTextTokens);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::string_view wanted = kImageTokens[i].text;
      const auto found = std::find(tokens.begin(), tokens.end(), wanted);
      if (found == tokens.end() && wanted == kVideoTokenText) {
        *places[i] = kNoVideoToken;
        continue;
      }
      if (found == tokens.end()) {
        text_->metadata().fail(kTextTokens, fmt::format("no token is {}, which images need", wanted));
      }
      *places[i] = found - tokens.begin();
    }
  }

  const GgufFile* file_;
  const GgufMetadata* metadata_;
  const GgufFile* text_;
  const ModelConfig* config_;
};

}  // namespace

VisionConfig read_projector_config(const GgufFile& projector, const GgufFile& text, const ModelConfig& config) {
  return ProjectorReader(projector, text, config).read();
}

}  // namespace pascaline
