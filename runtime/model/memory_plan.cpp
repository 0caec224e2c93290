#include "runtime/model/memory_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include "core/error.hpp"
#include "runtime/checkpoint/weight_table.hpp"
#include "runtime/memory/pool.hpp"
#include "runtime/model/device_weights.hpp"
#include "runtime/model/kv_cache.hpp"
#include "runtime/model/place_rates.hpp"
#include "runtime/model/requirements.hpp"
#include "runtime/model/sampler.hpp"
#include "runtime/model/text_decoder.hpp"
#include "runtime/model/vision_tower.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kSmallChunk = 64;
constexpr std::int64_t kSmallContext = 1024;
// What is left free of a device that is filled with layers.
constexpr std::uint64_t kReservedPart = 16;
constexpr std::uint64_t kMostReserved = std::uint64_t{64} << 20;

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::uint64_t total_of(const std::vector<MemoryPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const MemoryPart& part) { return sum + part.bytes; });
}

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

PlacementSizes placement_sizes(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options) {
  const TextConfig& text = config.text;
  const ModelRequest& request = options.request;
  const auto cache = [&](std::int64_t tokens) {
    return KvCache::bytes_for(memory, text, options.cache, options.context, tokens) /
           static_cast<std::uint64_t>(text.layers);
  };
  PlacementSizes sizes = weight_sizes(config, options.weights);
  sizes.layer_cache = cache(request.tokens);
  sizes.full_cache = request.is_all ? sizes.layer_cache : cache(options.context);
  sizes.reserve = std::min(memory.state().free_bytes / kReservedPart, kMostReserved);
  sizes.fixed = logit_bytes(config, request);
  sizes.decoder = TextDecoder::activation_bytes(text, options.chunk) + TextDecoder::table_bytes(text, options.context) +
                  rounding_bytes(config, options, false);
  if (request.patches > 0) {
    const VisionConfig& vision = vision_of(config);
    const auto tokens = static_cast<std::uint64_t>(request.patches / (vision.merge * vision.merge));
    sizes.images = VisionTower::bytes_for(vision, request.patches, request.longest_side) +
                   rounding_bytes(config, options, true) - rounding_bytes(config, options, false);
    sizes.features =
        tokens * static_cast<std::uint64_t>(vision.out_hidden) * sizeof(float) * (1 + vision.deepstack_indexes.size());
  }
  sizes.patches = request.patches;
  sizes.chunk = options.chunk;
  return sizes;
}

// What is left on the device if as much as the options allow is elsewhere.
Placement smallest_placement(const ModelConfig& config, const ModelOptions& options) {
  const PlacementOptions& asked = options.placement;
  Placement placement = Placement::on_device(static_cast<std::size_t>(config.text.layers));
  placement.embedding = placement.head = Place::processor;
  placement.vision = asked.vision == VisionPlace::device || !config.vision ? Place::device : Place::processor;
  const auto kept = static_cast<std::size_t>(std::min(asked.gpu_layers.value_or(0), config.text.layers));
  std::fill(placement.layers.begin() + static_cast<std::ptrdiff_t>(kept), placement.layers.end(),
            asked.offload == Offload::stream ? Place::streamed : Place::processor);
  return placement;
}

// That memory is counted for.
std::int64_t cached_tokens(const ModelOptions& options, bool filled_device) {
  return filled_device && !options.request.is_all ? options.context : options.request.tokens;
}

