#include "model/residency/placement.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "runtime/memory/pool.hpp"

namespace pascaline {
namespace {

// Rows of activations of a pass, and how long what lies at a place takes for them.
class PassTimer {
 public:
  PassTimer(const PlaceRates& rates, std::int64_t rows) : rates_(&rates), rows_(static_cast<double>(rows)) {}

  [[nodiscard]] double of(const PartSize& part, Place place) const {
    const bool on_processor = place == Place::processor;
    const double reading =
        seconds(static_cast<double>(part.bytes), on_processor ? rates_->processor_bytes : rates_->device_bytes);
    const double computing = rows_ == 1 ? 0
                                        : seconds(2 * static_cast<double>(part.parameters) * rows_,
                                                  on_processor ? rates_->processor_flops : rates_->device_flops);
    return std::max(reading, computing);
  }

 private:
  [[nodiscard]] static double seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

  const PlaceRates* rates_;
  double rows_;
};

// Of parts one after the other, with the copies beside them unless all that is streamed stays in its slots.
double pass_seconds(const std::vector<PartSize>& parts, const std::vector<Place>& places, bool copies,
                    const PlaceRates& rates, std::int64_t rows) {
  const PassTimer timer(rates, rows);
  double working = 0;
  double copied = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    working += timer.of(parts[i], places[i]);
    copied += copies && places[i] == Place::streamed ? static_cast<double>(parts[i].bytes) : 0;
  }
  return std::max(working, rates.copy > 0 ? copied / rates.copy : 0);
}

double layer_seconds(const PlacementSizes& sizes, const Placement& placement, const PlaceRates& rates,
                     std::int64_t rows) {
  const bool copies = placement.count(Place::streamed) > kStreamSlots;
  return pass_seconds(sizes.layers, placement.layers, copies, rates, rows);
}

double image_seconds(const PlacementSizes& sizes, const Placement& placement, const PlaceRates& rates) {
  const std::vector<Place> places =
      placement.vision == Place::streamed ? placement.tower : std::vector<Place>(sizes.tower.size(), placement.vision);
  const bool copies = placement.streamed_of_tower() + placement.count(Place::streamed) > kStreamSlots;
  return pass_seconds(sizes.tower, places, copies, rates, sizes.expected_patches);
}

PartSize head_of(const PlacementSizes& sizes) {
  return {sizes.head.bytes + (sizes.tied ? sizes.embedding.bytes : 0),
          sizes.head.parameters + (sizes.tied ? sizes.embedding.parameters : 0)};
}

// Which parts are not on the device: the last, or every so many.
void move_parts(std::vector<Place>& places, std::size_t kept, Place place) {
  const std::size_t count = places.size();
  const std::size_t moved = count - std::min(kept, count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i >= count - moved;
    const bool spread = (i + 1) * moved / count > i * moved / count;
    places[i] = (place == Place::streamed ? spread : last) ? place : Place::device;
  }
}

std::uint64_t cache_bytes(const PlacementSizes& sizes, std::size_t layers, bool filled_device) {
  return static_cast<std::uint64_t>(layers) * (filled_device ? sizes.full_cache : sizes.layer_cache);
}

std::vector<Place> places_of_vision(const PlacementSizes& sizes, VisionPlace wanted) {
  if (!sizes.has_vision() || wanted == VisionPlace::device) {
    return {Place::device};
  }
  if (wanted == VisionPlace::automatic) {
    return {Place::device, Place::streamed, Place::processor};
  }
  return {wanted == VisionPlace::stream ? Place::streamed : Place::processor};
}

std::vector<Place> places_of_layers(Offload wanted) {
  if (wanted == Offload::automatic) {
    return {Place::processor, Place::streamed};
  }
  return {wanted == Offload::stream ? Place::streamed : Place::processor};
}

// The most layers on the device with which the rest of the placement fits; nothing if not even none do.
std::optional<PlacementChoice> fill_device(const PlacementSizes& sizes, const PlacementOptions& options,
                                           Placement placement, Place moved_to, std::uint64_t free) {
  const std::size_t all = sizes.layers.size();
  const auto asked = static_cast<std::size_t>(options.gpu_layers.value_or(0));
  for (std::size_t kept = options.gpu_layers ? std::min(asked, all) : all;; --kept) {
    move_parts(placement.layers, kept, moved_to);
    const bool filled_device = !options.gpu_layers && !placement.all_on_device();
    if (device_bytes(sizes, placement, filled_device) <= free) {
      return PlacementChoice{placement, {}, filled_device};
    }
    if (kept == 0 || options.gpu_layers) {
      return std::nullopt;
    }
  }
}

// What is left free keeps as many parts of a streamed tower as fit on the device, but for one at least.
void keep_tower_parts(const PlacementSizes& sizes, PlacementChoice& choice, std::uint64_t free) {
  Placement placement = choice.placement;
  for (std::size_t kept = sizes.tower.size() - 1; kept > 0; --kept) {
    move_parts(placement.tower, kept, Place::streamed);
    if (device_bytes(sizes, placement, choice.filled_device) <= free) {
      choice.placement = std::move(placement);
      return;
    }
  }
}

// Whether one placement has every part where the other has it or on the device: it is not slower then.
bool is_no_worse(const Placement& one, const Placement& other) {
  const auto no_worse = [](Place place, Place of_other) { return place == Place::device || place == of_other; };
  return no_worse(one.embedding, other.embedding) && no_worse(one.head, other.head) &&
         no_worse(one.vision, other.vision) && one.streamed_of_tower() <= other.streamed_of_tower() &&
         one.count(Place::streamed) <= other.count(Place::streamed) &&
         one.count(Place::processor) <= other.count(Place::processor);
}

// Seconds of an answer by which choices are compared.
double doubted_answer(const PlacementChoice& choice) {
  const Placement& placement = choice.placement;
  const bool computes_there =
      placement.count(Place::processor) > 0 || (placement.vision == Place::processor && choice.times.images > 0);
  return choice.times.answer() * (computes_there ? kProcessorDoubt : 1);
}

// An embedding of its own stays with a decoder that is all on the device, if it fits: then decoding steps are recorded.
void keep_embedding(const PlacementSizes& sizes, PlacementChoice& choice, std::uint64_t free) {
  Placement placement = choice.placement;
  placement.embedding = Place::device;
  if (placement.all_decodes_on_device() && device_bytes(sizes, placement, choice.filled_device) <= free) {
    choice.placement = std::move(placement);
  }
}

}  // namespace

