#include "tests/model/shared_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "model/model.hpp"
#include "runtime/memory/pool.hpp"
#include "tests/model/golden_run.hpp"
#include "tests/runtime/memory/manual_memory.hpp"
#include "tests/share.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

struct SharedCase {
  const char* name;
  ResidencyOptions options;
};

std::vector<SharedCase> shared_cases(std::int64_t layers) {
  std::vector<SharedCase> cases;
  for (const std::int64_t kept : {std::int64_t{1}, layers - 1}) {
    cases.push_back({"processor", {kept, VisionResidency::device, Offload::processor}});
    cases.push_back({"streamed", {kept, VisionResidency::device, Offload::stream}});
  }
  cases.push_back({"vision on the processor", {layers, VisionResidency::processor, Offload::automatic}});
  cases.push_back({"nothing but the tower", {0, VisionResidency::device, Offload::processor}});
  cases.push_back({"nothing", {0, VisionResidency::processor, Offload::processor}});
  cases.push_back({"tower on the processor, layers streamed", {0, VisionResidency::processor, Offload::stream}});
  cases.push_back({"tower streamed", {layers, VisionResidency::stream, Offload::automatic}});
  cases.push_back({"tower streamed, layers on the processor", {1, VisionResidency::stream, Offload::processor}});
  return cases;
}

TEST_F(SharedModelTest, LogitsAreThoseOfOnePlaceWhereverTheLayersAre) {
  const auto whole = made({});
  EXPECT_TRUE(whole->model->plan().residency.all_on_device());
  const auto expected = logits_of(*whole->model);
  for (const SharedCase& each : share_of(shared_cases(config_.text.layers), "places", 1)) {
    const auto where = made(each.options);
    const ModelResidency& residency = where->model->plan().residency;
    EXPECT_EQ(residency.count(Residency::device), static_cast<std::size_t>(*each.options.gpu_layers));
    expect_alike(logits_of(*where->model), expected,
                 std::string(each.name) + ", " + std::to_string(*each.options.gpu_layers) + " on the device");
    EXPECT_EQ(where->model->uses_graph(), residency.all_decodes_on_device()) << each.name;
    EXPECT_FALSE(where->executor.fell_back());
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
      expect_alike(logits_of(*made({2, VisionResidency::processor, offload})->model), expected, type, 5e-2F);
    }
    expect_alike(logits_of(*made({2, VisionResidency::device, Offload::stream})->model), expected, type);
  }
}

