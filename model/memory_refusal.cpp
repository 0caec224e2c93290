#include "model/memory_refusal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "model/decoder/kv_cache.hpp"
#include "model/requirements.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kSmallChunk = 64;
constexpr std::int64_t kSmallContext = 1024;

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

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
                              : device_bytes(residency_sizes(*home->memory, *config, options),
                                             smallest_residency(*config, options), false);
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
  if (options.residency.gpu_layers) {
    list.add_saving("--gpu-layers auto", [](ModelOptions& other) { other.residency.gpu_layers.reset(); });
  }
  if (options.residency.offload == Offload::stream) {
    list.add_saving("--offload auto", [](ModelOptions& other) { other.residency.offload = Offload::automatic; });
  }
  if (options.residency.vision == VisionResidency::device) {
    list.add_saving("--vision stream", [](ModelOptions& other) { other.residency.vision = VisionResidency::stream; });
  }
  if (options.residency.vision == VisionResidency::device || options.residency.vision == VisionResidency::stream) {
    list.add_saving("--vision cpu", [](ModelOptions& other) { other.residency.vision = VisionResidency::processor; });
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

}  // namespace

ModelResidency smallest_residency(const ModelConfig& config, const ModelOptions& options) {
  const ResidencyOptions& asked = options.residency;
  ModelResidency residency = ModelResidency::on_device(static_cast<std::size_t>(config.text.layers));
  residency.embedding = residency.head = Residency::processor;
  residency.vision = asked.vision == VisionResidency::device || !config.vision ? Residency::device
                     : asked.vision == VisionResidency::stream                 ? Residency::streamed
                                                                               : Residency::processor;
  if (residency.vision == Residency::streamed) {
    residency.tower.assign(VisionParts(*config.vision).count(), Residency::streamed);
  }
  const auto kept = static_cast<std::size_t>(std::min(asked.gpu_layers.value_or(0), config.text.layers));
  std::fill(residency.layers.begin() + static_cast<std::ptrdiff_t>(kept), residency.layers.end(),
            asked.offload == Offload::stream ? Residency::streamed : Residency::processor);
  return residency;
}

void refuse_model(const ModelHome& home, const ModelConfig& config, const ModelOptions& options,
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

}  // namespace pascaline
