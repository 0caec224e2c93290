#include "model/model_sites.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"
#include "model/fusion/site_space.hpp"
#include "model/fusion/sites.hpp"
#include "model/requirements.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/ops/matmul.hpp"

namespace pascaline {
namespace {

// Tensors of which only extents and types count.
TensorView shaped(std::initializer_list<std::int64_t> extents, ElementType type = ElementType::float32) {
  return {nullptr, type, extents};
}

void add_once(std::vector<Problem>& sites, const SiteKey& key) {
  Problem site = key.named();
  if (std::ranges::find(sites, site) == sites.end()) {
    sites.push_back(std::move(site));
  }
}

void add_layers(std::vector<Problem>& sites, const TextConfig& config, const TextWeights& weights, ElementType cache,
                const AttentionChoice& choice) {
  for (const std::int64_t rows : {std::int64_t{1}, ops::kFewRows, ops::kFewRows + 1}) {
    for (const TextLayerWeights& layer : weights.layers) {
      AttentionSite attention;
      attention.hidden = shaped({rows, config.hidden});
      attention.qkv_weight = layer.qkv;
      attention.q_weight = layer.q_norm;
      attention.output = layer.output;
      attention.q = shaped({rows, config.heads, config.head_dim});
      attention.k_cache = shaped({2, config.kv_heads, config.head_dim}, cache);
      attention.section_h = config.mrope_section[1];
      attention.section_w = config.mrope_section[2];
      add_once(sites, choice.is_dense() ? attention.key() : SparseAttentionSite{attention, choice, {}, {}, {}}.key());
      MlpSite mlp;
      mlp.hidden = attention.hidden;
      mlp.gate_up = layer.gate_up;
      mlp.down = layer.down;
      mlp.gated = shaped({rows, config.intermediate});
      add_once(sites, mlp.key());
    }
  }
  HeadSite head;
  head.hidden = shaped({1, config.hidden});
  head.head = weights.head;
  head.logits = shaped({1, config.vocab});
  add_once(sites, head.key());
  NextTokenSite next;
  next.next.sample.logits = shaped({config.vocab});
  next.next.table = weights.embedding;
  next.next.next = shaped({1, config.hidden});
  add_once(sites, next.key());
}

void add_merger(std::vector<Problem>& sites, const VisionConfig& config, const MergerWeights& weights,
                bool merged_first) {
  MergerSite merger;
  merger.hidden = shaped({1, config.hidden});
  merger.fc1 = weights.fc1;
  merger.fc2 = weights.fc2;
  merger.out = shaped({1, config.out_hidden});
  merger.wide = shaped({1, config.merged()});
  merger.merged_first = merged_first;
  add_once(sites, merger.key());
}

void add_tower(std::vector<Problem>& sites, const VisionConfig& config, const VisionWeights& weights) {
  for (const VisionBlockWeights& block : weights.blocks) {
    VisionAttentionSite attention;
    attention.hidden = shaped({1, config.hidden});
    attention.qkv_weight = block.qkv;
    attention.projection = block.projection;
    attention.attended = shaped({1, config.heads, padded_head_dim(config)});
    add_once(sites, attention.key());
    VisionMlpSite mlp;
    mlp.hidden = attention.hidden;
    mlp.fc1 = block.fc1;
    mlp.fc2 = block.fc2;
    mlp.wide = shaped({1, config.intermediate});
    add_once(sites, mlp.key());
  }
  for (const MergerWeights& merger : weights.deepstack) {
    add_merger(sites, config, merger, true);
  }
  add_merger(sites, config, weights.merger, false);
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

std::vector<Problem> sites_of_model(const ModelConfig& config, const ModelWeights& weights, ElementType cache,
                                    const AttentionChoice& attention) {
  std::vector<Problem> sites;
  add_layers(sites, config.text, weights.text, cache, attention);
  if (config.vision) {
    add_tower(sites, *config.vision, weights.vision);
  }
  return sites;
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

FusionFile plan_for_model(FusionFile file, const DeviceRow& device, const std::vector<Problem>& sites,
                          const std::function<void(const std::string&)>& warn) {
  file = plan_for_device(std::move(file), device, warn);
  for (const FusionFile::Entry& entry : file.sites) {
    if (std::ranges::none_of(sites, [&](const Problem& site) { return same_but_for_sizes(site, entry.site); })) {
      warn(
          fmt::format("{} is a plan for another model, or for other types of weights or cache: this one has no {}; "
                      "nothing of it is used",
                      file.name, entry.site.text()));
      return {};
    }
  }
  return file;
}

}  // namespace pascaline
