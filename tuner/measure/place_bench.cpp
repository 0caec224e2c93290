#include "tuner/measure/place_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "model/decoder/positions.hpp"
#include "model/executor.hpp"
#include "model/fusion/place_list.hpp"
#include "model/fusion/place_space.hpp"
#include "model/linear_layers.hpp"
#include "runtime/device/device_failure.hpp"
#include "runtime/ops/block_choice.hpp"

namespace pascaline {
namespace {

constexpr double kRotaryBase = 10'000;

// Of products in float32, which differ in the order of sums; with values rounded to float16, or to int8, on the way.
double tolerance_of(const Problem& place) {
  double tolerance = 1e-4;
  for (const auto& [name, type] : place.types) {
    const bool is_cache = name == "CACHE";
    if (is_packed_format(type) || (is_cache && type == ElementType::int8)) {
      tolerance = std::max(tolerance, 3e-2);
    } else if (is_cache && type == ElementType::float16) {
      tolerance = std::max(tolerance, 2e-3);
    }
  }
  return tolerance;
}

TensorView norm_weight(PlaceTensors& tensors, std::int64_t width) {
  return tensors.read(ElementType::float32, {width}, 0.5, 1.5);
}

NormWeights norm_weights(PlaceTensors& tensors, std::int64_t width) {
  return {norm_weight(tensors, width), tensors.read(ElementType::float32, {width}, -0.5, 0.5)};
}

LinearWeights linear_weights(PlaceTensors& tensors, ElementType type, std::int64_t rows, std::int64_t columns) {
  return {tensors.weight(type, rows, columns), tensors.read(ElementType::float32, {rows}, -0.5, 0.5)};
}

std::vector<std::int32_t> counting_from(std::int64_t first, std::int64_t count, int times = 1) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), static_cast<std::int32_t>(first));
  std::vector<std::int32_t> all;
  for (int i = 0; i < times; ++i) {
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TensorView cache_of(PlaceTensors& tensors, const char* name, ElementType type, std::int64_t keys, std::int64_t heads,
                    std::int64_t head_dim) {
  const double most = type == ElementType::int8 ? 127 : 1;
  return tensors.changed(name, type, {keys, heads, head_dim}, -most, most);
}

bool has_dimension(const Problem& of, std::string_view name) {
  return std::ranges::any_of(of.dimensions, [&](const auto& dimension) { return dimension.first == name; });
}

std::int64_t rows_of_place(const Problem& of) { return has_dimension(of, "ROWS") ? of.dimension("ROWS") : 1; }

// Queries, keys and values: a part for each run of one type.
StackedMatrix projection_weight(PlaceTensors& tensors, const Problem& of) {
  const std::array types{of.type("QKV"), of.type("K"), of.type("V")};
  const std::array heads{of.dimension("HEADS"), of.dimension("KV_HEADS"), of.dimension("KV_HEADS")};
  StackedMatrix weight;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < types.size();) {
    std::int64_t rows = 0;
    const ElementType type = types[i];
    for (; i < types.size() && types[i] == type; ++i) {
      rows += heads[i] * of.dimension("HEAD_DIM");
    }
    weight.parts[parts++] = tensors.weight(type, rows, of.dimension("HIDDEN"));
  }
  return weight;
}

