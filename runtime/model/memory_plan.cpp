#include "runtime/model/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "runtime/memory/pool.hpp"
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

// Collects what would take less.
class ChoiceList {
 public:
  ChoiceList(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options)
      : memory_(&memory),
        config_(&config),
        options_(options),
        together_(options),
        needed_(bytes_of(options)),
        savings_{{{}, options}} {}

  // Keeps a change of the options if it helps; true if it did.
  template <typename Change>
  bool add(const std::string& option, const Change& change) {
    ModelOptions other = options_;
    change(other);
    const std::uint64_t bytes = bytes_of(other);
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
  // What was asked for, then one saving more in each.
  [[nodiscard]] const std::vector<Savings>& savings() const noexcept { return savings_; }
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
  std::vector<Savings> savings_;
};

void collect(ChoiceList& list, const ModelConfig& config, const ModelOptions& options) {
  list.add_saving("--weights float16", [](ModelOptions& other) { other.weights = ElementType::float16; });
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
std::uint64_t bytes_of_full(DeviceMemory& memory, const ModelConfig& config, ModelOptions options,
                            std::int64_t context) {
  options.context = options.request.tokens = context;
  options.chunk = std::min(options.chunk, context);
  return total_of(memory_parts(memory, config, options));
}

// The longest context that can be filled with so many bytes, a multiple of the cache's steps if it is not all that was
// asked for; 0 if the first request alone is too long.
std::int64_t longest_context(DeviceMemory& memory, const ModelConfig& config, const ModelOptions& options,
                             std::uint64_t free) {
  const auto fits = [&](std::int64_t context) { return bytes_of_full(memory, config, options, context) <= free; };
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
std::string fitting_lines(DeviceMemory& memory, const ModelConfig& config, const std::vector<Savings>& savings,
                          std::uint64_t free) {
  std::string lines;
  for (const Savings& each : savings) {
    const std::int64_t context = longest_context(memory, config, each.options, free);
    if (context > 0 && (lines.empty() || &each == &savings.back())) {
      lines += fmt::format("\n{:>12.1f} MiB  {}--context {}",
                           mebibytes(bytes_of_full(memory, config, each.options, context)), each.text(), context);
    }
  }
  if (lines.empty()) {
    const Savings& all = savings.back();
    return fmt::format("\nnothing fits: the first request needs {:.1f} MiB at least",
                       mebibytes(bytes_of_full(memory, config, all.options, all.options.request.tokens)));
  }
  return "\nwhat fits, with the context filled:" + lines;
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
      {"logits and the choice of tokens",
       static_cast<std::uint64_t>(text.vocab) * sizeof(float) + Sampler::bytes_for(text.vocab)},
      {fmt::format("cache for {} tokens in {}", request.tokens, name_of(options.cache)),
       KvCache::bytes_for(memory, text, options.cache, options.context, request.tokens)}};
  if (options.weights.has_formats()) {
    std::uint64_t bytes = LinearLayers::bytes_for(options.chunk, LinearLayers::widest(text));
    if (request.patches > 0) {
      bytes = std::max(bytes, LinearLayers::bytes_for(request.patches, LinearLayers::widest(vision_of(config))));
    }
    parts.push_back({"activations rounded to int8", bytes});
  }
  if (request.patches > 0) {
    parts.push_back({fmt::format("images of {} patches", request.patches),
                     VisionTower::bytes_for(vision_of(config), request.patches, request.longest_side)});
  }
  // The last slab of a pool, and what is too small to be used in those before.
  parts.push_back({"small tensors, rounded up", 2 * MemoryPool::slab_bytes_for(total_of(parts))});
  return parts;
}

void require_memory(DeviceMemory& memory, Device& device, const ModelConfig& config, const ModelOptions& options) {
  const std::vector<MemoryPart> parts = memory_parts(memory, config, options);
  const std::uint64_t needed = total_of(parts);
  const std::uint64_t free = memory.state().free_bytes;
  if (needed <= free) {
    return;
  }
  const std::uint64_t free_of_device = device.memory().state().free_bytes;
  std::string message = fmt::format("the model needs {:.1f} MiB, and {} has {:.1f} MiB free", mebibytes(needed),
                                    device.info().id, mebibytes(free_of_device));
  message += free < free_of_device ? fmt::format(", of which --memory-limit allows {:.1f} MiB:", mebibytes(free)) : ":";
  for (const MemoryPart& part : parts) {
    message += fmt::format("\n{:>12.1f} MiB  {}", mebibytes(part.bytes), part.name);
  }
  ChoiceList list(memory, config, options);
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
  message += fitting_lines(memory, config, list.savings(), free);
  throw OutOfMemoryError(message, needed, free);
}

}  // namespace pascaline