std::string_view name_of(Place place) noexcept {
  static constexpr std::array<std::string_view, 3> kNames{"device", "processor", "streamed"};
  return kNames[static_cast<std::size_t>(place)];
}

std::size_t Placement::count(Place place) const noexcept {
  return static_cast<std::size_t>(std::count(layers.begin(), layers.end(), place));
}

std::size_t Placement::streamed_of_tower() const noexcept {
  return static_cast<std::size_t>(std::count(tower.begin(), tower.end(), Place::streamed));
}

bool Placement::all_decodes_on_device() const noexcept {
  return embedding == Place::device && head == Place::device && count(Place::device) == layers.size();
}

bool Placement::all_on_device() const noexcept { return all_decodes_on_device() && vision == Place::device; }

bool Placement::device_decodes() const noexcept {
  return embedding == Place::device || head == Place::device || count(Place::processor) < layers.size();
}

bool Placement::processor_decodes() const noexcept {
  return embedding == Place::processor || head == Place::processor || count(Place::processor) > 0;
}

std::uint64_t slot_bytes(const PlacementSizes& sizes, const Placement& placement) {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    largest = std::max(largest, placement.layers[i] == Place::streamed ? sizes.layers[i].bytes : 0);
  }
  for (std::size_t i = 0; i < placement.tower.size(); ++i) {
    largest = std::max(largest, placement.tower[i] == Place::streamed ? sizes.tower[i].bytes : 0);
  }
  return largest * std::min(kStreamSlots, placement.count(Place::streamed) + placement.streamed_of_tower());
}

std::uint64_t PlacementSizes::tower_bytes(const Placement& placement, Place place) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tower.size(); ++i) {
    sum += placement.place_of_tower(i) == place ? tower[i].bytes : 0;
  }
  return sum;
}

