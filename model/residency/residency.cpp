#include "model/residency/residency.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "runtime/memory/pool.hpp"

namespace pascaline {
namespace {

// Rows of activations of a pass, and how long a part of one residency takes for them.
class PassTimer {
 public:
  PassTimer(const ResidencyRates& rates, std::int64_t rows) : rates_(&rates), rows_(static_cast<double>(rows)) {}

  [[nodiscard]] double of(const PartSize& part, Residency where) const {
    const bool on_processor = where == Residency::processor;
    const double reading =
        seconds(static_cast<double>(part.bytes), on_processor ? rates_->processor_bytes : rates_->device_bytes);
    const double computing = rows_ == 1 ? 0
                                        : seconds(2 * static_cast<double>(part.parameters) * rows_,
                                                  on_processor ? rates_->processor_flops : rates_->device_flops);
    return std::max(reading, computing);
  }

 private:
  [[nodiscard]] static double seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

  const ResidencyRates* rates_;
  double rows_;
};

// Of parts one after the other, with the copies beside them unless all that is streamed stays in its slots.
double pass_seconds(const std::vector<PartSize>& parts, const std::vector<Residency>& residencies, bool copies,
                    const ResidencyRates& rates, std::int64_t rows) {
  const PassTimer timer(rates, rows);
  double working = 0;
  double copied = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    working += timer.of(parts[i], residencies[i]);
    copied += copies && residencies[i] == Residency::streamed ? static_cast<double>(parts[i].bytes) : 0;
  }
  return std::max(working, rates.copy > 0 ? copied / rates.copy : 0);
}

double layer_seconds(const ResidencySizes& sizes, const ModelResidency& residency, const ResidencyRates& rates,
                     std::int64_t rows) {
  const bool copies = residency.count(Residency::streamed) > kStreamSlots;
  return pass_seconds(sizes.layers, residency.layers, copies, rates, rows);
}

double image_seconds(const ResidencySizes& sizes, const ModelResidency& residency, const ResidencyRates& rates) {
  const std::vector<Residency> residencies = residency.vision == Residency::streamed
                                                 ? residency.tower
                                                 : std::vector<Residency>(sizes.tower.size(), residency.vision);
  const bool copies = residency.streamed_of_tower() + residency.count(Residency::streamed) > kStreamSlots;
  return pass_seconds(sizes.tower, residencies, copies, rates, sizes.expected_patches);
}

PartSize head_of(const ResidencySizes& sizes) {
  return {sizes.head.bytes + (sizes.tied ? sizes.embedding.bytes : 0),
          sizes.head.parameters + (sizes.tied ? sizes.embedding.parameters : 0)};
}

// Which parts are not on the device: the last, or every so many.
void move_parts(std::vector<Residency>& residencies, std::size_t kept, Residency where) {
  const std::size_t count = residencies.size();
  const std::size_t moved = count - std::min(kept, count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i >= count - moved;
    const bool spread = (i + 1) * moved / count > i * moved / count;
    residencies[i] = (where == Residency::streamed ? spread : last) ? where : Residency::device;
  }
}

std::uint64_t cache_bytes(const ResidencySizes& sizes, std::size_t layers, bool filled_device) {
  return static_cast<std::uint64_t>(layers) * (filled_device ? sizes.full_cache : sizes.layer_cache);
}

std::vector<Residency> residencies_of_vision(const ResidencySizes& sizes, VisionResidency wanted) {
  if (!sizes.has_vision() || wanted == VisionResidency::device) {
    return {Residency::device};
  }
  if (wanted == VisionResidency::automatic) {
    return {Residency::device, Residency::streamed, Residency::processor};
  }
  return {wanted == VisionResidency::stream ? Residency::streamed : Residency::processor};
}

std::vector<Residency> residencies_of_layers(Offload wanted) {
  if (wanted == Offload::automatic) {
    return {Residency::processor, Residency::streamed};
  }
  return {wanted == Offload::stream ? Residency::streamed : Residency::processor};
}

// The most layers on the device with which the rest of the residency fits; nothing if not even none do.
std::optional<ResidencyChoice> fill_device(const ResidencySizes& sizes, const ResidencyOptions& options,
                                           ModelResidency residency, Residency moved_to, std::uint64_t free) {
  const std::size_t all = sizes.layers.size();
  const auto asked = static_cast<std::size_t>(options.gpu_layers.value_or(0));
  for (std::size_t kept = options.gpu_layers ? std::min(asked, all) : all;; --kept) {
    move_parts(residency.layers, kept, moved_to);
    const bool filled_device = !options.gpu_layers && !residency.all_on_device();
    if (device_bytes(sizes, residency, filled_device) <= free) {
      return ResidencyChoice{residency, {}, filled_device};
    }
    if (kept == 0 || options.gpu_layers) {
      return std::nullopt;
    }
  }
}

// What is left free keeps as many parts of a streamed tower as fit on the device, but for one at least.
void keep_tower_parts(const ResidencySizes& sizes, ResidencyChoice& choice, std::uint64_t free) {
  ModelResidency residency = choice.residency;
  for (std::size_t kept = sizes.tower.size() - 1; kept > 0; --kept) {
    move_parts(residency.tower, kept, Residency::streamed);
    if (device_bytes(sizes, residency, choice.filled_device) <= free) {
      choice.residency = std::move(residency);
      return;
    }
  }
}

// Whether one residency has every part where the other has it or on the device: it is not slower then.
bool is_no_worse(const ModelResidency& one, const ModelResidency& other) {
  const auto no_worse = [](Residency where, Residency of_other) {
    return where == Residency::device || where == of_other;
  };
  return no_worse(one.embedding, other.embedding) && no_worse(one.head, other.head) &&
         no_worse(one.vision, other.vision) && one.streamed_of_tower() <= other.streamed_of_tower() &&
         one.count(Residency::streamed) <= other.count(Residency::streamed) &&
         one.count(Residency::processor) <= other.count(Residency::processor);
}

// Seconds of an answer by which choices are compared.
double doubted_answer(const ResidencyChoice& choice) {
  const ModelResidency& residency = choice.residency;
  const bool computes_there = residency.count(Residency::processor) > 0 ||
                              (residency.vision == Residency::processor && choice.times.images > 0);
  return choice.times.answer() * (computes_there ? kProcessorDoubt : 1);
}

// An embedding of its own stays with a decoder that is all on the device, if it fits: then decoding steps are recorded.
void keep_embedding(const ResidencySizes& sizes, ResidencyChoice& choice, std::uint64_t free) {
  ModelResidency residency = choice.residency;
  residency.embedding = Residency::device;
  if (residency.all_decodes_on_device() && device_bytes(sizes, residency, choice.filled_device) <= free) {
    choice.residency = std::move(residency);
  }
}

}  // namespace

