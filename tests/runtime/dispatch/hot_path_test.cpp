#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/dispatch/identity.hpp"
#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace {
thread_local int allocations = 0;
}  // namespace

// A program of its own: these global allocation functions count what each thread allocates.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pascaline::testing {
namespace {

class HotPathTest : public ::testing::Test {
 protected:
  static DispatcherOptions options() {
    DispatcherOptions options;
    options.cache = PASCALINE_TEST_CACHE;
    return options;
  }
  // `count` floats of their own.
  float* floats(int count) {
    float* taken = memory_ + used_;
    used_ += (count + 3) / 4 * 4;
    return taken;
  }
  // Launches once to prepare, then a hundred times.
  template <typename Launch>
  void expect_no_allocations(Launch launch) {
    launch();
    ASSERT_GT(allocations, 0) << "the counter must count";
    allocations = 0;
    for (int i = 0; i < 100; ++i) {
      launch();
    }
    EXPECT_EQ(allocations, 0);
    EXPECT_EQ(device_.launches, 101);
    EXPECT_EQ(device_.loads, 1);
  }

  FakeDevice device_;
  Dispatcher dispatcher_{device_, options()};
  alignas(16) float memory_[1024] = {};
  int used_ = 0;
};

TEST_F(HotPathTest, ASecondMatmulOfAShapeAllocatesNothing) {
  const TensorView a(floats(72), ElementType::float32, {9, 8});
  const TensorView b(floats(32), ElementType::float32, {4, 8});
  const TensorView c(floats(36), ElementType::float32, {9, 4});
  expect_no_allocations([&] { ops::run(dispatcher_, ops::Matmul{a, b, c}); });
}

TEST_F(HotPathTest, ASecondAttentionOfAShapeAllocatesNothing) {
  const ElementType type = ElementType::float32;
  const ops::AttentionDecode arguments{.q = {floats(32), type, {2, 16}},
                                       .k = {floats(64), type, {4, 1, 16}},
                                       .v = {floats(64), type, {4, 1, 16}},
                                       .length = {floats(1), ElementType::int32, {1}},
                                       .out = {floats(32), type, {2, 16}}};
  expect_no_allocations([&] { ops::run(dispatcher_, arguments); });
}

// With a watcher at work beside it, and states that change under it.
TEST_F(HotPathTest, LaunchingByTemperatureAllocatesNothingAndLoadsNothing) {
  const TemporaryFolder folder;
  write_scale_kernel(folder.path());
  DispatcherOptions own = options();
  own.kernels = own.spaces = folder.path();
  own.database = folder / "tuned.db";
  const Problem problem = scale_problem(8, 20);
  for (const auto& [objective, block] : {std::pair(Objective::time, 32), {Objective::sustained, 128}}) {
    Winner winner = scale_winner(problem, scale_config(block));
    winner.objective = objective;
    winner.device = device_row(device_.info());
    winner.kernel.source_hash = KernelSource::load(folder / "scale.cu").hash;
    Store store(*own.database, OpenMode::create);
    add_winner(store, winner);
  }
  own.thermal.policy.period_s = 1e-4;
  own.thermal.policy.thresholds = {.rise_s = 0, .fall_s = 0, .dwell_s = 0};
  own.thermal.sources.trace = SensorTrace::parse(R"({"repeat_s": 0.002, "steps": [
    {"at_s": 0, "temperature_c": 50, "temperature_limit_c": 83}, {"at_s": 0.001, "temperature_c": 82}]})",
                                                 "flapping");
  Dispatcher dispatcher(device_, own);
  const Prepared& prepared = dispatcher.prepare(problem);
  ASSERT_TRUE(dispatcher.watches());
  const int loads = device_.loads;
  const std::array<void*, 2> buffers{memory_, memory_};
  allocations = 0;
  int launches = 0;
  const ThermalReport* seen = nullptr;
  std::optional<ThermalReport> report;
  while (launches < 1'000'000'000 && seen == nullptr) {
    for (int i = 0; i < 100'000; ++i, ++launches) {
      dispatcher.launch(prepared, buffers);
    }
    EXPECT_EQ(allocations, 0);
    report = dispatcher.thermal();
    seen = report->launches[0] > 0 && report->launches[1] > 0 ? &*report : nullptr;
    allocations = 0;
  }
  ASSERT_NE(seen, nullptr) << "the state never changed";
  EXPECT_EQ(seen->launches[0] + seen->launches[1], static_cast<std::uint64_t>(launches));
  EXPECT_EQ(device_.loads, loads);
}

}  // namespace
}  // namespace pascaline::testing
