#include "model/requirements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/sample_host.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxContext = std::int64_t{1} << 24;

bool is_cached(ElementType type) noexcept {
  return type == ElementType::float32 || type == ElementType::float16 || type == ElementType::int8;
}

}  // namespace

std::int64_t padded_head_dim(const VisionConfig& config) noexcept {
  return (config.head_dim() + ops::kHeadDimStep - 1) / ops::kHeadDimStep * ops::kHeadDimStep;
}

const VisionConfig& vision_of(const ModelConfig& config) {
  if (!config.vision && config.family == ModelFamily::qwen3_vl) {
    throw Error(
        "this is the text model of a Qwen3-VL without its vision tower; leave out the images, or give the file of its "
        "projector (mmproj) with --mmproj FILE.gguf");
  }
  if (!config.vision) {
    throw Error(
        fmt::format("this model only reads text (its model_type is {}); leave out the images, or use a model with a "
                    "vision tower, such as Qwen3-VL",
                    traits_of(config.family).model_type));
  }
  return *config.vision;
}

namespace {

// A file that describes a part of a model, and the key or keys in it that a message is about.
struct KeyPlace {
  std::string file;
  std::string_view key;
};

KeyPlace key_place(const std::filesystem::path& file, std::string_view in_folder, std::string_view in_gguf) {
  if (is_gguf_path(file)) {
    return {file.string(), in_gguf};
  }
  return {file.empty() ? "config.json" : (file / "config.json").string(), in_folder};
}

// The same within a sentence.
std::string_view key_name(const ModelLocation& model, std::string_view in_folder, std::string_view in_gguf) {
  return is_gguf_path(model.path) ? in_gguf : in_folder;
}

}  // namespace

void check_supported(const ModelConfig& config, const ModelLocation& model) {
  const std::int64_t head_dim = config.text.head_dim;
  if (head_dim < 1 || head_dim > ops::kMaxHeadDim || head_dim % ops::kHeadDimStep != 0) {
    const KeyPlace place =
        key_place(model.path, "head_dim", "attention.key_length, or embedding_length / attention.head_count");
    throw Error(
        fmt::format("{}: the decoder's heads have {} elements ({}); attention supports multiples of {} up to {}: take "
                    "another model",
                    place.file, head_dim, place.key, ops::kHeadDimStep, ops::kMaxHeadDim));
  }
  if (config.vision && config.vision->head_dim() > ops::kMaxHeadDim) {
    const KeyPlace place = key_place(model.projector.empty() ? model.path : model.projector, "hidden_size / num_heads",
                                     "clip.vision.embedding_length / clip.vision.attention.head_count");
    throw Error(fmt::format("{}: the vision tower's heads have {} elements ({}); attention is there for up to {}",
                            place.file, config.vision->head_dim(), place.key, ops::kMaxHeadDim));
  }
  if (config.text.vocab > ops::kMaxVocabulary) {
    const KeyPlace place = key_place(model.path, "vocab_size", "rows of token_embd.weight");
    throw Error(fmt::format("{}: a vocabulary of {} tokens ({}); tokens can be drawn from up to {}", place.file,
                            config.text.vocab, place.key, ops::kMaxVocabulary));
  }
}

ModelOptions checked_options(const ModelConfig& config, const ModelOptions& options, const ModelLocation& model) {
  if (!is_cached(options.cache)) {
    throw Error(fmt::format("keys and values are kept as float32, float16 or int8, not {}", name_of(options.cache)));
  }
  const std::int64_t most = std::min(kMaxContext, config.text.max_positions);
  ModelOptions result = options;
  if (options.context == 0) {
    result.context = std::min(ModelOptions::kUsualContext, most);
  }
  if (result.context < 1 || result.context > most) {
    throw Error(fmt::format(
        "a context of {} tokens; this model supports 1 to {} ({}): give --context within that", options.context, most,
        key_name(model, "max_position_embeddings of its config.json", "key 'context_length' of its file")));
  }
  if (options.chunk < 1) {
    throw Error(fmt::format("passes of {} tokens; at least 1 is needed: give a larger --chunk", options.chunk));
  }
  check_attention(options.attention, result.context);
  const std::int64_t on_device = options.residency.gpu_layers.value_or(0);
  if (on_device < 0 || on_device > config.text.layers) {
    throw Error(fmt::format(
        "--gpu-layers {}: this model has {} layers ({}); give 0 to {}, or auto", on_device, config.text.layers,
        key_name(model, "num_hidden_layers of its config.json", "key 'block_count' of its file"), config.text.layers));
  }
  if (options.residency.vision != VisionResidency::automatic && !config.vision) {
    throw Error(fmt::format("--vision {}: this model only reads text ({}), so there is nothing to place: leave it out",
                            name_of(options.residency.vision),
                            config.family == ModelFamily::qwen3_vl
                                ? std::string("a Qwen3-VL without --mmproj")
                                : fmt::format("its model_type is {}", traits_of(config.family).model_type)));
  }
  result.chunk = std::min(options.chunk, result.context);
  result.request.tokens = std::clamp<std::int64_t>(options.request.tokens, 1, result.context);
  return result;
}

}  // namespace pascaline