TEST_F(SharedModelTest, ALimitIsKeptByMovingLayers) {
  config_.text.hidden = config_.vision.value().out_hidden = 256;
  config_.text.intermediate = 1024;
  const auto whole = made({});
  const auto expected = logits_of(*whole->model);
  const MemoryLayout all = whole->model->plan();
  std::size_t last = 5;
  for (const double share : share_of<double>({0.8, 0.5, 0.3}, "limits", 1)) {
    const auto limit = static_cast<std::uint64_t>(share * static_cast<double>(all.device_bytes));
    for (const Offload offload : {Offload::processor, Offload::stream, Offload::automatic}) {
      ResidencyOptions residency;
      residency.offload = offload;
      std::unique_ptr<Home> where;
      try {
        where = made(residency, limit);
      } catch (const OutOfMemoryError& error) {
        EXPECT_EQ(offload, Offload::stream) << error.what() << "\nonly slots may be too large";
        continue;
      }
      const ModelResidency& got = where->model->plan().residency;
      EXPECT_FALSE(got.all_on_device());
      EXPECT_TRUE(where->model->plan().rates.has_value());
      expect_alike(logits_of(*where->model), expected, std::to_string(share));
      EXPECT_LE(where->pool.statistics().peak_held_bytes, limit);
      EXPECT_GT(where->model->memory().host, 0U);
      if (offload == Offload::processor) {
        EXPECT_LE(got.count(Residency::device), last) << "less memory holds no more layers";
        last = got.count(Residency::device);
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
  for (const SharedCase& each : share_of(shared_cases(config_.text.layers), "places", 1)) {
    expect_alike(logits_of(*made(each.options)->model), expected, each.name, 2e-3F);
  }
}

TEST_F(SharedModelTest, GoldenLogitsWithEachPartElsewhere) {
  for (const Offload offload : {Offload::processor, Offload::stream}) {
    GoldenTolerance tolerance;
    tolerance.residency = {1, VisionResidency::processor, offload};
    Home where(*device_, MemoryPool::kUnlimited);
    check_golden(where.executor, golden_model_a(), tolerance);
  }
}

TEST_F(SharedModelTest, OperationsOfBothPlacesAreObserved) {
  const auto count = [&](const ResidencyOptions& residency) {
    const auto where = made(residency);
    int told = 0;
    // Rows are rounded as a step of their own only on a device.
    where->executor.observe(
        [&](const ops::KernelProblem& problem) { told += problem.kernel().text() == "quantize" ? 0 : 1; });
    (void)where->model->append({Tokens(20, 7), {}});
    return told;
  };
  const int whole = count({});
  EXPECT_EQ(count({2, VisionResidency::automatic, Offload::processor}), whole);
  options_.weights = ElementType::q4_k;
  EXPECT_EQ(count({2, VisionResidency::automatic, Offload::processor}), count({}));
}

TEST_F(SharedModelTest, WantOfMemoryWhileLoadingLeavesNothing) {
  Home where(*device_, std::uint64_t{64} << 20);
  RawBuffer taken;
  const WeightSource good = hash_weights(config_);
  WeightSource source(good.tensors(),
                      [&](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
                        static std::mutex mutex;
                        const std::lock_guard lock(mutex);
                        if (!taken) {
                          taken = where.pool.allocate_raw(where.pool.state().free_bytes - 4096);
                        }
                        good.read(good.tensors()[index], type, first, out);
                      });
  options_.residency = {2, VisionResidency::processor, Offload::stream};
  try {
    where.model.emplace(where.executor, config_, source, options_);
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_TRUE(is_out_of_memory(error)) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
  EXPECT_EQ(where.pool.statistics().live_buffers, 1U) << "only what the test took";
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

ModelResidency mixed_residency() {
  ModelResidency residency = ModelResidency::on_device(5);
  residency.layers[1] = residency.layers[3] = Residency::streamed;
  residency.layers[4] = Residency::processor;
  residency.vision = Residency::streamed;
  residency.tower.assign(5, Residency::streamed);
  residency.tower[1] = Residency::device;
  return residency;
}

TEST_F(SharedModelTest, EveryFailingAllocationLeavesNothing) {
  const ModelResidency residency = mixed_residency();
  int failures = 0;
  for (int left = 0; left < 1000; ++left) {
    FailingMemory memory;
    ManualMemory host;
    memory.allocations_left = left;
    WeightSource source = hash_weights(config_);
    try {
      const DeviceWeights weights =
          load_weights(config_, source, {&memory, &host, &residency}, ElementType::float32, 1);
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
  const ModelResidency residency = mixed_residency();
  FailingMemory memory;
  const auto loaded = [&] {
    WeightSource source = hash_weights(config_);
    return load_weights(config_, source, {&memory, &device_->memory(), &residency}, ElementType::float32, 1);
  };
  const DeviceWeights pinned = loaded();
  EXPECT_EQ(pinned.not_pinned_bytes, 0U);
  memory.refuses_layers = true;
  const DeviceWeights plain = loaded();
  ASSERT_EQ(plain.blocks.size(), 6U);
  EXPECT_EQ(plain.host_bytes, pinned.host_bytes);
  std::uint64_t bytes = 0;
  for (const auto& [part, block] : plain.blocks) {
    bytes += block.span().bytes;
    EXPECT_EQ(block.span().bytes, pinned.blocks.at(part).span().bytes);
    EXPECT_EQ(block.used_bytes, block.span().bytes) << "a plan counts what is there";
  }
  EXPECT_EQ(plain.not_pinned_bytes, bytes);
  const auto expect_same = [](const TensorView& one, const TensorView& other) {
    ASSERT_EQ(span_of(one).bytes, span_of(other).bytes);
    EXPECT_EQ(std::memcmp(one.data, other.data, span_of(one).bytes), 0);
  };
  for (const std::size_t layer : {1, 3}) {
    expect_same(plain.text.layers[layer].down, pinned.text.layers[layer].down);
  }
  expect_same(plain.vision.positions, pinned.vision.positions);
  expect_same(plain.vision.blocks[1].fc2.weight, pinned.vision.blocks[1].fc2.weight);
  expect_same(plain.vision.merger.fc2.bias, pinned.vision.merger.fc2.bias);
}

}  // namespace
}  // namespace pascaline::testing
