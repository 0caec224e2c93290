#include "model/memory_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include "model/checkpoint/weight_table.hpp"
#include "model/decoder/kv_cache.hpp"
#include "model/decoder/sampler.hpp"
#include "model/decoder/sparse_attention.hpp"
#include "model/decoder/text_decoder.hpp"
#include "model/requirements.hpp"
#include "model/residency/device_weights.hpp"
#include "model/vision/vision_tower.hpp"
#include "runtime/memory/pool.hpp"

namespace pascaline {
namespace {

// What is left free of a device that is filled with layers.
constexpr std::uint64_t kReservedPart = 16;
constexpr std::uint64_t kMaxReserved = std::uint64_t{64} << 20;
// Of an image of 512 x 512 pixels, which a conversation without one may still get.
constexpr std::int64_t kLaterPatches = 1024;

// What rounding activations to int8 takes, for passes of the decoder and for the request's images.
std::uint64_t rounding_bytes(const ModelConfig& config, const ModelOptions& options, bool with_images) {
  if (!options.weights.has_packed_formats()) {
    return 0;
  }
  const std::uint64_t decoder = LinearLayers::bytes_for(options.chunk, LinearLayers::widest(config.text));
  const std::int64_t patches = options.request.patches;
  return with_images && patches > 0
             ? std::max(decoder, LinearLayers::bytes_for(patches, LinearLayers::widest(vision_of(config))))
             : decoder;
}

// Of the choice of tokens, too.
std::uint64_t logit_bytes(const ModelConfig& config, const ModelRequest& request) {
  const std::int64_t rows = 1 + (request.all_logits ? kLogitRows : 0);
  return static_cast<std::uint64_t>(rows * config.text.vocab) * sizeof(float) + Sampler::bytes_for(config.text.vocab);
}

// What chooses blocks of keys, for all layers together, and for each of them.
std::uint64_t choice_bytes(const ModelConfig& config, const ModelOptions& options) {
  return SparseAttention::shared_bytes(config.text, options.attention, options.context, options.chunk);
}

std::uint64_t mean_bytes(const ModelConfig& config, const ModelOptions& options) {
  return SparseAttention::layer_bytes(config.text, options.attention, options.context);
}

// That memory is counted for.
std::int64_t cached_tokens(const ModelOptions& options, bool filled_device) {
  return filled_device && !options.request.is_all ? options.context : options.request.tokens;
}

// The types that the matrices of a part are kept in, e.g. "q4_k" or "q8_0, q4_k".
std::string part_types(const ModelConfig& config, const WeightRecipe& weights, std::initializer_list<PartKind> kinds) {
  ModelWeights unused;
  std::vector<std::string_view> types;
  for (const WeightEntry& entry : weight_table(config, unused, weights)) {
    if (entry.kind() == TensorKind::matrix && std::find(kinds.begin(), kinds.end(), entry.part.kind) != kinds.end() &&
        std::find(types.begin(), types.end(), name_of(weights.of(entry))) == types.end()) {
      types.push_back(name_of(weights.of(entry)));
    }
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string layers_text(std::size_t count) { return fmt::format("{} layer{}", count, count == 1 ? "" : "s"); }

// "the vision tower", or "3 of 28 parts of the vision tower".
std::string tower_text(const ResidencySizes& sizes, const ModelResidency& residency, Residency where) {
  const std::size_t streamed = residency.streamed_of_tower();
  const std::size_t all = sizes.tower.size();
  const std::size_t count = residency.vision != Residency::streamed ? all
                            : where == Residency::streamed          ? streamed
                                                                    : all - streamed;
  return count == all ? "the vision tower" : fmt::format("{} of {} parts of the vision tower", count, all);
}

// What takes turns in slots.
std::string streamed_text(const ResidencySizes& sizes, const ModelResidency& residency) {
  std::vector<std::string> parts;
  if (const std::size_t layers = residency.count(Residency::streamed); layers > 0) {
    parts.push_back(layers_text(layers));
  }
  if (residency.vision == Residency::streamed) {
    parts.push_back(tower_text(sizes, residency, Residency::streamed));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

std::uint64_t total_of(const std::vector<MemoryPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const MemoryPart& part) { return sum + part.bytes; });
}

ResidencySizes residency_sizes(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options) {
  const TextConfig& text = config.text;
  const ModelRequest& request = options.request;
  const auto cache = [&](std::int64_t tokens) {
    return KvCache::bytes_for(memory, text, options.cache, options.context, tokens) /
               static_cast<std::uint64_t>(text.layers) +
           mean_bytes(config, options);
  };
  ResidencySizes sizes = weight_sizes(config, options.weights);
  sizes.layer_cache = cache(request.tokens);
  sizes.full_cache = request.is_all ? sizes.layer_cache : cache(options.context);
  sizes.reserve = std::min(memory.state().free_bytes / kReservedPart, kMaxReserved);
  sizes.fixed = logit_bytes(config, request);
  sizes.decoder = TextDecoder::activation_bytes(text, options.chunk) + TextDecoder::table_bytes(text, options.context) +
                  rounding_bytes(config, options, false) + choice_bytes(config, options);
  if (request.patches > 0) {
    const VisionConfig& vision = vision_of(config);
    const auto tokens = static_cast<std::uint64_t>(request.patches / (vision.merge * vision.merge));
    sizes.images = VisionTower::bytes_for(vision, request.patches, request.longest_side) +
                   rounding_bytes(config, options, true) - rounding_bytes(config, options, false);
    sizes.features =
        tokens * static_cast<std::uint64_t>(vision.out_hidden) * sizeof(float) * (1 + vision.deepstack_indexes.size());
  }
  sizes.patches = request.patches;
  sizes.expected_patches = request.patches > 0 || request.is_all || !config.vision ? request.patches : kLaterPatches;
  sizes.chunk = options.chunk;
  return sizes;
}

std::vector<MemoryPart> device_parts(const ModelConfig& config, const ModelOptions& options,
                                     const ResidencySizes& sizes, const ModelResidency& residency, bool filled_device) {
  const std::string type = part_types(config, options.weights, {PartKind::layer});
  const std::string ends = part_types(config, options.weights, {PartKind::embedding, PartKind::head});
  const std::string tower = part_types(config, options.weights, {PartKind::vision});
  const auto here = [](Residency where, std::uint64_t bytes) { return where == Residency::device ? bytes : 0; };
  std::uint64_t layers = 0;
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    layers += here(residency.layers[i], sizes.layers[i].bytes);
  }
  const std::size_t cached = sizes.layers.size() - residency.count(Residency::processor);
  const std::uint64_t rounding = rounding_bytes(config, options, false);
  const std::uint64_t decodes = residency.device_decodes() ? 1 : 0;
  const std::uint64_t means = mean_bytes(config, options);
  const std::int64_t tokens = cached_tokens(options, filled_device);
  std::vector<MemoryPart> parts{
      {fmt::format("weights of {} in {}", layers_text(residency.count(Residency::device)), type), layers},
      {fmt::format("weights of embedding and head in {}", ends),
       here(residency.embedding, sizes.embedding.bytes) + here(residency.head, sizes.head.bytes)},
      {fmt::format("weights of {} in {}", tower_text(sizes, residency, Residency::device), tower),
       sizes.tower_bytes(residency, Residency::device)},
      {fmt::format("slots for {} that are streamed", streamed_text(sizes, residency)), slot_bytes(sizes, residency)},
      {fmt::format("activations of {} tokens at a time", options.chunk),
       decodes * TextDecoder::activation_bytes(config.text, options.chunk)},
      {"activations rounded to int8", decodes * rounding},
      {"scores and lists of blocks of keys", decodes * choice_bytes(config, options)},
      {fmt::format("tables for a context of {} tokens", options.context),
       decodes * TextDecoder::table_bytes(config.text, options.context)},
      {"logits and the choice of tokens", sizes.fixed},
      {fmt::format("cache for {} tokens of {} in {}", tokens, layers_text(cached), name_of(options.cache)),
       static_cast<std::uint64_t>(cached) * ((filled_device ? sizes.full_cache : sizes.layer_cache) - means)},
      {fmt::format("means of blocks of keys of {}", layers_text(cached)), static_cast<std::uint64_t>(cached) * means},
      {fmt::format("images of {} patches", sizes.patches), residency.vision == Residency::processor ? 0 : sizes.images},
      {fmt::format("what the processor makes of images of {} patches", sizes.patches),
       residency.vision == Residency::processor ? sizes.features : 0},
      {"left free for code and scratch memory of kernels", filled_device ? sizes.reserve : 0}};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  parts.push_back({"small tensors, rounded up", 2 * MemoryPool::slab_bytes_for(total_of(parts))});
  return parts;
}

std::vector<MemoryPart> host_parts(const ModelConfig& config, const ModelOptions& options, const ResidencySizes& sizes,
                                   const ModelResidency& residency, bool filled_device) {
  const std::string type = part_types(config, options.weights, {PartKind::layer});
  const std::string ends = part_types(config, options.weights, {PartKind::embedding, PartKind::head});
  const std::string tower = part_types(config, options.weights, {PartKind::vision});
  std::uint64_t computed = 0;
  std::uint64_t streamed = 0;
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    computed += residency.layers[i] == Residency::processor ? sizes.layers[i].bytes : 0;
    streamed += residency.layers[i] == Residency::streamed ? sizes.layers[i].bytes : 0;
  }
  const auto here = [](Residency where, std::uint64_t bytes) { return where == Residency::device ? 0 : bytes; };
  const std::size_t cached = residency.count(Residency::processor);
  const std::int64_t tokens = cached_tokens(options, filled_device);
  std::vector<MemoryPart> parts{
      {fmt::format("weights of {} in {}", layers_text(cached), type), computed},
      {fmt::format("weights of {} to be streamed in {}, page-locked", layers_text(residency.count(Residency::streamed)),
                   type),
       streamed},
      {fmt::format("weights of embedding and head in {}", ends),
       here(residency.embedding, sizes.embedding.bytes) + here(residency.head, sizes.head.bytes)},
      {fmt::format("weights of the vision tower in {}", tower), sizes.tower_bytes(residency, Residency::processor)},
      {fmt::format("weights of {} to be streamed in {}, page-locked", tower_text(sizes, residency, Residency::streamed),
                   tower),
       sizes.tower_bytes(residency, Residency::streamed)},
      {"activations and tables", residency.processor_decodes() ? sizes.decoder : 0},
      {fmt::format("cache for {} tokens of {} in {}", tokens, layers_text(cached), name_of(options.cache)),
       static_cast<std::uint64_t>(cached) * (filled_device ? sizes.full_cache : sizes.layer_cache)},
      {fmt::format("images of {} patches", sizes.patches),
       residency.vision == Residency::processor ? sizes.images : 0}};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

std::vector<MemoryPart> memory_parts(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options) {
  const TextConfig& text = config.text;
  const ModelRequest& request = options.request;
  std::vector<MemoryPart> parts{
      {fmt::format("weights, matrices in {}", options.weights.name()), device_weight_bytes(config, options.weights)},
      {fmt::format("activations of {} tokens at a time", options.chunk),
       TextDecoder::activation_bytes(text, options.chunk)},
      {fmt::format("tables for a context of {} tokens", options.context),
       TextDecoder::table_bytes(text, options.context)},
      {"logits and the choice of tokens", logit_bytes(config, request)},
      {fmt::format("cache for {} tokens in {}", request.tokens, name_of(options.cache)),
       KvCache::bytes_for(memory, text, options.cache, options.context, request.tokens)}};
  if (options.attention.chooses_blocks()) {
    parts.push_back(
        {"means, scores and lists of blocks of keys",
         choice_bytes(config, options) + static_cast<std::uint64_t>(text.layers) * mean_bytes(config, options)});
  }
  if (options.weights.has_packed_formats()) {
    parts.push_back({"activations rounded to int8", rounding_bytes(config, options, true)});
  }
  if (request.patches > 0) {
    parts.push_back({fmt::format("images of {} patches", request.patches),
                     VisionTower::bytes_for(vision_of(config), request.patches, request.longest_side)});
  }
  // The last slab of a pool, and what is too small to be used in those before.
  parts.push_back({"small tensors, rounded up", 2 * MemoryPool::slab_bytes_for(total_of(parts))});
  return parts;
}

}  // namespace pascaline
