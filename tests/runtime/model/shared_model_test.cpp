#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "runtime/memory/pool.hpp"
#include "runtime/model/model.hpp"
#include "tests/runtime/memory/manual_memory.hpp"
#include "tests/runtime/model/golden_run.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr float kRounding = 1e-4F;

struct SharedCase {
  const char* name;
  PlacementOptions options;
};

std::vector<SharedCase> shared_cases(std::int64_t layers) {
  std::vector<SharedCase> cases;
  for (const std::int64_t kept : {std::int64_t{1}, layers - 1}) {
    cases.push_back({"processor", {kept, VisionPlace::device, Offload::processor}});
    cases.push_back({"streamed", {kept, VisionPlace::device, Offload::stream}});
  }
  cases.push_back({"vision on the processor", {layers, VisionPlace::processor, Offload::automatic}});
  cases.push_back({"nothing but the tower", {0, VisionPlace::device, Offload::processor}});
  cases.push_back({"nothing", {0, VisionPlace::processor, Offload::processor}});
  cases.push_back({"tower on the processor, layers streamed", {0, VisionPlace::processor, Offload::stream}});
  return cases;
}

class SharedModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_device("emulator");
  ModelConfig config_ = golden_model_a().config;
  ModelOptions options_;

  SharedModelTest() {
    options_.weights = options_.cache = ElementType::float32;
    options_.context = 128;
    options_.chunk = 24;
    config_.text.layers = 5;
  }

  // A model on the emulated device's kernels, with a limit of its memory.
  struct Place {
    Place(Device& device, std::uint64_t limit)
        : pool(device.memory(), limit), dispatcher(device, options(), &pool), executor(dispatcher) {}
    static DispatcherOptions options() {
      DispatcherOptions options;
      options.cache = PASCALINE_TEST_CACHE;
      return options;
    }
    MemoryPool pool;
    Dispatcher dispatcher;
    Executor executor;
    std::optional<Model> model;
  };
  [[nodiscard]] std::unique_ptr<Place> made(const PlacementOptions& placement,
                                            std::uint64_t limit = MemoryPool::kUnlimited) {
    auto place = std::make_unique<Place>(*device_, limit);
    ModelOptions options = options_;
    options.placement = placement;
    WeightSource source = hash_weights(config_);
    place->model.emplace(place->executor, config_, source, options);
    return place;
  }

  // Logits of a prompt with an image, of one more turn of a conversation, and of tokens between them.
  [[nodiscard]] std::vector<std::vector<float>> logits_of(Model& model) const {
    std::vector<float> pixels(static_cast<std::size_t>(24 * config_.vision.value().patch_values()));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = hash_pixel(i);
    }
    const PatchView image{4, 6, pixels};
    Tokens prompt(40, 3);
    std::fill(prompt.begin() + 2, prompt.begin() + 8, static_cast<std::int32_t>(config_.vision->image_token));
    for (std::size_t i = 8; i < prompt.size(); ++i) {
      prompt[i] = static_cast<std::int32_t>(7 * i % 400);
    }
    std::vector<std::vector<float>> all;
    model.clear();
    (void)model.append({prompt, {&image, 1}},
                       [&](std::int64_t, std::span<const float> rows) { all.emplace_back(rows.begin(), rows.end()); });
    for (int turn = 0; turn < 3; ++turn) {
      for (const std::int32_t token : {11, 22, 33, 44}) {
        model.choose(token);
        (void)model.step();
        all.push_back(model.logits());
      }
      (void)model.append({Tokens{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {}});
      all.push_back(model.logits());
    }
    return all;
  }

  static void expect_alike(const std::vector<std::vector<float>>& got, const std::vector<std::vector<float>>& expected,
                           const std::string& what, float tolerance = kRounding) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    float worst = 0;
    for (std::size_t row = 0; row < got.size(); ++row) {
      ASSERT_EQ(got[row].size(), expected[row].size()) << what;
      for (std::size_t i = 0; i < got[row].size(); ++i) {
        const float off = std::fabs(got[row][i] - expected[row][i]);
        worst = off <= worst ? worst : off;
      }
    }
    EXPECT_LE(worst, tolerance) << what;
  }
};