std::string_view name_of(Residency where) noexcept {
  static constexpr std::array<std::string_view, 3> kNames{"device", "processor", "streamed"};
  return kNames[static_cast<std::size_t>(where)];
}

std::size_t ModelResidency::count(Residency where) const noexcept {
  return static_cast<std::size_t>(std::count(layers.begin(), layers.end(), where));
}

std::size_t ModelResidency::streamed_of_tower() const noexcept {
  return static_cast<std::size_t>(std::count(tower.begin(), tower.end(), Residency::streamed));
}

bool ModelResidency::all_decodes_on_device() const noexcept {
  return embedding == Residency::device && head == Residency::device && count(Residency::device) == layers.size();
}

bool ModelResidency::all_on_device() const noexcept { return all_decodes_on_device() && vision == Residency::device; }

bool ModelResidency::device_decodes() const noexcept {
  return embedding == Residency::device || head == Residency::device || count(Residency::processor) < layers.size();
}

bool ModelResidency::processor_decodes() const noexcept {
  return embedding == Residency::processor || head == Residency::processor || count(Residency::processor) > 0;
}

std::uint64_t slot_bytes(const ResidencySizes& sizes, const ModelResidency& residency) {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    largest = std::max(largest, residency.layers[i] == Residency::streamed ? sizes.layers[i].bytes : 0);
  }
  for (std::size_t i = 0; i < residency.tower.size(); ++i) {
    largest = std::max(largest, residency.tower[i] == Residency::streamed ? sizes.tower[i].bytes : 0);
  }
  return largest * std::min(kStreamSlots, residency.count(Residency::streamed) + residency.streamed_of_tower());
}

std::uint64_t ResidencySizes::tower_bytes(const ModelResidency& residency, Residency where) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tower.size(); ++i) {
    sum += residency.residency_of_tower(i) == where ? tower[i].bytes : 0;
  }
  return sum;
}

