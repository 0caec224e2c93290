#include "model/convert/gguf_model_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/checkpoint/gguf/projector_config.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr float kTowerEpsilon = 1e-6F;
constexpr std::uint32_t kQuantizationVersion = 2;

// llama.cpp's number for the type that most matrices have.
std::uint32_t file_type_of(GgufType type) {
  if (const auto format = format_of(type)) {
    return traits_of(*format).gguf.file_type;
  }
  return type == GgufType::F32 ? 0 : type == GgufType::F16 ? 1 : 32;
}

std::string_view architecture_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::qwen3_vl:
      return "qwen3vl";
    case ModelFamily::qwen3:
      return "qwen3";
    case ModelFamily::llama:
      return "llama";
  }
  throw Error("a family of models without an architecture in GGUF");
}

// Sizes of models have at most 2^31 - 1.
std::uint32_t number(std::int64_t value) { return static_cast<std::uint32_t>(value); }

// Vectors, which are F32 in any file, are not counted unless there is nothing else.
void add_file_type(GgufKeys& keys, std::span<const WrittenTensor> tensors) {
  std::map<GgufType, std::size_t> counts;
  for (const WrittenTensor& tensor : tensors) {
    counts[tensor.type] += 1;
  }
  if (counts.size() > 1) {
    counts.erase(GgufType::F32);
  }
  const auto usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  keys.integer("general.file_type", file_type_of(usual->first));
  if (std::any_of(counts.begin(), counts.end(), [](const auto& count) { return block_values(count.first) > 1; })) {
    keys.integer("general.quantization_version", kQuantizationVersion);
  }
}

// Only what the folder says: a reader has defaults of its own. A temperature of 0 takes the likeliest token.
void add_sampling(GgufKeys& keys, const GenerationConfig& generation) {
  const RecommendedSampling& recommended = generation.recommended;
  const bool is_greedy = recommended.do_sample && !generation.do_sample;
  if (is_greedy || recommended.temperature) {
    keys.real("general.sampling.temp", is_greedy ? 0.0F : static_cast<float>(generation.temperature));
  }
  if (!is_greedy && recommended.top_k) {
    keys.integer("general.sampling.top_k", number(generation.top_k));
  }
  if (!is_greedy && recommended.top_p) {
    keys.real("general.sampling.top_p", static_cast<float>(generation.top_p));
  }
  if (!is_greedy && recommended.min_p) {
    keys.real("general.sampling.min_p", static_cast<float>(generation.min_p));
  }
  if (recommended.repetition_penalty) {
    keys.real("general.sampling.penalty_repeat", static_cast<float>(generation.repetition_penalty));
  }
}

}  // namespace

std::optional<float> linear_rope_factor(const TextConfig& text) {
  const std::vector<float>& divisors = text.rope_divisors;
  const bool is_one = !divisors.empty() && std::all_of(divisors.begin(), divisors.end(),
                                                       [&](float each) { return each == divisors.front(); });
  return is_one ? std::optional(divisors.front()) : std::nullopt;
}

GgufKeys text_model_keys(const ModelConfig& config, const GenerationConfig& generation, std::string_view name,
                         std::span<const WrittenTensor> tensors) {
  const std::string_view architecture = architecture_of(config.family);
  const auto key = [architecture](std::string_view rest) { return fmt::format("{}.{}", architecture, rest); };
  const TextConfig& text = config.text;
  GgufKeys keys;
  keys.text("general.architecture", architecture).text("general.type", "model").text("general.name", name);
  add_file_type(keys, tensors);
  add_sampling(keys, generation);
  keys.integer(key("vocab_size"), number(text.vocab));
  keys.integer(key("block_count"), number(text.layers));
  keys.integer(key("context_length"), number(text.max_positions));
  keys.integer(key("embedding_length"), number(text.hidden));
  keys.integer(key("feed_forward_length"), number(text.intermediate));
  keys.integer(key("attention.head_count"), number(text.heads));
  keys.integer(key("attention.head_count_kv"), number(text.kv_heads));
  keys.integer(key("attention.key_length"), number(text.head_dim));
  keys.integer(key("attention.value_length"), number(text.head_dim));
  keys.real(key("attention.layer_norm_rms_epsilon"), static_cast<float>(text.norm_epsilon.value()));
  keys.real(key("rope.freq_base"), static_cast<float>(text.rope_theta));
  if (config.family == ModelFamily::llama) {
    keys.integer(key("rope.dimension_count"), number(text.head_dim));
  }
  if (const auto factor = linear_rope_factor(text)) {
    keys.text(key("rope.scaling.type"), "linear").real(key("rope.scaling.factor"), *factor);
  }
  if (config.family == ModelFamily::qwen3_vl) {
    const std::array<std::int32_t, 4> sections{static_cast<std::int32_t>(text.mrope_section[0]),
                                               static_cast<std::int32_t>(text.mrope_section[1]),
                                               static_cast<std::int32_t>(text.mrope_section[2]), 0};
    keys.integers(key("rope.dimension_sections"), sections);
    keys.integer(key("n_deepstack_layers"),
                 config.vision ? number(static_cast<std::int64_t>(config.vision->deepstack_indexes.size())) : 0);
  }
  return keys;
}

GgufKeys projector_keys(const ModelConfig& config, const PreprocessorConfig& images, std::string_view name,
                        std::span<const WrittenTensor> tensors) {
  const VisionConfig& vision = config.vision.value();
  const auto key = [](std::string_view rest) { return fmt::format("clip.vision.{}", rest); };
  std::vector<bool> deepstack(static_cast<std::size_t>(vision.depth));
  for (const std::int64_t block : vision.deepstack_indexes) {
    deepstack[static_cast<std::size_t>(block)] = true;
  }
  const std::vector<float> mean(images.image_mean.begin(), images.image_mean.end());
  const std::vector<float> deviation(images.image_std.begin(), images.image_std.end());
  GgufKeys keys;
  keys.text("general.architecture", kProjectorArchitecture).text("general.type", "mmproj").text("general.name", name);
  add_file_type(keys, tensors);
  keys.boolean("clip.has_vision_encoder", true).text("clip.projector_type", kProjectorType);
  keys.boolean("clip.use_gelu", true);
  keys.integer(key("projection_dim"), number(vision.out_hidden));
  keys.integer(key("image_size"), number(vision.position_side() * vision.patch));
  keys.integer(key("image_min_pixels"), number(images.shortest_edge));
  keys.integer(key("image_max_pixels"), number(images.longest_edge));
  keys.integer(key("patch_size"), number(vision.patch));
  keys.integer(key("spatial_merge_size"), number(vision.merge));
  keys.integer(key("embedding_length"), number(vision.hidden));
  keys.integer(key("feed_forward_length"), number(vision.intermediate));
  keys.integer(key("block_count"), number(vision.depth));
  keys.integer(key("attention.head_count"), number(vision.heads));
  keys.real(key("attention.layer_norm_epsilon"), kTowerEpsilon);
  keys.reals(key("image_mean"), mean).reals(key("image_std"), deviation);
  keys.booleans(key("is_deepstack_layers"), deepstack);
  return keys;
}

}  // namespace pascaline
