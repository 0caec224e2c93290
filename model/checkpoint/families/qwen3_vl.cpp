#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/hf/config_fields.hpp"
#include "model/checkpoint/model_keys.hpp"
#include "model/checkpoint/table_writer.hpp"

// Qwen3-VL: "Qwen3-VL Technical Report" (Qwen Team, 2025), with the names of Hugging Face Transformers.
namespace pascaline {
namespace {

constexpr std::int64_t kMaxPatch = 256;
constexpr DecoderDefaults kTextDefaults{
    .kv_heads = 32, .head_dim = 128, .intermediate = 22016, .vocab = 151936, .max_positions = 128000};

constexpr std::array<NamePrefix, 9> kQwen3VlPrefixes{{{"language_model.model.", "model.language_model."},
                                                      {"language_model.lm_head.", "lm_head."},
                                                      {"language_model.", "model.language_model."},
                                                      {"vision_tower.", "model.visual."},
                                                      {"visual.", "model.visual."},
                                                      {"layers.", "model.language_model.layers."},
                                                      {"embed_tokens.", "model.language_model.embed_tokens."},
                                                      {"norm.", "model.language_model.norm."},
                                                      {"lm_head.", "lm_head."}}};

using Section = std::array<std::int64_t, 3>;

// Transformers writes it only if it was set.
constexpr Section kUsualSection{24, 20, 20};

Section read_section(const JsonNode& rope) {
  check_rope_type(rope);
  check_text_rope_keys(rope);
  if (!rope.has_value("mrope_section")) {
    return kUsualSection;
  }
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

// The head belongs to the whole model, so the key at the top of the file counts, as in Transformers, which leaves
// another value in text_config when it saves a model whose head was untied.
bool read_tied(const JsonNode& root, const JsonNode& text) {
  constexpr std::string_view kKey = "tie_word_embeddings";
  const JsonNode& where = root.has_value(kKey) ? root : text;
  return where.has_value(kKey) && where.at(kKey).boolean();
}

TextConfig read_text(const JsonNode& root, const JsonNode& node) {
  constexpr std::array kLimited{LimitedKey{"model_type", R"(["qwen3_vl_text"])"}};
  check_limits(node, kLimited);
  check_text_keys(node);
  TextConfig text = read_decoder(node, kTextDefaults);
  text.mrope_section = find_section(node);
  text.tied = read_tied(root, node);
  check_rope(text, node);
  return text;
}

std::vector<std::int64_t> read_deepstack(const JsonNode& vision, std::int64_t depth, std::int64_t layers) {
  constexpr std::string_view kKey = "deepstack_visual_indexes";
  static const nlohmann::json usual{8, 16, 24};
  const JsonNode node = vision.has_value(kKey)
                            ? vision.at(kKey)
                            : JsonNode(usual, vision.file(), vision.pointer() + "/" + std::string(kKey));
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

// The released models leave out the base of the tower's angles.
double read_vision_rope(const JsonNode& vision) {
  for (const std::string_view key : kRopeObjects) {
    if (vision.has_value(key)) {
      check_vision_rope_keys(vision.at(key));
    }
  }
  return find_theta(vision).value_or(VisionConfig().rope_theta);
}

VisionConfig read_vision(const JsonNode& node, const TextConfig& text) {
  constexpr std::array kLimited{LimitedKey{"model_type", R"(["qwen3_vl", "qwen3_vl_vision"])"},
                                LimitedKey{"hidden_act", R"(["gelu_pytorch_tanh"])"}};
  check_limits(node, kLimited);
  check_vision_keys(node);
  VisionConfig vision;
  vision.hidden = read_extent(node, "hidden_size", kMaxWidth, 1152);
  vision.depth = read_extent(node, "depth", kMaxLayers, 27);
  vision.heads = read_extent(node, "num_heads", kMaxHeads, 16);
  vision.intermediate = read_extent(node, "intermediate_size", kMaxWidth, 4304);
  vision.in_channels = read_extent(node, "in_channels", 16, 3);
  vision.patch = read_extent(node, "patch_size", kMaxPatch, 16);
  vision.temporal_patch = read_extent(node, "temporal_patch_size", 16, 2);
  vision.merge = read_extent(node, "spatial_merge_size", 16, 2);
  vision.out_hidden = read_extent(node, "out_hidden_size", kMaxWidth, 3584);
  vision.positions = read_extent(node, "num_position_embeddings", kMaxWidth, 2304);
  vision.rope_theta = read_vision_rope(node);
  vision.deepstack_indexes = read_deepstack(node, vision.depth, text.layers);
  require(vision.hidden % vision.heads == 0, node,
          fmt::format("hidden_size {} is not a multiple of num_heads {}", vision.hidden, vision.heads));
  require(vision.head_dim() % 4 == 0, node,
          fmt::format("heads of {} values are not a multiple of 4", vision.head_dim()));
  require(vision.position_side() * vision.position_side() == vision.positions, node,
          fmt::format("num_position_embeddings {} is not a square", vision.positions));
  require(vision.out_hidden == text.hidden, node,
          fmt::format("out_hidden_size {} is not the decoder's hidden_size {}", vision.out_hidden, text.hidden));
  return vision;
}

void read_vision_tokens(const JsonNode& root, std::int64_t vocabulary, VisionConfig& vision) {
  const auto token = [&](std::string_view key, std::int64_t usual) {
    require(root.has_value(key) || usual < vocabulary, root, fmt::format("the key '{}' is missing", key));
    return root.has_value(key) ? read_token(root.at(key), vocabulary) : usual;
  };
  vision.image_token = token("image_token_id", 151655);
  vision.video_token =
      root.has_value("video_token_id") ? read_token(root.at("video_token_id"), vocabulary) : kNoVideoToken;
  vision.start_token = token("vision_start_token_id", 151652);
  vision.end_token = token("vision_end_token_id", 151653);
  std::array<std::int64_t, 4> ids{vision.image_token, vision.video_token, vision.start_token, vision.end_token};
  std::sort(ids.begin(), ids.end());
  require(std::adjacent_find(ids.begin(), ids.end()) == ids.end(), root,
          "two of image_token_id, video_token_id, vision_start_token_id and vision_end_token_id are the same");
}

ModelConfig read_qwen3_vl(const JsonNode& root) {
  ModelConfig config;
  const JsonNode text = root.at("text_config");
  check_root_keys(root, text);
  config.text = read_text(root, text);
  config.vision = read_vision(root.at("vision_config"), config.text);
  read_vision_tokens(root, config.text.vocab, *config.vision);
  config.eos_tokens = read_end_tokens(text, config.text.vocab);
  return config;
}

void add_block(const TableWriter& block, const VisionConfig& vision, VisionBlockWeights& places) {
  block.norm(places.norm1, "norm1", vision.hidden);
  block.linear(places.qkv, "attn.qkv", {3 * vision.hidden, vision.hidden}, WeightLayout::head_rows);
  block.linear(places.projection, "attn.proj", {vision.hidden, vision.hidden}, WeightLayout::head_columns);
  block.norm(places.norm2, "norm2", vision.hidden);
  block.linear(places.fc1, "mlp.linear_fc1", {vision.intermediate, vision.hidden});
  block.linear(places.fc2, "mlp.linear_fc2", {vision.hidden, vision.intermediate});
}

void add_merger(const TableWriter& merger, const VisionConfig& vision, std::int64_t norm, MergerWeights& places) {
  merger.norm(places.norm, "norm", norm);
  merger.linear(places.fc1, "linear_fc1", {vision.merged(), vision.merged()});
  merger.linear(places.fc2, "linear_fc2", {vision.out_hidden, vision.merged()});
}

void add_vision(const TableWriter& tower, const VisionConfig& vision, VisionWeights& places) {
  const VisionParts parts(vision);
  const auto of = [&](std::size_t part) { return tower.of({PartKind::vision, part}); };
  const TableWriter embedding = of(VisionParts::kEmbedding);
  embedding.linear(places.patch_embed, "patch_embed.proj",
                   {vision.hidden, vision.in_channels, vision.temporal_patch, vision.patch, vision.patch});
  embedding.vector(places.positions, TensorKind::positions, "pos_embed.weight", {vision.positions, vision.hidden});
  places.blocks.resize(static_cast<std::size_t>(vision.depth));
  for (std::size_t i = 0; i < places.blocks.size(); ++i) {
    add_block(of(parts.block(i)).below(fmt::format("blocks.{}.", i)), vision, places.blocks[i]);
  }
  add_merger(of(parts.merger()).below("merger."), vision, vision.hidden, places.merger);
  places.deepstack.resize(vision.deepstack_indexes.size());
  for (std::size_t i = 0; i < places.deepstack.size(); ++i) {
    // These normalise after the patches were put side by side, the one above before.
    add_merger(of(parts.deepstack(i)).below(fmt::format("deepstack_merger_list.{}.", i)), vision, vision.merged(),
               places.deepstack[i]);
  }
}

std::vector<WeightEntry> qwen3_vl_table(const ModelConfig& config, ModelWeights& places) {
  std::vector<WeightEntry> table;
  const TableWriter root(table, "");
  add_decoder(root.below("model.language_model."), config.text, places.text);
  if (config.vision) {
    add_vision(root.below("model.visual."), *config.vision, places.vision);
  }
  add_head(root, config.text, places.text);
  return table;
}

}  // namespace

FamilyTraits qwen3_vl_family() noexcept {
  return {"qwen3_vl", "Qwen3-VL", read_qwen3_vl, qwen3_vl_table, kQwen3VlPrefixes};
}

}  // namespace pascaline