// The rows are the last ones of the cache: what a place meets when the context is full.
void make(PlaceTensors& tensors, const Problem& of, AttentionPlace& place) {
  const std::int64_t rows = rows_of_place(of);
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t kv_heads = of.dimension("KV_HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t keys = of.dimension("KEYS");
  const ElementType cache = of.type("CACHE");
  if (keys < rows) {
    throw Error(fmt::format("{}: there are fewer keys than rows", of.text()));
  }
  place.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  place.input_norm = norm_weight(tensors, hidden);
  place.qkv_weight = projection_weight(tensors, of);
  if (of.dimension("QK_NORM") == 1) {
    place.q_norm = norm_weight(tensors, head_dim);
    place.k_norm = norm_weight(tensors, head_dim);
  }
  const RopeTables tables = rope_tables(keys, head_dim / 2, kRotaryBase);
  place.cosine = tensors.floats(tables.cosine, {keys, head_dim / 2});
  place.sine = tensors.floats(tables.sine, {keys, head_dim / 2});
  place.positions = tensors.integers(counting_from(keys - rows, rows, 3), {3, rows});
  place.slots = tensors.integers(counting_from(keys - rows, rows), {rows});
  place.length = tensors.integers(counting_from(keys, 1), {1});
  place.k_cache = cache_of(tensors, "keys", cache, keys, kv_heads, head_dim);
  place.v_cache = cache_of(tensors, "values", cache, keys, kv_heads, head_dim);
  if (cache == ElementType::int8) {
    place.k_scales = tensors.changed("scales of keys", ElementType::float32, {keys, kv_heads}, 0.004, 0.012);
    place.v_scales = tensors.changed("scales of values", ElementType::float32, {keys, kv_heads}, 0.004, 0.012);
  }
  place.output = tensors.weight(of.type("OUTPUT"), hidden, heads * head_dim);
  place.input = tensors.scratch({rows, hidden});
  place.qkv = tensors.scratch({rows, heads + 2 * kv_heads, head_dim});
  place.q = tensors.scratch({rows, heads, head_dim});
  place.attended = tensors.scratch({rows, heads, head_dim});
  place.cached = keys - rows;
  place.section_h = of.dimension("SECTION_H");
  place.section_w = of.dimension("SECTION_W");
}

// Means of the blocks' keys that are multiples of one row: their order by score is then that of the multiples, or its
// reverse, whatever the queries' rounding.
TensorView means_of(PlaceTensors& tensors, std::int64_t blocks, std::int64_t heads, std::int64_t head_dim) {
  const std::int64_t row = heads * head_dim;
  std::vector<float> values(static_cast<std::size_t>(blocks * row));
  for (std::int64_t block = 0; block < blocks; ++block) {
    constexpr std::int64_t kStep = 7919;  // a prime, so that blocks that are chosen lie apart
    const double multiple = static_cast<double>(block * kStep % blocks + 1) / static_cast<double>(blocks);
    for (std::int64_t i = 0; i < row; ++i) {
      const double wave = std::sin(static_cast<double>(i) * 0.7 + 1);
      values[static_cast<std::size_t>(block * row + i)] = static_cast<float>(multiple * wave);
    }
  }
  return tensors.changed("means", values, {blocks, heads, head_dim});
}

void make(PlaceTensors& tensors, const Problem& of, SparseAttentionPlace& place) {
  make(tensors, of, static_cast<AttentionPlace&>(place));
  place.choice = {{of.dimension("BLOCK"), of.dimension("WINDOW"), of.dimension("SINKS"), of.dimension("STRIDE")},
                  static_cast<double>(of.dimension("PART")) / ops::ChooseBlocks::kAll};
  if (place.choice.is_dense() || (place.choice.mask.is_pattern() && place.choice.chooses_blocks())) {
    throw Error(fmt::format("{}: give either a WINDOW or a PART of the blocks", of.text()));
  }
  if (!place.choice.chooses_blocks()) {
    return;
  }
  const std::int64_t block = place.choice.mask.block;
  const auto blocks_in = [&](std::int64_t rows) { return (rows + block - 1) / block; };
  const std::int64_t kv_heads = of.dimension("KV_HEADS");
  const std::int64_t keys = blocks_in(place.keys());
  const std::int64_t rows = blocks_in(place.rows());
  place.means = means_of(tensors, keys, kv_heads, of.dimension("HEAD_DIM"));
  place.scores = tensors.scratch({kv_heads, rows, keys});
  place.lists =
      tensors.scratch({kv_heads, rows, ops::ChooseBlocks::width_for(place.keys(), block, place.choice.part())});
  place.lists.type = ElementType::int32;  // of the same size
}

void make(PlaceTensors& tensors, const Problem& of, MlpPlace& place) {
  const std::int64_t rows = rows_of_place(of);
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t intermediate = of.dimension("INTERMEDIATE");
  place.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  place.post_norm = norm_weight(tensors, hidden);
  place.gate_up = tensors.weight(of.type("GATE_UP"), 2 * intermediate, hidden);
  place.down = tensors.weight(of.type("DOWN"), hidden, intermediate);
  place.input = tensors.scratch({rows, hidden});
  place.gated = tensors.scratch({rows, intermediate});
}

void make(PlaceTensors& tensors, const Problem& of, HeadPlace& place) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t vocabulary = of.dimension("VOCABULARY");
  place.hidden = tensors.read(ElementType::float32, {rows, hidden}, -1, 1);
  place.norm = norm_weight(tensors, hidden);
  place.head = tensors.weight(of.type("HEAD"), vocabulary, hidden);
  place.logits = tensors.written("logits", {rows, vocabulary});
  place.input = tensors.scratch({rows, hidden});
}