TEST_F(SharedModelTest, LogitsAreThoseOfOnePlaceWhereverTheLayersAre) {
  const auto whole = made({});
  EXPECT_TRUE(whole->model->plan().placement.all_on_device());
  const auto expected = logits_of(*whole->model);
  for (const SharedCase& each : shared_cases(config_.text.layers)) {
    const auto place = made(each.options);
    const Placement& placement = place->model->plan().placement;
    EXPECT_EQ(placement.count(pascaline::Place::device), static_cast<std::size_t>(*each.options.gpu_layers));
    expect_alike(logits_of(*place->model), expected,
                 std::string(each.name) + ", " + std::to_string(*each.options.gpu_layers) + " on the device");
    EXPECT_EQ(place->model->uses_graph(), placement.all_decodes_on_device()) << each.name;
    EXPECT_FALSE(place->executor.fell_back());
  }
}

TEST_F(SharedModelTest, QuantizedWeightsAndInt8CacheGiveTheSame) {
  for (const auto& [type, cache] : {std::pair("q4_k", ElementType::float32), {"int8", ElementType::int8}}) {
    options_.weights = WeightRecipe::named(type);
    options_.cache = cache;
    const auto expected = logits_of(*made({})->model);
    for (const Offload offload : {Offload::processor, Offload::stream}) {
      // Where sums differ in their last bits rounding to int8 may fall to the other side, and a step of so small a
      // model's activations is large.
      expect_alike(logits_of(*made({2, VisionPlace::processor, offload})->model), expected, type, 5e-2F);
    }
    expect_alike(logits_of(*made({2, VisionPlace::device, Offload::stream})->model), expected, type);
  }
}

TEST_F(SharedModelTest, ALimitIsKeptByMovingLayers) {
  config_.text.hidden = config_.vision.value().out_hidden = 256;
  config_.text.intermediate = 1024;
  const auto whole = made({});
  const auto expected = logits_of(*whole->model);
  const ModelPlan all = whole->model->plan();
  std::size_t last = 5;
  for (const double share : {0.8, 0.5, 0.3}) {
    const auto limit = static_cast<std::uint64_t>(share * static_cast<double>(all.device_bytes));
    for (const Offload offload : {Offload::processor, Offload::stream, Offload::automatic}) {
      PlacementOptions placement;
      placement.offload = offload;
      std::unique_ptr<Place> place;
      try {
        place = made(placement, limit);
      } catch (const OutOfMemoryError& error) {
        EXPECT_EQ(offload, Offload::stream) << error.what() << "\nonly slots may be too large";
        continue;
      }
      const Placement& got = place->model->plan().placement;
      EXPECT_FALSE(got.all_on_device());
      EXPECT_TRUE(place->model->plan().rates.has_value());
      expect_alike(logits_of(*place->model), expected, std::to_string(share));
      EXPECT_LE(place->pool.statistics().peak_held_bytes, limit);
      EXPECT_GT(place->model->memory().host, 0U);
      if (offload == Offload::processor) {
        EXPECT_LE(got.count(pascaline::Place::device), last) << "less memory holds no more layers";
        last = got.count(pascaline::Place::device);
      }
    }
  }
  EXPECT_LT(last, 5U);
}

TEST_F(SharedModelTest, UntiedHeadsAndFloat16) {
  config_.text.tied = false;
  options_.weights = options_.cache = ElementType::float16;
  const auto whole = made({});
  const auto expected = logits_of(*whole->model);
  for (const SharedCase& each : shared_cases(config_.text.layers)) {
    expect_alike(logits_of(*made(each.options)->model), expected, each.name, 2e-3F);
  }
}

TEST_F(SharedModelTest, GoldenLogitsWithEachPartElsewhere) {
  for (const Offload offload : {Offload::processor, Offload::stream}) {
    GoldenTolerance tolerance;
    tolerance.placement = {1, VisionPlace::processor, offload};
    Place place(*device_, MemoryPool::kUnlimited);
    check_golden(place.executor, golden_model_a(), tolerance);
  }
}

