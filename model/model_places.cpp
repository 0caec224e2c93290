#include "model/model_places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "model/fusion/place_space.hpp"
#include "model/fusion/places.hpp"
#include "model/requirements.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {
namespace {

// Tensors of which only extents and types count.
TensorView shaped(std::initializer_list<std::int64_t> extents, ElementType type = ElementType::float32) {
  return {nullptr, type, extents};
}

void add_once(std::vector<Problem>& places, const PlaceKey& key) {
  Problem place = key.named();
  if (std::ranges::find(places, place) == places.end()) {
    places.push_back(std::move(place));
  }
}

void add_layers(std::vector<Problem>& places, const TextConfig& config, const TextWeights& weights, ElementType cache,
                const AttentionChoice& choice) {
  for (const std::int64_t rows : {std::int64_t{1}, ops::kFewRows, ops::kFewRows + 1}) {
    for (const TextLayerWeights& layer : weights.layers) {
      AttentionPlace attention;
      attention.hidden = shaped({rows, config.hidden});
      attention.qkv_weight = layer.qkv;
      attention.q_norm = layer.q_norm;
      attention.output = layer.output;
      attention.q = shaped({rows, config.heads, config.head_dim});
      attention.k_cache = shaped({2, config.kv_heads, config.head_dim}, cache);
      attention.section_h = config.mrope_section[1];
      attention.section_w = config.mrope_section[2];
      add_once(places, choice.is_dense() ? attention.key() : SparseAttentionPlace{attention, choice, {}, {}, {}}.key());
      MlpPlace mlp;
      mlp.hidden = attention.hidden;
      mlp.gate_up = layer.gate_up;
      mlp.down = layer.down;
      mlp.gated = shaped({rows, config.intermediate});
      add_once(places, mlp.key());
    }
  }
  HeadPlace head;
  head.hidden = shaped({1, config.hidden});
  head.head = weights.head;
  head.logits = shaped({1, config.vocab});
  add_once(places, head.key());
  NextTokenPlace next;
  next.next.sample.logits = shaped({config.vocab});
  next.next.table = weights.embedding;
  next.next.next = shaped({1, config.hidden});
  add_once(places, next.key());
}

void add_merger(std::vector<Problem>& places, const VisionConfig& config, const MergerWeights& weights,
                bool merged_first) {
  MergerPlace merger;
  merger.hidden = shaped({1, config.hidden});
  merger.fc1 = weights.fc1;
  merger.fc2 = weights.fc2;
  merger.out = shaped({1, config.out_hidden});
  merger.wide = shaped({1, config.merged()});
  merger.merged_first = merged_first;
  add_once(places, merger.key());
}

void add_tower(std::vector<Problem>& places, const VisionConfig& config, const VisionWeights& weights) {
  for (const VisionBlockWeights& block : weights.blocks) {
    VisionAttentionPlace attention;
    attention.hidden = shaped({1, config.hidden});
    attention.qkv_weight = block.qkv;
    attention.projection = block.projection;
    attention.attended = shaped({1, config.heads, padded_head_dim(config)});
    add_once(places, attention.key());
    VisionMlpPlace mlp;
    mlp.hidden = attention.hidden;
    mlp.fc1 = block.fc1;
    mlp.fc2 = block.fc2;
    mlp.wide = shaped({1, config.intermediate});
    add_once(places, mlp.key());
  }
  for (const MergerWeights& merger : weights.deepstack) {
    add_merger(places, config, merger, true);
  }
  add_merger(places, config, weights.merger, false);
}

// With what tells it from a namesake, where there is one.
std::string named(const DeviceRow& device, bool has_namesake) {
  std::string name = clean_line(device.name);
  if (!has_namesake) {
    return name;
  }
  const std::string& capability = device.compute_capability;
  return fmt::format("{} ({}{}, {})", name, clean_line(device.kind),
                     capability.empty() ? "" : ", compute capability " + clean_line(capability),
                     counted(device.sm_count, "multiprocessor"));
}

}  // namespace

std::vector<Problem> places_of_model(const ModelConfig& config, const ModelWeights& weights, ElementType cache,
                                     const AttentionChoice& attention) {
  std::vector<Problem> places;
  add_layers(places, config.text, weights.text, cache, attention);
  if (config.vision) {
    add_tower(places, *config.vision, weights.vision);
  }
  return places;
}

FusionFile plan_for_device(FusionFile file, const DeviceRow& device,
                           const std::function<void(const std::string&)>& warn) {
  if (file.name.empty() || same_identity(file.device, device)) {
    return file;
  }
  const bool is_namesake = file.device.name == device.name;
  warn(fmt::format("{} is a plan for {}, not for {}: nothing of it is used", file.name, named(file.device, is_namesake),
                   named(device, is_namesake)));
  return {};
}

FusionFile plan_for_model(FusionFile file, const DeviceRow& device, const std::vector<Problem>& places,
                          const std::function<void(const std::string&)>& warn) {
  file = plan_for_device(std::move(file), device, warn);
  for (const FusionFile::Entry& entry : file.places) {
    if (std::ranges::none_of(places, [&](const Problem& place) { return same_but_for_sizes(place, entry.place); })) {
      warn(
          fmt::format("{} is a plan for another model, or for other types of weights or cache: this one has no {}; "
                      "nothing of it is used",
                      file.name, entry.place.text()));
      return {};
    }
  }
  return file;
}

}  // namespace pascaline