std::uint64_t device_bytes(const ResidencySizes& sizes, const ModelResidency& residency, bool filled_device) {
  std::uint64_t sum = sizes.fixed + (filled_device ? sizes.reserve : 0) + slot_bytes(sizes, residency) +
                      cache_bytes(sizes, sizes.layers.size() - residency.count(Residency::processor), filled_device);
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    sum += residency.layers[i] == Residency::device ? sizes.layers[i].bytes : 0;
  }
  sum += residency.embedding == Residency::device ? sizes.embedding.bytes : 0;
  sum += residency.head == Residency::device ? sizes.head.bytes : 0;
  sum += residency.device_decodes() ? sizes.decoder : 0;
  if (sizes.has_vision()) {
    sum += sizes.tower_bytes(residency, Residency::device);
    sum += residency.vision == Residency::processor ? sizes.features : sizes.images;
  }
  // The last slab of a pool, and what is too small to be used in those before.
  return sum + 2 * MemoryPool::slab_bytes_for(sum);
}

std::uint64_t host_bytes(const ResidencySizes& sizes, const ModelResidency& residency, bool filled_device) {
  std::uint64_t sum = cache_bytes(sizes, residency.count(Residency::processor), filled_device);
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    sum += residency.layers[i] == Residency::device ? 0 : sizes.layers[i].bytes;
  }
  sum += residency.embedding == Residency::device ? 0 : sizes.embedding.bytes;
  sum += residency.head == Residency::device ? 0 : sizes.head.bytes;
  sum += residency.processor_decodes() ? sizes.decoder : 0;
  sum += sizes.tower_bytes(residency, Residency::streamed) + sizes.tower_bytes(residency, Residency::processor);
  return sum + (sizes.has_vision() && residency.vision == Residency::processor ? sizes.images : 0);
}

double PassTimes::answer() const noexcept { return images + prompt + static_cast<double>(kPlannedAnswer) * token; }

PassTimes expected_times(const ResidencySizes& sizes, const ModelResidency& residency, const ResidencyRates& rates) {
  const double head = PassTimer(rates, 1).of(head_of(sizes), residency.head);
  PassTimes times;
  times.token = layer_seconds(sizes, residency, rates, 1) + head;
  const std::int64_t chunk = std::clamp<std::int64_t>(sizes.chunk, 1, kPlannedPrompt);
  const std::int64_t passes = (kPlannedPrompt + chunk - 1) / chunk;
  times.prompt = static_cast<double>(passes) * layer_seconds(sizes, residency, rates, chunk) + head;
  times.images = sizes.expected_patches > 0 ? image_seconds(sizes, residency, rates) : 0;
  return times;
}

std::vector<ResidencyChoice> residency_choices(const ResidencySizes& sizes, const ResidencyOptions& options,
                                               const ResidencyRates& rates, std::uint64_t free) {
  const std::size_t layers = sizes.layers.size();
  const bool may_keep_all = !options.gpu_layers || *options.gpu_layers >= static_cast<std::int64_t>(layers);
  const ModelResidency whole = ModelResidency::on_device(layers);
  const bool tower_may_stay =
      !sizes.has_vision() || options.vision == VisionResidency::automatic || options.vision == VisionResidency::device;
  if (may_keep_all && tower_may_stay && device_bytes(sizes, whole, false) <= free) {
    return {{whole, expected_times(sizes, whole, rates), false}};
  }
  std::vector<ResidencyChoice> choices;
  for (const Residency vision : residencies_of_vision(sizes, options.vision)) {
    for (const Residency head : {Residency::device, Residency::processor}) {
      for (const Residency moved_to : residencies_of_layers(options.offload)) {
        ModelResidency residency = whole;
        residency.vision = vision;
        residency.tower.assign(vision == Residency::streamed ? sizes.tower.size() : 0, Residency::streamed);
        residency.head = head;
        // The processor gathers a few rows as fast, and leaves room for layers.
        residency.embedding = sizes.tied ? head : Residency::processor;
        if (auto choice = fill_device(sizes, options, residency, moved_to, free)) {
          keep_embedding(sizes, *choice, free);
          if (vision == Residency::streamed && options.vision == VisionResidency::automatic) {
            keep_tower_parts(sizes, *choice, free);
          }
          choice->times = expected_times(sizes, choice->residency, rates);
          const bool is_useful = std::none_of(choices.begin(), choices.end(), [&](const ResidencyChoice& other) {
            return is_no_worse(other.residency, choice->residency);
          });
          if (is_useful) {
            choices.push_back(*std::move(choice));
          }
        }
      }
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const ResidencyChoice& a, const ResidencyChoice& b) {
    return doubted_answer(a) < doubted_answer(b);
  });
  return choices;
}

}  // namespace pascaline