TEST_F(SharedModelTest, OperationsOfBothPlacesAreObserved) {
  const auto count = [&](const PlacementOptions& placement) {
    const auto place = made(placement);
    int told = 0;
    // Rows are rounded as a step of their own only on a device.
    place->executor.observe(
        [&](const ops::KernelProblem& problem) { told += problem.kernel().text() == "quantize" ? 0 : 1; });
    (void)place->model->append({Tokens(20, 7), {}});
    return told;
  };
  const int whole = count({});
  EXPECT_EQ(count({2, VisionPlace::automatic, Offload::processor}), whole);
  options_.weights = ElementType::q4_k;
  EXPECT_EQ(count({2, VisionPlace::automatic, Offload::processor}), count({}));
}

TEST_F(SharedModelTest, WantOfMemoryWhileLoadingLeavesNothing) {
  Place place(*device_, std::uint64_t{64} << 20);
  RawBuffer taken;
  const WeightSource good = hash_weights(config_);
  WeightSource source(good.tensors(),
                      [&](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
                        static std::mutex mutex;
                        const std::lock_guard lock(mutex);
                        if (!taken) {
                          taken = place.pool.allocate_raw(place.pool.state().free_bytes - 4096);
                        }
                        good.read(good.tensors()[index], type, first, out);
                      });
  options_.placement = {2, VisionPlace::processor, Offload::stream};
  try {
    place.model.emplace(place.executor, config_, source, options_);
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
  EXPECT_EQ(place.pool.statistics().live_buffers, 1U) << "only what the test took";
}

// Of which some calls fail.
class FailingMemory : public ManualMemory {
 public:
  int allocations_left = 1 << 30;
  bool refuses_layers = false;

  [[nodiscard]] RawBuffer allocate_raw(std::size_t bytes) override {
    if (allocations_left-- <= 0) {
      throw EmulatorError("no memory", ENOMEM);
    }
    return ManualMemory::allocate_raw(bytes);
  }
  [[nodiscard]] PinnedBuffer allocate_pinned(std::size_t bytes) override {
    if (refuses_layers && bytes < std::size_t{4} << 20) {  // those of uploads are larger
      throw EmulatorError("no page-locked memory", ENOMEM);
    }
    return ManualMemory::allocate_pinned(bytes);
  }
};

Placement mixed_placement() {
  Placement placement = Placement::on_device(5);
  placement.layers[1] = placement.layers[3] = pascaline::Place::streamed;
  placement.layers[4] = pascaline::Place::processor;
  return placement;
}

TEST_F(SharedModelTest, EveryFailingAllocationLeavesNothing) {
  const Placement placement = mixed_placement();
  int failures = 0;
  for (int left = 0; left < 1000; ++left) {
    FailingMemory memory;
    ManualMemory host;
    memory.allocations_left = left;
    WeightSource source = hash_weights(config_);
    try {
      const DeviceWeights weights =
          load_weights(config_, source, {&memory, &host, &placement}, ElementType::float32, 2);
      break;
    } catch (const Error&) {
      ++failures;
      EXPECT_EQ(memory.held_bytes, 0U) << left;
      EXPECT_EQ(host.held_bytes, 0U) << left;
    }
  }
  EXPECT_GT(failures, 20);
  EXPECT_LT(failures, 1000);
}

TEST_F(SharedModelTest, PageLockedMemoryThatIsRefusedIsPlain) {
  const Placement placement = mixed_placement();
  FailingMemory memory;
  const auto loaded = [&] {
    WeightSource source = hash_weights(config_);
    return load_weights(config_, source, {&memory, &device_->memory(), &placement}, ElementType::float32, 1);
  };
  const DeviceWeights pinned = loaded();
  EXPECT_EQ(pinned.not_pinned_bytes, 0U);
  memory.refuses_layers = true;
  const DeviceWeights plain = loaded();
  ASSERT_EQ(plain.blocks.size(), 2U);
  EXPECT_EQ(plain.not_pinned_bytes, plain.blocks.at(1).span().bytes + plain.blocks.at(3).span().bytes);
  EXPECT_EQ(plain.host_bytes, pinned.host_bytes);
  for (const auto& [layer, block] : plain.blocks) {
    const DeviceSpan other = pinned.blocks.at(layer).span();
    EXPECT_EQ(span_of(plain.text.layers[layer].down).bytes, span_of(pinned.text.layers[layer].down).bytes);
    EXPECT_EQ(std::memcmp(plain.text.layers[layer].down.data, pinned.text.layers[layer].down.data,
                          span_of(plain.text.layers[layer].down).bytes),
              0);
    EXPECT_EQ(block.span().bytes, other.bytes);
  }
}

// Weights of layers that hold their number, and a stream over them whose work is done in any order.
class LayerStreamTest : public ::testing::Test {
 protected:
  ManualMemory memory_;
  DeviceWeights weights_;

  void add(std::size_t layer) {
    weights_.text.layers.resize(std::max(weights_.text.layers.size(), layer + 1));
    LayerBlock& block = weights_.blocks[layer];
    block.pinned = memory_.allocate_pinned(8 * 256);
    std::fill(block.pinned.bytes().begin(), block.pinned.bytes().end(), static_cast<std::byte>(layer));
    block.used_bytes = 8 * 256;
    TextLayerWeights& views = weights_.text.layers[layer];
    std::size_t at = 0;
    for (TensorView* view : {&views.input_norm, &views.qkv, &views.q_norm, &views.k_norm, &views.output,
                             &views.post_norm, &views.gate_up, &views.down}) {
      *view = TensorView(block.pinned.bytes().data() + 256 * at++, ElementType::float32, {64});
    }
  }
  // Work of the default stream that looks at the layer's weights.
  void use(LayerStream& stream, std::size_t layer) {
    const TextLayerWeights there = stream.enter(layer);
    for (const TensorView& view : {there.input_norm, there.down}) {
      memory_.enqueue({}, [layer, data = static_cast<const std::byte*>(view.data)] {
        EXPECT_TRUE(std::all_of(data, data + 256, [&](std::byte b) { return b == static_cast<std::byte>(layer); }))
            << "layer " << layer;
      });
    }
  }
};

TEST_F(LayerStreamTest, LayersAreThereWhenTheyAreUsedInAnyOrderOfWork) {
  for (const std::size_t layer : {1, 2, 5, 6, 9}) {
    add(layer);
  }
  std::mt19937 generator(3);
  for (int seed = 0; seed < 50; ++seed) {
    LayerStream stream(memory_, weights_);
    EXPECT_EQ(stream.bytes(), 2U * 8 * 256);
    for (int pass = 0; pass < 4; ++pass) {
      for (const std::size_t layer : {1, 2, 5, 6, 9}) {
        use(stream, layer);
        stream.leave(layer);
        for (auto steps = generator() % 6; steps > 0; --steps) {
          (void)memory_.step_any(generator());
        }
      }
    }
    while (memory_.step_any(generator())) {
    }
    EXPECT_EQ(stream.copied_bytes(), 21U * 8 * 256) << "each once a pass, and the first of the next";
    memory_.drain();
  }
}

TEST_F(LayerStreamTest, FewLayersStay) {
  for (const std::size_t count : {1, 2}) {
    add(count);
    LayerStream stream(memory_, weights_);
    EXPECT_EQ(stream.bytes(), count * 8 * 256);
    for (int pass = 0; pass < 5; ++pass) {
      for (std::size_t layer = 1; layer <= count; ++layer) {
        use(stream, layer);
        stream.leave(layer);
      }
    }
    memory_.drain();
    EXPECT_EQ(stream.copied_bytes(), count * 8 * 256);
  }
}

TEST_F(LayerStreamTest, APassThatEndedEarlyDoesNoHarm) {
  for (const std::size_t layer : {0, 1, 2, 3}) {
    add(layer);
  }
  std::mt19937 generator(5);
  for (int seed = 0; seed < 50; ++seed) {
    LayerStream stream(memory_, weights_);
    for (int i = 0; i < 30; ++i) {
      const std::size_t layer = generator() % 4;
      use(stream, layer);
      if (generator() % 3 != 0) {
        stream.leave(layer);
      }
      (void)memory_.step_any(generator());
    }
    while (memory_.step_any(generator())) {
    }
    memory_.drain();
  }
}

}  // namespace
}  // namespace pascaline::testing