std::uint64_t device_bytes(const PlacementSizes& sizes, const Placement& placement, bool filled_device) {
  std::uint64_t sum = sizes.fixed + (filled_device ? sizes.reserve : 0) + slot_bytes(sizes, placement) +
                      cache_bytes(sizes, sizes.layers.size() - placement.count(Place::processor), filled_device);
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    sum += placement.layers[i] == Place::device ? sizes.layers[i].bytes : 0;
  }
  sum += placement.embedding == Place::device ? sizes.embedding.bytes : 0;
  sum += placement.head == Place::device ? sizes.head.bytes : 0;
  sum += placement.device_decodes() ? sizes.decoder : 0;
  if (sizes.has_vision()) {
    sum += sizes.tower_bytes(placement, Place::device);
    sum += placement.vision == Place::processor ? sizes.features : sizes.images;
  }
  // The last slab of a pool, and what is too small to be used in those before.
  return sum + 2 * MemoryPool::slab_bytes_for(sum);
}

std::uint64_t host_bytes(const PlacementSizes& sizes, const Placement& placement, bool filled_device) {
  std::uint64_t sum = cache_bytes(sizes, placement.count(Place::processor), filled_device);
  for (std::size_t i = 0; i < sizes.layers.size(); ++i) {
    sum += placement.layers[i] == Place::device ? 0 : sizes.layers[i].bytes;
  }
  sum += placement.embedding == Place::device ? 0 : sizes.embedding.bytes;
  sum += placement.head == Place::device ? 0 : sizes.head.bytes;
  sum += placement.processor_decodes() ? sizes.decoder : 0;
  sum += sizes.tower_bytes(placement, Place::streamed) + sizes.tower_bytes(placement, Place::processor);
  return sum + (sizes.has_vision() && placement.vision == Place::processor ? sizes.images : 0);
}

double PassTimes::answer() const noexcept { return images + prompt + static_cast<double>(kPlannedAnswer) * token; }

PassTimes expected_times(const PlacementSizes& sizes, const Placement& placement, const PlaceRates& rates) {
  const double head = PassTimer(rates, 1).of(head_of(sizes), placement.head);
  PassTimes times;
  times.token = layer_seconds(sizes, placement, rates, 1) + head;
  const std::int64_t chunk = std::clamp<std::int64_t>(sizes.chunk, 1, kPlannedPrompt);
  const std::int64_t passes = (kPlannedPrompt + chunk - 1) / chunk;
  times.prompt = static_cast<double>(passes) * layer_seconds(sizes, placement, rates, chunk) + head;
  times.images = sizes.expected_patches > 0 ? image_seconds(sizes, placement, rates) : 0;
  return times;
}

std::vector<PlacementChoice> place_model(const PlacementSizes& sizes, const PlacementOptions& options,
                                         const PlaceRates& rates, std::uint64_t free) {
  const std::size_t layers = sizes.layers.size();
  const bool may_keep_all = !options.gpu_layers || *options.gpu_layers >= static_cast<std::int64_t>(layers);
  const Placement whole = Placement::on_device(layers);
  const bool tower_may_stay =
      !sizes.has_vision() || options.vision == VisionPlace::automatic || options.vision == VisionPlace::device;
  if (may_keep_all && tower_may_stay && device_bytes(sizes, whole, false) <= free) {
    return {{whole, expected_times(sizes, whole, rates), false}};
  }
  std::vector<PlacementChoice> choices;
  for (const Place vision : places_of_vision(sizes, options.vision)) {
    for (const Place head : {Place::device, Place::processor}) {
      for (const Place moved_to : places_of_layers(options.offload)) {
        Placement placement = whole;
        placement.vision = vision;
        placement.tower.assign(vision == Place::streamed ? sizes.tower.size() : 0, Place::streamed);
        placement.head = head;
        // The processor gathers a few rows as fast, and leaves room for layers.
        placement.embedding = sizes.tied ? head : Place::processor;
        if (auto choice = fill_device(sizes, options, placement, moved_to, free)) {
          keep_embedding(sizes, *choice, free);
          if (vision == Place::streamed && options.vision == VisionPlace::automatic) {
            keep_tower_parts(sizes, *choice, free);
          }
          choice->times = expected_times(sizes, choice->placement, rates);
          const bool is_useful = std::none_of(choices.begin(), choices.end(), [&](const PlacementChoice& other) {
            return is_no_worse(other.placement, choice->placement);
          });
          if (is_useful) {
            choices.push_back(*std::move(choice));
          }
        }
      }
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const PlacementChoice& a, const PlacementChoice& b) {
    return doubted_answer(a) < doubted_answer(b);
  });
  return choices;
}

}  // namespace pascaline