// The types that the matrices of a part are kept in, e.g. "q4_k" or "q8_0, q4_k".
std::string part_types(const ModelConfig& config, const WeightRecipe& weights, std::initializer_list<PartKind> kinds) {
  ModelWeights unused;
  std::vector<std::string_view> types;
  for (const WeightEntry& entry : weight_table(config, unused)) {
    if (entry.kind() == TensorKind::matrix && std::find(kinds.begin(), kinds.end(), entry.part.kind) != kinds.end() &&
        std::find(types.begin(), types.end(), name_of(weights.of(entry))) == types.end()) {
      types.push_back(name_of(weights.of(entry)));
    }
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string layers_text(std::size_t count) { return fmt::format("{} layer{}", count, count == 1 ? "" : "s"); }

// Parts of the device's memory, by what they are for.
std::vector<MemoryPart> device_parts(const ModelConfig& config, const ModelOptions& options,
                                     const PlacementSizes& sizes, const Placement& placement, bool filled_device) {
  const std::string type = part_types(config, options.weights, {PartKind::layer});
  const std::string ends = part_types(config, options.weights, {PartKind::embedding, PartKind::head});
  const std::string tower = part_types(config, options.weights, {PartKind::vision});
  const auto here = [](Place place, std::uint64_t bytes) { return place == Place::device ? bytes : 0; };
  std::uint64_t layers = 0;
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    layers += here(placement.layers[i], sizes.layers[i].bytes);
  }
  const std::size_t cached = sizes.layers.size() - placement.count(Place::processor);
  const std::uint64_t rounding = rounding_bytes(config, options, false);
  const std::uint64_t decodes = placement.device_decodes() ? 1 : 0;
  const std::int64_t tokens = cached_tokens(options, filled_device);
  std::vector<MemoryPart> parts{
      {fmt::format("weights of {} in {}", layers_text(placement.count(Place::device)), type), layers},
      {fmt::format("weights of embedding and head in {}", ends),
       here(placement.embedding, sizes.embedding.bytes) + here(placement.head, sizes.head.bytes)},
      {fmt::format("weights of the vision tower in {}", tower), here(placement.vision, sizes.vision.bytes)},
      {fmt::format("slots for {} that are streamed", layers_text(placement.count(Place::streamed))),
       slot_bytes(sizes, placement)},
      {fmt::format("activations of {} tokens at a time", options.chunk),
       decodes * TextDecoder::activation_bytes(config.text, options.chunk)},
      {"activations rounded to int8", decodes * rounding},
      {fmt::format("tables for a context of {} tokens", options.context),
       decodes * TextDecoder::table_bytes(config.text, options.context)},
      {"logits and the choice of tokens", sizes.fixed},
      {fmt::format("cache for {} tokens of {} in {}", tokens, layers_text(cached), name_of(options.cache)),
       static_cast<std::uint64_t>(cached) * (filled_device ? sizes.full_cache : sizes.layer_cache)},
      {fmt::format("images of {} patches", sizes.patches), here(placement.vision, sizes.images)},
      {fmt::format("what the processor makes of images of {} patches", sizes.patches),
       placement.vision == Place::device ? 0 : sizes.features},
      {"left free for code and scratch memory of kernels", filled_device ? sizes.reserve : 0}};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  parts.push_back({"small tensors, rounded up", 2 * MemoryPool::slab_bytes_for(total_of(parts))});
  return parts;
}

std::vector<MemoryPart> host_parts(const ModelConfig& config, const ModelOptions& options, const PlacementSizes& sizes,
                                   const Placement& placement, bool filled_device) {
  const std::string type = part_types(config, options.weights, {PartKind::layer});
  const std::string ends = part_types(config, options.weights, {PartKind::embedding, PartKind::head});
  const std::string tower = part_types(config, options.weights, {PartKind::vision});
  std::uint64_t computed = 0;
  std::uint64_t streamed = 0;
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    computed += placement.layers[i] == Place::processor ? sizes.layers[i].bytes : 0;
    streamed += placement.layers[i] == Place::streamed ? sizes.layers[i].bytes : 0;
  }
  const auto here = [](Place place, std::uint64_t bytes) { return place == Place::device ? 0 : bytes; };
  const std::size_t cached = placement.count(Place::processor);
  const std::int64_t tokens = cached_tokens(options, filled_device);
  std::vector<MemoryPart> parts{
      {fmt::format("weights of {} in {}", layers_text(cached), type), computed},
      {fmt::format("weights of {} to be streamed in {}, page-locked", layers_text(placement.count(Place::streamed)),
                   type),
       streamed},
      {fmt::format("weights of embedding and head in {}", ends),
       here(placement.embedding, sizes.embedding.bytes) + here(placement.head, sizes.head.bytes)},
      {fmt::format("weights of the vision tower in {}", tower), here(placement.vision, sizes.vision.bytes)},
      {"activations and tables", placement.processor_decodes() ? sizes.decoder : 0},
      {fmt::format("cache for {} tokens of {} in {}", tokens, layers_text(cached), name_of(options.cache)),
       static_cast<std::uint64_t>(cached) * (filled_device ? sizes.full_cache : sizes.layer_cache)},
      {fmt::format("images of {} patches", sizes.patches), here(placement.vision, sizes.images)}};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

// An option that could be given instead.
struct OtherChoice {
  std::string option;
  std::uint64_t bytes = 0;
};

// Options that together with those before them in a list take less, whatever the context.
struct Savings {
  std::vector<std::string> given;  // none: what was asked for
  ModelOptions options;

  // As on a command line, with a space behind each.
  [[nodiscard]] std::string text() const {
    return std::accumulate(given.begin(), given.end(), std::string(),
                           [](const std::string& all, const std::string& option) { return all + option + " "; });
  }
};

// "--name" of "--name value".
std::string name_of_option(const std::string& option) { return option.substr(0, option.find(' ')); }

// A model whose memory is counted.
struct Counted {
  const ModelHome* home;
  const ModelConfig* config;

  // What the device needs at least with these options.
  [[nodiscard]] std::uint64_t bytes(const ModelOptions& options) const {
    return home->on_processor ? total_of(memory_parts(*home->memory, *config, options))
                              : device_bytes(placement_sizes(*home->memory, *config, options),
                                             smallest_placement(*config, options), false);
  }
};

// Collects what would take less.
class ChoiceList {
 public:
  ChoiceList(const Counted& counted, const ModelOptions& options)
      : counted_(counted),
        options_(options),
        together_(options),
        needed_(counted.bytes(options)),
        savings_{{{}, options}} {}

  // Keeps a change of the options if it helps; true if it did.
  template <typename Change>
  bool add(const std::string& option, const Change& change) {
    ModelOptions other = options_;
    change(other);
    const std::uint64_t bytes = counted_.bytes(other);
    if (bytes >= needed_ - needed_ / 200) {
      return false;
    }
    choices_.push_back({option, bytes});
    change(together_);
    return true;
  }
  // The same of one that does not change the context: it is a step of `savings`, too, in which it takes the place of
  // another value of the same option.
  template <typename Change>
  void add_saving(const std::string& option, const Change& change) {
    if (add(option, change)) {
      std::vector<std::string> given = savings_.back().given;
      std::erase_if(given, [&](const std::string& before) { return name_of_option(before) == name_of_option(option); });
      given.push_back(option);
      savings_.push_back({std::move(given), together_});
    }
  }
  [[nodiscard]] std::uint64_t bytes_with(const WeightRecipe& weights) const {
    ModelOptions other = options_;
    other.weights = weights;
    return counted_.bytes(other);
  }
  // What was asked for, then one saving more in each.
  [[nodiscard]] const std::vector<Savings>& savings() const noexcept { return savings_; }
  // Those kept, and all of them together.
  [[nodiscard]] std::vector<OtherChoice> finish() {
    if (choices_.size() > 1) {
      choices_.push_back({"all of these", counted_.bytes(together_)});
    }
    return choices_;
  }

 private:
  Counted counted_;
  ModelOptions options_;
  ModelOptions together_;
  std::uint64_t needed_;
  std::vector<OtherChoice> choices_;
  std::vector<Savings> savings_;
};

void collect(ChoiceList& list, const ModelConfig& config, const ModelOptions& options) {
  if (options.placement.gpu_layers) {
    list.add_saving("--gpu-layers auto", [](ModelOptions& other) { other.placement.gpu_layers.reset(); });
  }
  if (options.placement.offload == Offload::stream) {
    list.add_saving("--offload auto", [](ModelOptions& other) { other.placement.offload = Offload::automatic; });
  }
  if (options.placement.vision == VisionPlace::device) {
    list.add_saving("--vision cpu", [](ModelOptions& other) { other.placement.vision = VisionPlace::processor; });
  }
  list.add_saving("--weights float16", [](ModelOptions& other) { other.weights = ElementType::float16; });
  // Rows of tiny models, filled up, take more in it.
  const WeightRecipe fewest = WeightRecipe::named("q4_k");
  if (list.bytes_with(fewest) < list.bytes_with(ElementType::float16)) {
    list.add_saving("--weights q4_k", [&](ModelOptions& other) { other.weights = fewest; });
  }
  if (options.cache == ElementType::float32) {
    list.add_saving("--kv-cache float16", [](ModelOptions& other) { other.cache = ElementType::float16; });
  }
  const std::int64_t chunk = std::min(options.chunk, kSmallChunk);
  list.add_saving(fmt::format("--chunk {}", chunk), [&](ModelOptions& other) { other.chunk = chunk; });
  list.add_saving("--kv-cache int8", [](ModelOptions& other) { other.cache = ElementType::int8; });
  const ModelRequest& request = options.request;
  if (request.images > 0) {
    const std::int64_t merge = vision_of(config).merge;
    const std::int64_t merged = merge * merge;
    const std::int64_t tokens = std::max<std::int64_t>(1, request.patches / merged / request.images / 4);
    list.add_saving(fmt::format("--max-image-tokens {}", tokens), [&](ModelOptions& other) {
      other.request.patches = std::min(request.patches, tokens * merged * request.images);
    });
  }
  const std::int64_t context = std::min(options.context, std::max(kSmallContext, options.request.tokens));
  (void)list.add(fmt::format("--context {}", context), [&](ModelOptions& other) { other.context = context; });
}

// Bytes that a conversation needs which fills its context.
std::uint64_t bytes_of_full(const Counted& counted, ModelOptions options, std::int64_t context) {
  options.context = options.request.tokens = context;
  options.chunk = std::min(options.chunk, context);
  return counted.bytes(options);
}

// The longest context that can be filled with so many bytes, a multiple of the cache's steps if it is not all that was
// asked for; 0 if the first request alone is too long.
std::int64_t longest_context(const Counted& counted, const ModelOptions& options, std::uint64_t free) {
  const auto fits = [&](std::int64_t context) { return bytes_of_full(counted, options, context) <= free; };
  if (fits(options.context)) {
    return options.context;
  }
  std::int64_t fitting = 0;
  std::int64_t too_long = options.context / KvCache::kStep;
  while (too_long - fitting > 1) {
    const std::int64_t middle = (fitting + too_long) / 2;
    (fits(middle * KvCache::kStep) ? fitting : too_long) = middle;
  }
  const std::int64_t longest = fitting * KvCache::kStep;
  return longest >= options.request.tokens ? longest : 0;
}

// What would fit, with as few savings as it takes and with all of them.
std::string fitting_lines(const Counted& counted, const std::vector<Savings>& savings, std::uint64_t free) {
  std::string lines;
  for (const Savings& each : savings) {
    const std::int64_t context = longest_context(counted, each.options, free);
    if (context > 0 && (lines.empty() || &each == &savings.back())) {
      lines += fmt::format("\n{:>12.1f} MiB  {}--context {}", mebibytes(bytes_of_full(counted, each.options, context)),
                           each.text(), context);
    }
  }
  if (lines.empty()) {
    const Savings& all = savings.back();
    return fmt::format("\nnothing fits: the first request needs {:.1f} MiB at least",
                       mebibytes(bytes_of_full(counted, all.options, all.options.request.tokens)));
  }
  return "\nwhat fits, with the context filled:" + lines;
}

// Throws what says why a model does not fit, and what would.
[[noreturn]] void refuse(const ModelHome& home, const ModelConfig& config, const ModelOptions& options,
                         const std::vector<MemoryPart>& parts) {
  Device& device = *home.device;
  const std::uint64_t needed = total_of(parts);
  const std::uint64_t free = home.memory->state().free_bytes;
  const std::uint64_t free_of_device = device.memory().state().free_bytes;
  std::string message =
      fmt::format("the model needs {:.1f} MiB{}, and {} has {:.1f} MiB free", mebibytes(needed),
                  home.on_processor ? "" : " of device memory, with as much on the processor as the options allow",
                  home.on_processor ? "the processor" : device.info().id, mebibytes(free_of_device));
  message += free < free_of_device ? fmt::format(", of which --memory-limit allows {:.1f} MiB:", mebibytes(free)) : ":";
  for (const MemoryPart& part : parts) {
    message += fmt::format("\n{:>12.1f} MiB  {}", mebibytes(part.bytes), part.name);
  }
  const Counted counted{&home, &config};
  ChoiceList list(counted, options);
  collect(list, config, options);
  const std::vector<OtherChoice> choices = list.finish();
  const bool is_gpu = device.info().kind == DeviceKind::cuda;
  message += choices.empty() && !is_gpu ? "\nno option needs less: use a smaller model, or free memory"
                                        : "\noptions that need less:";
  for (const OtherChoice& choice : choices) {
    message += fmt::format("\n{:>12.1f} MiB  {}{}", mebibytes(choice.bytes), choice.option,
                           choice.bytes > free ? " (still too much)" : "");
  }
  if (is_gpu) {
    message += fmt::format("\n{:>12.1f} MiB  --device cpu, which uses the machine's memory", 0.0);
  }
  message += fitting_lines(counted, list.savings(), free);
  throw OutOfMemoryError(message, needed, free);
}

// Of the choices; throws OutOfMemoryError if none does.
void keep_what_fits_host(ModelPlan& plan, const ModelOptions& options) {
  if (plan.choices.front().placement.all_on_device()) {
    return;
  }
  const std::uint64_t free = open_device("emulator")->memory().state().free_bytes;
  const PlacementChoice first = plan.choices.front();
  std::erase_if(plan.choices, [&](const PlacementChoice& choice) {
    return host_bytes(plan.sizes, choice.placement, choice.filled_device) > free;
  });
  if (plan.choices.empty()) {
    const std::uint64_t needed = host_bytes(plan.sizes, first.placement, first.filled_device);
    throw OutOfMemoryError(
        fmt::format("what does not fit the device needs {:.1f} MiB of the host's memory, which has {:.1f} MiB free; "
                    "weights in {} could be smaller (--weights q4_k), or the context (--context), or the model",
                    mebibytes(needed), mebibytes(free), options.weights.name()),
        needed, free);
  }
}

}  // namespace

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

