#include "tuner/measure/site_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/util/stop_check.hpp"
#include "model/decoder/positions.hpp"
#include "model/executor.hpp"
#include "model/fusion/site_list.hpp"
#include "model/fusion/site_space.hpp"
#include "model/linear_layers.hpp"
#include "runtime/device/device_failure.hpp"
#include "runtime/ops/block_choice.hpp"
#include "tuner/measure/problem_data.hpp"

namespace pascaline {
namespace {

constexpr double kRotaryBase = 10'000;

// Of products in float32, which differ in the order of sums; with values rounded to float16, or to int8, on the way.
double tolerance_of(const Problem& site) {
  double tolerance = 1e-4;
  for (const auto& [name, type] : site.types) {
    const bool is_cache = name == "CACHE";
    if (is_packed_format(type) || (is_cache && type == ElementType::int8)) {
      tolerance = std::max(tolerance, 3e-2);
    } else if (is_cache && type == ElementType::float16) {
      tolerance = std::max(tolerance, 2e-3);
    }
  }
  return tolerance;
}

TensorView norm_weight(SiteTensors& tensors, std::int64_t width) {
  return tensors.read(ElementType::float32, {width}, 0.5, 1.5);
}

NormWeights norm_weights(SiteTensors& tensors, std::int64_t width) {
  return {norm_weight(tensors, width), tensors.read(ElementType::float32, {width}, -0.5, 0.5)};
}

LinearWeights linear_weights(SiteTensors& tensors, ElementType type, std::int64_t rows, std::int64_t columns) {
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

TensorView cache_of(SiteTensors& tensors, const char* name, ElementType type, std::int64_t keys, std::int64_t heads,
                    std::int64_t head_dim) {
  const double most = type == ElementType::int8 ? 127 : 1;
  return tensors.changed(name, type, {keys, heads, head_dim}, -most, most);
}

bool has_dimension(const Problem& of, std::string_view name) {
  return std::ranges::any_of(of.dimensions, [&](const auto& dimension) { return dimension.first == name; });
}

std::int64_t rows_of_site(const Problem& of) { return has_dimension(of, "ROWS") ? of.dimension("ROWS") : 1; }

// Queries, keys and values: a part for each run of one type.
StackedMatrix projection_weight(SiteTensors& tensors, const Problem& of) {
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

// The rows are the last ones of the cache: what a site meets when the context is full.
void make(SiteTensors& tensors, const Problem& of, AttentionSite& site) {
  const std::int64_t rows = rows_of_site(of);
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t kv_heads = of.dimension("KV_HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t keys = of.dimension("KEYS");
  const ElementType cache = of.type("CACHE");
  if (keys < rows) {
    throw Error(fmt::format("{}: there are fewer keys than rows", of.text()));
  }
  site.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  site.input_norm = norm_weight(tensors, hidden);
  site.qkv_weight = projection_weight(tensors, of);
  if (of.dimension("QK_NORM") == 1) {
    site.q_weight = norm_weight(tensors, head_dim);
    site.k_weight = norm_weight(tensors, head_dim);
  }
  const RopeTables tables = rope_tables(keys, head_dim / 2, kRotaryBase);
  site.cosine = tensors.floats(tables.cosine, {keys, head_dim / 2});
  site.sine = tensors.floats(tables.sine, {keys, head_dim / 2});
  site.positions = tensors.integers(counting_from(keys - rows, rows, 3), {3, rows});
  site.slots = tensors.integers(counting_from(keys - rows, rows), {rows});
  site.length = tensors.integers(counting_from(keys, 1), {1});
  site.k_cache = cache_of(tensors, "keys", cache, keys, kv_heads, head_dim);
  site.v_cache = cache_of(tensors, "values", cache, keys, kv_heads, head_dim);
  if (cache == ElementType::int8) {
    site.k_scales = tensors.changed("scales of keys", ElementType::float32, {keys, kv_heads}, 0.004, 0.012);
    site.v_scales = tensors.changed("scales of values", ElementType::float32, {keys, kv_heads}, 0.004, 0.012);
  }
  site.output = tensors.weight(of.type("OUTPUT"), hidden, heads * head_dim);
  site.input = tensors.scratch({rows, hidden});
  site.qkv = tensors.scratch({rows, heads + 2 * kv_heads, head_dim});
  site.q = tensors.scratch({rows, heads, head_dim});
  site.attended = tensors.scratch({rows, heads, head_dim});
  site.cached = keys - rows;
  site.section_h = of.dimension("SECTION_H");
  site.section_w = of.dimension("SECTION_W");
}

// Means of the blocks' keys that are multiples of one row: their order by score is then that of the multiples, or its
// reverse, whatever the queries' rounding.
TensorView means_of(SiteTensors& tensors, std::int64_t blocks, std::int64_t heads, std::int64_t head_dim) {
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

void make(SiteTensors& tensors, const Problem& of, SparseAttentionSite& site) {
  make(tensors, of, static_cast<AttentionSite&>(site));
  site.choice = {{of.dimension("BLOCK"), of.dimension("WINDOW"), of.dimension("SINKS"), of.dimension("STRIDE")},
                 static_cast<double>(of.dimension("PART")) / ops::ChooseBlocks::kAll};
  if (site.choice.is_dense() || (site.choice.mask.is_pattern() && site.choice.chooses_blocks())) {
    throw Error(fmt::format("{}: give either a WINDOW or a PART of the blocks", of.text()));
  }
  if (!site.choice.chooses_blocks()) {
    return;
  }
  const std::int64_t block = site.choice.mask.block;
  const auto blocks_in = [&](std::int64_t rows) { return (rows + block - 1) / block; };
  const std::int64_t kv_heads = of.dimension("KV_HEADS");
  const std::int64_t keys = blocks_in(site.keys());
  const std::int64_t rows = blocks_in(site.rows());
  site.means = means_of(tensors, keys, kv_heads, of.dimension("HEAD_DIM"));
  site.scores = tensors.scratch({kv_heads, rows, keys});
  site.lists = tensors.scratch({kv_heads, rows, ops::ChooseBlocks::width_for(site.keys(), block, site.choice.part())});
  site.lists.type = ElementType::int32;  // of the same size
}

void make(SiteTensors& tensors, const Problem& of, MlpSite& site) {
  const std::int64_t rows = rows_of_site(of);
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t intermediate = of.dimension("INTERMEDIATE");
  site.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  site.post_norm = norm_weight(tensors, hidden);
  site.gate_up = tensors.weight(of.type("GATE_UP"), 2 * intermediate, hidden);
  site.down = tensors.weight(of.type("DOWN"), hidden, intermediate);
  site.input = tensors.scratch({rows, hidden});
  site.gated = tensors.scratch({rows, intermediate});
}

void make(SiteTensors& tensors, const Problem& of, HeadSite& site) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t vocabulary = of.dimension("VOCABULARY");
  site.hidden = tensors.read(ElementType::float32, {rows, hidden}, -1, 1);
  site.norm = norm_weight(tensors, hidden);
  site.head = tensors.weight(of.type("HEAD"), vocabulary, hidden);
  site.logits = tensors.written("logits", {rows, vocabulary});
  site.input = tensors.scratch({rows, hidden});
}

// Without penalties, and taking the largest: what most decode with, and the shortest.
void make(SiteTensors& tensors, const Problem& of, NextTokenSite& site) {
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t vocabulary = of.dimension("VOCABULARY");
  ops::SampleNext& next = site.next;
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

void make(SiteTensors& tensors, const Problem& of, VisionAttentionSite& site) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t heads = of.dimension("HEADS");
  const std::int64_t head_dim = of.dimension("HEAD_DIM");
  const std::int64_t segments = of.dimension("SEGMENTS");
  site.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  site.norm = norm_weights(tensors, hidden);
  site.qkv_weight = linear_weights(tensors, of.type("QKV"), 3 * heads * head_dim, hidden);
  site.projection = linear_weights(tensors, of.type("PROJECTION"), hidden, heads * head_dim);
  const RopeTables tables = rope_tables(rows, head_dim / 4, kRotaryBase);
  site.cosine = tensors.floats(tables.cosine, {rows, head_dim / 4});
  site.sine = tensors.floats(tables.sine, {rows, head_dim / 4});
  site.positions = tensors.integers(counting_from(0, rows, 2), {2, rows});
  if (segments > 1) {
    std::vector<std::int32_t> starts;
    for (std::int64_t i = 0; i <= segments; ++i) {
      starts.push_back(static_cast<std::int32_t>(i * rows / segments));
    }
    site.segment_starts = tensors.integers(starts, {segments + 1});
  }
  site.normed = tensors.scratch({rows, hidden});
  site.qkv = tensors.scratch({rows, 3, heads, head_dim});
  site.attended = tensors.scratch({rows, heads, head_dim});
}

void make(SiteTensors& tensors, const Problem& of, VisionMlpSite& site) {
  const std::int64_t rows = of.dimension("ROWS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t intermediate = of.dimension("INTERMEDIATE");
  site.hidden = tensors.changed("hidden", ElementType::float32, {rows, hidden}, -1, 1);
  site.norm = norm_weights(tensors, hidden);
  site.fc1 = linear_weights(tensors, of.type("FC1"), intermediate, hidden);
  site.fc2 = linear_weights(tensors, of.type("FC2"), hidden, intermediate);
  site.input = tensors.scratch({rows, hidden});
  site.wide = tensors.scratch({rows, intermediate});
}

void make(SiteTensors& tensors, const Problem& of, MergerSite& site) {
  const std::int64_t tokens = of.dimension("TOKENS");
  const std::int64_t hidden = of.dimension("HIDDEN");
  const std::int64_t merged = of.dimension("MERGED");
  const std::int64_t out = of.dimension("OUT");
  if (merged % hidden != 0) {
    throw Error(fmt::format("{}: patches are not whole parts of what is merged of them", of.text()));
  }
  site.merged_first = of.dimension("MERGED_FIRST") == 1;
  site.hidden = tensors.read(ElementType::float32, {tokens * (merged / hidden), hidden}, -1, 1);
  site.norm = norm_weights(tensors, site.merged_first ? merged : hidden);
  site.fc1 = linear_weights(tensors, of.type("FC1"), merged, merged);
  site.fc2 = linear_weights(tensors, of.type("FC2"), out, merged);
  site.out = tensors.written("out", {tokens, out});
  site.input = tensors.scratch({site.hidden.shape[0], hidden});
  site.wide = tensors.scratch({tokens, merged});
}

}  // namespace

class SiteChains {
 public:
  explicit SiteChains(Dispatcher& dispatcher) : executor_(dispatcher, nullptr), linear_(executor_) {}
  SiteChains(const SiteChains&) = delete;
  SiteChains& operator=(const SiteChains&) = delete;
  virtual ~SiteChains() = default;

  virtual void run(const std::string& alternative) = 0;
  [[nodiscard]] virtual std::vector<Executor::UnrunLaunch> launches(const std::string& alternative) = 0;
  [[nodiscard]] const Executor& executor() const noexcept { return executor_; }

 protected:
  Executor executor_;
  LinearLayers linear_;
};

namespace {

template <typename Site>
class ChainsOf final : public SiteChains {
 public:
  ChainsOf(Dispatcher& dispatcher, SiteTensors& tensors, const Problem& of) : SiteChains(dispatcher) {
    make(tensors, of, site_);
    if constexpr (requires(Site & site) { site.hidden; }) {  // all that have products
      reserve(of, site_.hidden.shape[0]);
    }
  }

  void run(const std::string& alternative) override { named(alternative).run(linear_, site_); }
  std::vector<Executor::UnrunLaunch> launches(const std::string& alternative) override {
    return executor_.launches_of([&] { named(alternative).run(linear_, site_); });
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
  [[nodiscard]] const Alternative<Site>& named(const std::string& name) const {
    const auto alternatives = site_.list().alternatives;
    const auto found = std::ranges::find_if(alternatives, [&](const auto& one) { return one.name == name; });
    if (found == alternatives.end()) {
      throw Error(fmt::format("{} has no alternative '{}'", site_.list().name, name));
    }
    return *found;
  }

  Site site_;
};

std::unique_ptr<SiteChains> make_chains(Dispatcher& dispatcher, SiteTensors& tensors, const Problem& of) {
  std::unique_ptr<SiteChains> chains;
  for_each_site([&]<typename Site>(const SiteList<Site>& list) {
    if (list.name == of.kernel) {
      chains = std::make_unique<ChainsOf<Site>>(dispatcher, tensors, of);
    }
  });
  return chains;
}

}  // namespace

SiteBench::SiteBench(Device& device, const DispatcherOptions& options, const Problem& site, std::uint64_t seed,
                     const std::optional<Binary>& drawing)
    : device_(&device),
      dispatcher_(device, options),
      site_(site_key(site).named()),
      tolerance_(tolerance_of(site)),
      seed_(seed),
      drawing_(device, drawing) {}

SiteBench::~SiteBench() = default;

void SiteBench::prepare() {
  if (chains_) {
    return;
  }
  const auto forget = [this] {
    chains_.reset();
    tensors_.reset();
  };
  try {
    tensors_ = std::make_unique<SiteTensors>(device_->memory(), drawing_, seed_);
    chains_ = make_chains(dispatcher_, *tensors_, site_);
    if (const auto why = build(kSingle)) {
      throw ReferenceError(fmt::format("{}: its operations by themselves: {}", site_.text(), why->second));
    }
    run(kSingle);
    tensors_->keep_results();
  } catch (const StoppedError&) {
    forget();
    throw;
  } catch (const Error& error) {
    forget();
    if (is_device_failure(error)) {
      throw;
    }
    throw ReferenceError(error.what());
  }
}

std::optional<std::pair<TrialStatus, std::string>> SiteBench::build(const std::string& alternative) {
  const std::vector<AlternativeFacts> all = alternatives_of(site_.kernel);
  const auto facts = std::ranges::find_if(all, [&](const AlternativeFacts& one) { return one.name == alternative; });
  if (facts == all.end()) {
    throw Error(fmt::format("{} has no alternative '{}'", site_.kernel, alternative));
  }
  if (!facts->fits(site_key(site_))) {
    return std::pair(TrialStatus::rejected, std::string("it does not fit these types and sizes"));
  }
  try {
    for (const Executor::UnrunLaunch& launch : chains_->launches(alternative)) {
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

std::vector<std::string> SiteBench::kernels_of(const std::string& alternative) {
  std::vector<std::string> kernels;
  for (const Executor::UnrunLaunch& launch : chains_->launches(alternative)) {
    kernels.emplace_back(launch.problem.kernel().text());
  }
  return kernels;
}

void SiteBench::run(const std::string& alternative) {
  tensors_->restore();
  chains_->run(alternative);
  device_->synchronize();
  if (chains_->executor().fell_back()) {
    throw EmulatorError(fmt::format("'{}' could not be launched as a whole on the device", alternative));
  }
}

Graph SiteBench::record(const std::string& alternative) {
  return device_->record([&] { chains_->run(alternative); });
}

}  // namespace pascaline
