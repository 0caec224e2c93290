#include "runtime/checkpoint/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/checkpoint/model_error.hpp"
#include "runtime/checkpoint/model_keys.hpp"
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

// The base of rotary angles.
double read_theta(const JsonNode& object) {
  constexpr double kMaxTheta = 1e12;
  const JsonNode node = object.at("rope_theta");
  const double value = node.real();
  if (!(value > 1 && value <= kMaxTheta)) {
    node.fail(fmt::format("{} is not possible here (above 1, at most {})", value, kMaxTheta));
  }
  return value;
}

// A key that must be there, too.
void require_supported(const JsonNode& object, const LimitedKey& limit) {
  check_supported(object.at(limit.key), limit);
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

constexpr std::array<std::string_view, 2> kRopeObjects{"rope_parameters", "rope_scaling"};

// Bases of rotary angles may stand in three places, where they must agree.
std::optional<double> find_theta(const JsonNode& object) {
  std::optional<double> theta;
  const auto take = [&](const JsonNode& holder) {
    if (holder.has_value("rope_theta")) {
      const double found = read_theta(holder);
      const double other = theta.value_or(found);
      require(other == found, holder.at("rope_theta"), fmt::format("{} and {} contradict each other", found, other));
      theta = found;
    }
  };
  take(object);
  for (const std::string_view key : kRopeObjects) {
    if (object.has_value(key)) {
      take(object.at(key));
    }
  }
  return theta;
}

// Files of older versions say "type".
void check_rope_type(const JsonNode& rope) {
  require_supported(rope, {rope.has_value("rope_type") || !rope.has_value("type") ? "rope_type" : "type", kRopeTypes});
}

using Section = std::array<std::int64_t, 3>;

Section read_section(const JsonNode& rope) {
  check_rope_type(rope);
  check_text_rope_keys(rope);
  const JsonNode node = rope.at("mrope_section");
  Section section{};
  require(node.array_size() == section.size(), node, "expected three numbers: time, height, width");
  for (std::size_t i = 0; i < section.size(); ++i) {
    section.at(i) = node.at(i).integer();
    require(section.at(i) >= 0 && section.at(i) <= kMaxWidth, node.at(i), "not a possible size");
  }
  return section;
}

Section find_section(const JsonNode& text) {
  std::optional<Section> section;
  for (const std::string_view key : kRopeObjects) {
    if (text.has_value(key)) {
      const Section found = read_section(text.at(key));
      require(section.value_or(found) == found, text, "'rope_parameters' and 'rope_scaling' contradict each other");
      section = found;
    }
  }
  require(section.has_value(), text, "the key 'rope_scaling' (or 'rope_parameters') is missing");
  return *section;
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
  require_supported(node, {"model_type", R"(["qwen3_vl_text"])"});
  require_supported(node, {"hidden_act", R"(["silu"])"});
  require_supported(node, {"attention_bias", "[false]"});
  require_supported(node, kNormEpsilon);
  check_text_keys(node);
  TextConfig text;
  text.hidden = extent(node, "hidden_size", kMaxWidth);
  text.layers = extent(node, "num_hidden_layers", kMaxLayers);
  text.heads = extent(node, "num_attention_heads", kMaxHeads);
  text.kv_heads = extent(node, "num_key_value_heads", kMaxHeads);
  text.head_dim = extent(node, "head_dim", kMaxHeads);
  text.intermediate = extent(node, "intermediate_size", kMaxWidth);
  text.vocab = extent(node, "vocab_size", kMaxVocabulary);
  text.max_positions = extent(node, "max_position_embeddings", kMaxPositions);
  const std::optional<double> theta = find_theta(node);
  text.rope_theta = theta ? *theta : read_theta(node);
  text.mrope_section = find_section(node);
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

// The released models do not say how the tower's positions turn.
double read_vision_rope(const JsonNode& vision) {
  for (const std::string_view key : kRopeObjects) {
    if (vision.has_value(key)) {
      check_vision_rope_keys(vision.at(key));
    }
  }
  return find_theta(vision).value_or(VisionConfig().rope_theta);
}

VisionConfig read_vision(const JsonNode& node, const TextConfig& text) {
  require_supported(node, {"model_type", R"(["qwen3_vl", "qwen3_vl_vision"])"});
  require_supported(node, {"hidden_act", R"(["gelu_pytorch_tanh"])"});
  check_vision_keys(node);
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
  vision.rope_theta = read_vision_rope(node);
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
  if (!text.has_value("eos_token_id")) {
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
  require_supported(root, {"model_type", R"(["qwen3_vl"])"});
  for (const std::string_view key : {"quantization_config", "quantization"}) {
    if (root.has_value(key)) {
      root.at(key).fail("quantised models are not supported; take the bfloat16 checkpoint");
    }
  }
  ModelConfig config;
  const JsonNode text = root.at("text_config");
  check_root_keys(root, text);
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
