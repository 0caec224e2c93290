#include "runtime/model/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "runtime/model/device_weights.hpp"
#include "runtime/model/kv_cache.hpp"
#include "runtime/model/requirements.hpp"
#include "runtime/model/sampler.hpp"
#include "runtime/model/text_decoder.hpp"
#include "runtime/model/vision_tower.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kSmallChunk = 64;
constexpr std::int64_t kSmallContext = 1024;

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::uint64_t total_of(const std::vector<MemoryPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const MemoryPart& part) { return sum + part.bytes; });
}

// An option that could be given instead.
struct OtherChoice {
  std::string option;
  std::uint64_t bytes = 0;
};

// Collects what would take less.
class ChoiceList {
 public:
  ChoiceList(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options)
      : memory_(&memory), config_(&config), options_(options), together_(options), needed_(bytes_of(options)) {}

  // Keeps a change of the options if it helps.
  template <typename Change>
  void add(const std::string& option, const Change& change) {
    ModelOptions other = options_;
    change(other);
    const std::uint64_t bytes = bytes_of(other);
    if (bytes < needed_ - needed_ / 200) {
      choices_.push_back({option, bytes});
      change(together_);
    }
  }
  // Those kept, and all of them together.
  [[nodiscard]] std::vector<OtherChoice> finish() {
    if (choices_.size() > 1) {
      choices_.push_back({"all of these", bytes_of(together_)});
    }
    return choices_;
  }

 private:
  [[nodiscard]] std::uint64_t bytes_of(const ModelOptions& options) const {
    return total_of(memory_parts(*memory_, *config_, options));
  }

  DeviceMemory* memory_;
  const ModelConfig* config_;
  ModelOptions options_;
  ModelOptions together_;
  std::uint64_t needed_;
  std::vector<OtherChoice> choices_;
};

std::vector<OtherChoice> choices_of(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options) {
  ChoiceList list(memory, config, options);
  list.add("--weights float16", [](ModelOptions& other) { other.weights = ElementType::float16; });
  list.add("--kv-cache float16", [](ModelOptions& other) { other.cache = ElementType::float16; });
  const std::int64_t chunk = std::min(options.chunk, kSmallChunk);
  list.add(fmt::format("--chunk {}", chunk), [&](ModelOptions& other) { other.chunk = chunk; });
  const std::int64_t context = std::min(options.context, std::max(kSmallContext, options.request.tokens));
  list.add(fmt::format("--context {}", context), [&](ModelOptions& other) { other.context = context; });
  const ModelRequest& request = options.request;
  if (request.pictures > 0) {
    const std::int64_t merge = vision_of(config).merge;
    const std::int64_t merged = merge * merge;
    const std::int64_t tokens = std::max<std::int64_t>(1, request.patches / merged / request.pictures / 4);
    list.add(fmt::format("--max-image-tokens {}", tokens), [&](ModelOptions& other) {
      other.request.patches = std::min(request.patches, tokens * merged * request.pictures);
    });
  }
  return list.finish();
}

}  // namespace

std::vector<MemoryPart> memory_parts(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options) {
  const TextConfig& text = config.text;
  const ModelRequest& request = options.request;
  std::vector<MemoryPart> parts{
      {fmt::format("weights, matrices in {}", name_of(options.weights)), device_weight_bytes(config, options.weights)},
      {fmt::format("activations of {} tokens at a time", options.chunk),
       TextDecoder::activation_bytes(text, options.chunk)},
      {fmt::format("tables for a context of {} tokens", options.context),
       TextDecoder::table_bytes(text, options.context)},
      {"logits and the choice of tokens",
       static_cast<std::uint64_t>(text.vocab) * sizeof(float) + Sampler::bytes_for(text.vocab)},
      {fmt::format("cache for {} tokens in {}", request.tokens, name_of(options.cache)),
       KvCache::bytes_for(memory, text, options.cache, options.context, request.tokens)}};
  if (request.patches > 0) {
    parts.push_back({fmt::format("images of {} patches", request.patches),
                     VisionTower::bytes_for(vision_of(config), request.patches, request.longest_side)});
  }
  return parts;
}

void require_memory(Device& device, const ModelConfig& config, const ModelOptions& options) {
  const std::vector<MemoryPart> parts = memory_parts(device.memory(), config, options);
  const std::uint64_t needed = total_of(parts);
  const std::uint64_t free = device.memory().state().free_bytes;
  if (needed <= free) {
    return;
  }
  std::string message = fmt::format("the model needs {:.1f} MiB, and {} has {:.1f} MiB free:", mebibytes(needed),
                                    device.info().id, mebibytes(free));
  for (const MemoryPart& part : parts) {
    message += fmt::format("\n{:>12.1f} MiB  {}", mebibytes(part.bytes), part.name);
  }
  const std::vector<OtherChoice> choices = choices_of(device.memory(), config, options);
  const bool is_gpu = device.info().kind == DeviceKind::cuda;
  message += choices.empty() && !is_gpu ? "\nno option needs less: take a smaller model, or free memory"
                                        : "\nwhat needs less of it in all:";
  for (const OtherChoice& choice : choices) {
    message += fmt::format("\n{:>12.1f} MiB  {}{}", mebibytes(choice.bytes), choice.option,
                           choice.bytes > free ? " (still too much)" : "");
  }
  if (is_gpu) {
    message += fmt::format("\n{:>12.1f} MiB  --device cpu, which takes the machine's memory", 0.0);
  }
  throw OutOfMemoryError(message, needed, free);
}

}  // namespace pascaline
