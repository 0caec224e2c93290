#include "runtime/checkpoint/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>

#include "core/json_reader.hpp"
#include "runtime/checkpoint/model_error.hpp"
#include "runtime/checkpoint/tensor_list.hpp"

namespace pascaline {
namespace {

// Far above any model of the family; what exceeds them is damage, and their products fit 64 bits.
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxVocabulary = 1 << 24;
constexpr std::int64_t kMaxPositions = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxPatch = 256;
constexpr std::uintmax_t kMaxConfigBytes = 16U << 20U;

std::int64_t extent(const JsonNode& object, std::string_view key, std::int64_t limit) {
  const JsonNode node = object.at(key);
  const std::int64_t value = node.integer();
  if (value < 1 || value > limit) {
    node.fail(fmt::format("{} is not a possible size (1 to {})", value, limit));
  }
  return value;
}

double positive(const JsonNode& object, std::string_view key, double limit) {
  const JsonNode node = object.at(key);
  const double value = node.real();
  if (!(value > 0 && value <= limit)) {
    node.fail(fmt::format("{} is not possible here (above 0, at most {})", value, limit));
  }
  return value;
}

void require_text(const JsonNode& object, std::string_view key, std::initializer_list<std::string_view> supported) {
  const JsonNode node = object.at(key);
  const std::string value = node.text();
  if (std::find(supported.begin(), supported.end(), value) == supported.end()) {
    node.fail(fmt::format("{} is not supported, only '{}'", quoted_name(value), fmt::join(supported, "' or '")));
  }
}

void require(bool holds, const JsonNode& node, const std::string& otherwise) {
  if (!holds) {
    node.fail(otherwise);
  }
}

std::int64_t token(const JsonNode& node, std::int64_t vocabulary) {
  const std::int64_t id = node.integer();
  require(id >= 0 && id < vocabulary, node,
          fmt::format("token {} is not in the vocabulary of {} tokens", id, vocabulary));
  return id;
}

struct Rope {
  double theta = 0;
  std::array<std::int64_t, 3> section{};
  friend bool operator==(const Rope&, const Rope&) = default;
};

// `theta_holder` has rope_theta, `rope` all else.
Rope read_rope(const JsonNode& theta_holder, const JsonNode& rope) {
  Rope out;
  out.theta = positive(theta_holder, "rope_theta", 1e12);
  // Files of older versions say "type".
  require_text(rope, rope.has("rope_type") || !rope.has("type") ? "rope_type" : "type", {"default"});
  const JsonNode section = rope.at("mrope_section");
  require(section.array_size() == out.section.size(), section, "expected three numbers: time, height, width");
  for (std::size_t i = 0; i < out.section.size(); ++i) {
    out.section.at(i) = section.at(i).integer();
    require(out.section.at(i) >= 0 && out.section.at(i) <= kMaxWidth, section.at(i), "not a possible size");
  }
  return out;
}

Rope find_rope(const JsonNode& text) {
  const bool scaling = text.has("rope_scaling") && !text.at("rope_scaling").value().is_null();
  const bool parameters = text.has("rope_parameters") && !text.at("rope_parameters").value().is_null();
  require(scaling || parameters, text, "the key 'rope_scaling' (or 'rope_parameters') is missing");
  std::optional<Rope> rope;
  if (parameters) {
    const JsonNode node = text.at("rope_parameters");
    rope = read_rope(node.has("rope_theta") ? node : text, node);
  }
  if (scaling) {
    const Rope other =
        read_rope(text.has("rope_theta") || !parameters ? text : text.at("rope_parameters"), text.at("rope_scaling"));
    require(!rope || *rope == other, text, "'rope_parameters' and 'rope_scaling' contradict each other");
    rope = other;
  }
  return *rope;
}

void check_rope(const TextConfig& text, const JsonNode& node) {
  const auto& section = text.mrope_section;
  const std::int64_t half = text.head_dim / 2;
  require(section[0] + section[1] + section[2] == half, node,
          fmt::format("mrope_section [{}] does not add up to half of head_dim, {}", fmt::join(section, ", "), half));
  // Height takes the slots 1, 4, 7, ... and width 2, 5, 8, ...
  require(
      (section[1] == 0 || 3 * section[1] - 2 < half) && (section[2] == 0 || 3 * section[2] - 1 < half), node,
      fmt::format("mrope_section [{}] cannot be interleaved within {} frequencies", fmt::join(section, ", "), half));
}

bool read_tied(const JsonNode& root, const JsonNode& text) {
  constexpr std::string_view kKey = "tie_word_embeddings";
  require(root.has(kKey) || text.has(kKey), root, fmt::format("the key '{}' is missing", kKey));
  const bool tied = root.has(kKey) ? root.at(kKey).boolean() : text.at(kKey).boolean();
  require(!text.has(kKey) || text.at(kKey).boolean() == tied, text,
          "tie_word_embeddings is not what it is at the top of the file; make both say what the checkpoint is");
  return tied;
}

TextConfig read_text(const JsonNode& root, const JsonNode& node) {
  require_text(node, "model_type", {"qwen3_vl_text"});
  require_text(node, "hidden_act", {"silu"});
  require(!node.at("attention_bias").boolean(), node.at("attention_bias"), "attention with biases is not supported");
  TextConfig text;
  text.hidden = extent(node, "hidden_size", kMaxWidth);
  text.layers = extent(node, "num_hidden_layers", kMaxLayers);
  text.heads = extent(node, "num_attention_heads", kMaxHeads);
  text.kv_heads = extent(node, "num_key_value_heads", kMaxHeads);
  text.head_dim = extent(node, "head_dim", kMaxHeads);
  text.intermediate = extent(node, "intermediate_size", kMaxWidth);
  text.vocab = extent(node, "vocab_size", kMaxVocabulary);
  text.max_positions = extent(node, "max_position_embeddings", kMaxPositions);
  text.rms_eps = positive(node, "rms_norm_eps", 1);
  const Rope rope = find_rope(node);
  text.rope_theta = rope.theta;
  text.mrope_section = rope.section;
  text.tied = read_tied(root, node);
  require(text.heads % text.kv_heads == 0, node,
          fmt::format("num_attention_heads {} is no multiple of num_key_value_heads {}", text.heads, text.kv_heads));
  require(text.head_dim % 2 == 0, node, fmt::format("head_dim {} is odd", text.head_dim));
  check_rope(text, node);
  return text;
}

std::vector<std::int64_t> read_deepstack(const JsonNode& node, std::int64_t depth, std::int64_t layers) {
  std::vector<std::int64_t> indexes;
  const std::size_t count = node.array_size();
  require(count <= static_cast<std::size_t>(layers), node,
          fmt::format("{} deepstack features for {} layers of the decoder", count, layers));
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t index = node.at(i).integer();
    require(index >= 0 && index < depth, node.at(i), fmt::format("there is no block {} of {}", index, depth));
    require(indexes.empty() || index > indexes.back(), node.at(i), "the blocks must ascend");
    indexes.push_back(index);
  }
  return indexes;
}

VisionConfig read_vision(const JsonNode& node, const TextConfig& text) {
  require_text(node, "model_type", {"qwen3_vl", "qwen3_vl_vision"});
  require_text(node, "hidden_act", {"gelu_pytorch_tanh"});
  VisionConfig vision;
  vision.hidden = extent(node, "hidden_size", kMaxWidth);
  vision.depth = extent(node, "depth", kMaxLayers);
  vision.heads = extent(node, "num_heads", kMaxHeads);
  vision.intermediate = extent(node, "intermediate_size", kMaxWidth);
  vision.in_channels = extent(node, "in_channels", 16);
  vision.patch = extent(node, "patch_size", kMaxPatch);
  vision.temporal_patch = extent(node, "temporal_patch_size", 16);
  vision.merge = extent(node, "spatial_merge_size", 16);
  vision.out_hidden = extent(node, "out_hidden_size", kMaxWidth);
  vision.positions = extent(node, "num_position_embeddings", kMaxWidth);
  vision.deepstack_indexes = read_deepstack(node.at("deepstack_visual_indexes"), vision.depth, text.layers);
  require(vision.hidden % vision.heads == 0, node,
          fmt::format("hidden_size {} is no multiple of num_heads {}", vision.hidden, vision.heads));
  require(vision.head_dim() % 4 == 0, node, fmt::format("heads of {} values are no multiple of 4", vision.head_dim()));
  require(vision.position_side() * vision.position_side() == vision.positions, node,
          fmt::format("num_position_embeddings {} is no square", vision.positions));
  require(vision.out_hidden == text.hidden, node,
          fmt::format("out_hidden_size {} is not the decoder's hidden_size {}", vision.out_hidden, text.hidden));
  return vision;
}

void read_tokens(const JsonNode& root, const JsonNode& text, ModelConfig& config) {
  const std::int64_t vocabulary = config.text.vocab;
  config.image_token = token(root.at("image_token_id"), vocabulary);
  config.video_token = token(root.at("video_token_id"), vocabulary);
  config.vision_start_token = token(root.at("vision_start_token_id"), vocabulary);
  config.vision_end_token = token(root.at("vision_end_token_id"), vocabulary);
  std::array<std::int64_t, 4> ids{config.image_token, config.video_token, config.vision_start_token,
                                  config.vision_end_token};
  std::sort(ids.begin(), ids.end());
  require(std::adjacent_find(ids.begin(), ids.end()) == ids.end(), root,
          "two of image_token_id, video_token_id, vision_start_token_id and vision_end_token_id are the same");
  if (!text.has("eos_token_id") || text.at("eos_token_id").value().is_null()) {
    return;
  }
  const JsonNode eos = text.at("eos_token_id");
  if (!eos.value().is_array()) {
    config.eos_tokens.push_back(token(eos, vocabulary));
    return;
  }
  for (std::size_t i = 0; i < eos.array_size(); ++i) {
    config.eos_tokens.push_back(token(eos.at(i), vocabulary));
  }
}

ModelConfig read_config(const JsonNode& root) {
  require_text(root, "model_type", {"qwen3_vl"});
  for (const std::string_view key : {"quantization_config", "quantization"}) {
    if (root.has(key) && !root.at(key).value().is_null()) {
      root.at(key).fail("quantised models are not supported; take the bfloat16 checkpoint");
    }
  }
  ModelConfig config;
  const JsonNode text = root.at("text_config");
  config.text = read_text(root, text);
  config.vision = read_vision(root.at("vision_config"), config.text);
  read_tokens(root, text, config);
  try {
    (void)parameter_count(config);
  } catch (const ModelError& error) {
    root.fail(error.what());
  }
  return config;
}

}  // namespace

std::int64_t VisionConfig::position_side() const noexcept {
  return std::llround(std::sqrt(static_cast<double>(positions)));
}

ModelConfig parse_model_config(std::string_view text, const std::string& file) {
  try {
    const nlohmann::json document = parse_json(text, file);
    return read_config(JsonNode(document, file));
  } catch (const SpaceError& error) {
    throw ModelError(error.what());
  }
}

ModelConfig load_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  return parse_model_config(read_model_file(file, kMaxConfigBytes), file.string());
}

}  // namespace pascaline