// Without penalties, and taking the largest: what most decode with, and the shortest.
void make(PlaceTensors& tensors, const Problem& of, NextTokenPlace& place) {
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t vocabulary = of.dimension("VOCABULARY");
  ops::SampleNext& next = place.next;
  const ops::SamplingSettings settings;
  const std::array none{settings.top_k};
  const auto counted = [&](const char* name, std::initializer_list<std::int64_t> extents) {
    return tensors.changed(name, ElementType::int32, extents, 0, 100);
  };
  next.sample.logits = tensors.read(ElementType::float32, {vocabulary}, -8, 8);
  next.sample.settings = tensors.floats(ops::device_settings(settings), {5});
  next.sample.top_k = tensors.integers(none, {1});
  next.sample.generator = tensors.changed("generator", ElementType::int64, {2}, 0, 100);
  next.sample.seen = counted("seen", {vocabulary});
  next.sample.token = counted("token", {1});
  next.sample.probability = tensors.written("probability", {1});
  next.advance.length = counted("length", {1});
  next.advance.slots = counted("slots", {1});
  next.advance.positions = counted("positions", {3, 1});
  next.table = tensors.weight(of.type("TABLE"), vocabulary, hidden);
  next.next = tensors.written("hidden", {1, hidden});
}

void make(PlaceTensors& tensors, const Problem& of, VisionAttentionPlace& place) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t segments = of.dimension("SEGMENTS");
  place.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  place.norm = norm_weights(tensors, hidden);
  place.qkv_weight = linear_weights(tensors, of.type("QKV"), 3 * heads * head_dim, hidden);
  place.projection = linear_weights(tensors, of.type("PROJECTION"), hidden, heads * head_dim);
  const RopeTables tables = rope_tables(rows, head_dim / 4, kRotaryBase);
  place.cosine = tensors.floats(tables.cosine, {rows, head_dim / 4});
  place.sine = tensors.floats(tables.sine, {rows, head_dim / 4});
  place.positions = tensors.integers(counting_from(0, rows, 2), {2, rows});
  if (segments > 1) {
    std::vector<std::int32_t> starts;
    for (std::int64_t i = 0; i <= segments; ++i) {
      starts.push_back(static_cast<std::int32_t>(i * rows / segments));
    }
    place.segment_starts = tensors.integers(starts, {segments + 1});
  }
  place.normed = tensors.scratch({rows, hidden});
  place.qkv = tensors.scratch({rows, 3, heads, head_dim});
  place.attended = tensors.scratch({rows, heads, head_dim});
}

void make(PlaceTensors& tensors, const Problem& of, VisionMlpPlace& place) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t intermediate = of.dimension("INTERMEDIATE");
  place.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  place.norm = norm_weights(tensors, hidden);
  place.fc1 = linear_weights(tensors, of.type("FC1"), intermediate, hidden);
  place.fc2 = linear_weights(tensors, of.type("FC2"), hidden, intermediate);
  place.input = tensors.scratch({rows, hidden});
  place.wide = tensors.scratch({rows, intermediate});
}

void make(PlaceTensors& tensors, const Problem& of, MergerPlace& place) {
  const std::int64_t tokens = of.dimension("TOKENS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t merged = of.dimension("MERGED");
  const std::int64_t out = of.dimension("OUT");
  if (merged % hidden != 0) {
    throw Error(fmt::format("{}: patches are not whole parts of what is merged of them", of.text()));
  }
  place.merged_first = of.dimension("MERGED_FIRST") == 1;
  place.hidden = tensors.read(ElementType::float32, {tokens * (merged / hidden), hidden}, -1, 1);
  place.norm = norm_weights(tensors, place.merged_first ? merged : hidden);
  place.fc1 = linear_weights(tensors, of.type("FC1"), merged, merged);
  place.fc2 = linear_weights(tensors, of.type("FC2"), out, merged);
  place.out = tensors.written("out", {tokens, out});
  place.input = tensors.scratch({place.hidden.shape[0], hidden});
  place.wide = tensors.scratch({tokens, merged});
}

}  // namespace

class PlaceChains {
 public:
  explicit PlaceChains(Dispatcher& dispatcher) : executor_(dispatcher, nullptr), linear_(executor_) {}
  PlaceChains(const PlaceChains&) = delete;
  PlaceChains& operator=(const PlaceChains&) = delete;
  virtual ~PlaceChains() = default;

  virtual void run(const std::string& alternative) = 0;
  [[nodiscard]] virtual std::vector<Executor::PlannedLaunch> launches(const std::string& alternative) = 0;
  [[nodiscard]] const Executor& executor() const noexcept { return executor_; }

 protected:
  Executor executor_;
  LinearLayers linear_;
};