ModelPlan plan_model(const ModelHome& home, const ModelConfig& config, const ModelOptions& options, Measure measure) {
  DeviceMemory& memory = *home.memory;
  ModelPlan plan;
  plan.on_processor = home.on_processor;
  plan.sizes = placement_sizes(memory, config, options);
  plan.device_free = memory.state().free_bytes;
  plan.placement = Placement::on_device(plan.sizes.layers.size());
  if (home.on_processor) {
    plan.device = memory_parts(memory, config, options);
    plan.device_bytes = total_of(plan.device);
    if (plan.device_bytes > plan.device_free) {
      refuse(home, config, options, plan.device);
    }
    return plan;
  }
  plan.choices = place_model(plan.sizes, options.placement, {}, plan.device_free);
  if (!plan.choices.empty() && (measure == Measure::always || !plan.choices.front().placement.all_on_device())) {
    plan.rates = measure_rates(*home.device, memory, layer_type(config, options.weights));
    plan.choices = place_model(plan.sizes, options.placement, *plan.rates, plan.device_free);
  }
  if (plan.choices.empty()) {
    const Placement smallest = smallest_placement(config, options);
    refuse(home, config, options, device_parts(config, options, plan.sizes, smallest, false));
  }
  keep_what_fits_host(plan, options);
  plan.placement = plan.choices.front().placement;
  plan.filled_device = plan.choices.front().filled_device;
  plan.device = device_parts(config, options, plan.sizes, plan.placement, plan.filled_device);
  plan.device_bytes = total_of(plan.device);
  plan.host = host_parts(config, options, plan.sizes, plan.placement, plan.filled_device);
  plan.host_bytes = total_of(plan.host);
  return plan;
}

}  // namespace pascaline