namespace {

template <typename Place>
class ChainsOf final : public PlaceChains {
 public:
  ChainsOf(Dispatcher& dispatcher, PlaceTensors& tensors, const Problem& of) : PlaceChains(dispatcher) {
    make(tensors, of, place_);
    if constexpr (requires(Place & place) { place.hidden; }) {  // all that have products
      reserve(of, place_.hidden.shape[0]);
    }
  }

  void run(const std::string& alternative) override { named(alternative).run(linear_, place_); }
  std::vector<Executor::PlannedLaunch> launches(const std::string& alternative) override {
    return executor_.launches_of([&] { named(alternative).run(linear_, place_); });
  }

 private:
  void reserve(const Problem& of, std::int64_t rows) {
    std::int64_t columns = 1;
    for (const auto& [name, value] : of.dimensions) {
      if (name == "HIDDEN" || name == "INTERMEDIATE" || name == "MERGED" || name == "OUT") {
        columns = std::max(columns, value);
      }
    }
    if (has_dimension(of, "HEADS")) {
      columns = std::max(columns, of.dimension("HEADS") * of.dimension("HEAD_DIM"));
    }
    if (std::ranges::any_of(of.types, [](const auto& type) { return is_packed_format(type.second); })) {
      linear_.reserve(rows, columns);
    }
  }
  [[nodiscard]] const Alternative<Place>& named(const std::string& name) const {
    const auto alternatives = place_.list().alternatives;
    const auto found = std::ranges::find_if(alternatives, [&](const auto& one) { return one.name == name; });
    if (found == alternatives.end()) {
      throw Error(fmt::format("{} has no alternative '{}'", place_.list().name, name));
    }
    return *found;
  }

  Place place_;
};

std::unique_ptr<PlaceChains> make_chains(Dispatcher& dispatcher, PlaceTensors& tensors, const Problem& of) {
  std::unique_ptr<PlaceChains> chains;
  for_each_place([&]<typename Place>(const PlaceList<Place>& list) {
    if (list.name == of.kernel) {
      chains = std::make_unique<ChainsOf<Place>>(dispatcher, tensors, of);
    }
  });
  return chains;
}

}  // namespace

PlaceBench::PlaceBench(Device& device, const DispatcherOptions& options, const Problem& place, std::uint64_t seed)
    : device_(&device),
      dispatcher_(device, options),
      place_(place_key(place).named()),
      tolerance_(tolerance_of(place)),
      seed_(seed) {}

PlaceBench::~PlaceBench() = default;

void PlaceBench::prepare() {
  if (chains_) {
    return;
  }
  auto tensors = std::make_unique<PlaceTensors>(device_->memory(), seed_);
  auto chains = make_chains(dispatcher_, *tensors, place_);
  tensors_ = std::move(tensors);
  chains_ = std::move(chains);
  try {
    if (const auto why = build(kSingle)) {
      throw Error(fmt::format("{}: its operations by themselves: {}", place_.text(), why->second));
    }
    run(kSingle);
    tensors_->keep_results();
  } catch (...) {
    chains_.reset();
    tensors_.reset();
    throw;
  }
}

std::optional<std::pair<TrialStatus, std::string>> PlaceBench::build(const std::string& alternative) {
  const std::vector<AlternativeFacts> all = alternatives_of(place_.kernel);
  const auto facts = std::ranges::find_if(all, [&](const AlternativeFacts& one) { return one.name == alternative; });
  if (facts == all.end()) {
    throw Error(fmt::format("{} has no alternative '{}'", place_.kernel, alternative));
  }
  if (!facts->fits(place_key(place_))) {
    return std::pair(TrialStatus::rejected, std::string("it does not fit these types and sizes"));
  }
  try {
    for (const Executor::PlannedLaunch& launch : chains_->launches(alternative)) {
      (void)dispatcher_.prepare(launch.problem.named());
    }
  } catch (const Error& error) {
    if (is_device_failure(error)) {
      throw;
    }
    return std::pair(TrialStatus::compile_failed, std::string(error.what()));
  }
  return std::nullopt;
}

std::vector<std::string> PlaceBench::kernels_of(const std::string& alternative) {
  std::vector<std::string> kernels;
  for (const Executor::PlannedLaunch& launch : chains_->launches(alternative)) {
    kernels.emplace_back(launch.problem.kernel().text());
  }
  return kernels;
}

void PlaceBench::run(const std::string& alternative) {
  tensors_->restore();
  chains_->run(alternative);
  device_->synchronize();
  if (chains_->executor().fell_back()) {
    throw EmulatorError(fmt::format("'{}' could not be launched as a whole on the device", alternative));
  }
}

Graph PlaceBench::record(const std::string& alternative) {
  return device_->record([&] { chains_->run(alternative); });
}

}  // namespace pascaline
