#include <benchmark/benchmark.h>

#include <array>
#include <filesystem>
#include <vector>

#include "core/util/paths.hpp"
#include "runtime/dispatch/identity.hpp"
#include "runtime/dispatch/planner.hpp"
#include "runtime/dispatch/prepared_table.hpp"
#include "runtime/ops/launch.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kProblems = 1000;

// Shapes as a language model has them: a few weights, many numbers of tokens.
std::array<std::int64_t, 3> shape(std::int64_t i) { return {1 + i / 4, 2048 + 1024 * (i % 4), 2048}; }

Problem problem(std::int64_t i) {
  const auto [m, n, k] = shape(i);
  return {"matmul", {{"M", m}, {"N", n}, {"K", k}}, {{"STORAGE", ElementType::float32}}};
}

// Dispatcher::find is this table's find.
void find_exact(benchmark::State& state) {
  const std::array<ElementType, 1> types{ElementType::float32};
  std::vector<Prepared> entries(kProblems);
  PreparedTable table;
  for (std::int64_t i = 0; i < kProblems; ++i) {
    const auto dimensions = shape(i);
    entries[i].key = {KernelHandle{0}, {dimensions.begin(), dimensions.end()}, {types.begin(), types.end()}};
    table.publish(entries[i]);
  }
  std::int64_t i = 0;
  for (auto _ : state) {
    i = (i + 37) % kProblems;
    const auto dimensions = shape(i);
    benchmark::DoNotOptimize(table.find(KernelHandle{0}, dimensions, types));
  }
}
BENCHMARK(find_exact);

// An operation on a problem that is prepared, on a device whose launches do nothing: all but the driver's part.
void launch_matmul(benchmark::State& state) {
  testing::FakeDevice device;
  Dispatcher dispatcher(device, {});
  const Buffer a = device.allocate(4 * 64 * 64);
  const Buffer b = device.allocate(4 * 64 * 64);
  const Buffer c = device.allocate(4 * 64 * 64);
  const auto view = [](const Buffer& buffer) { return TensorView(buffer.data(), ElementType::float32, {64, 64}); };
  const TensorView first = view(a);
  const TensorView second = view(b);
  const TensorView product = view(c);
  for (auto _ : state) {
    ops::run(dispatcher, ops::Matmul{first, second, product});
  }
}
BENCHMARK(launch_matmul);

// The same without the operation's checks of its tensors: what dispatching costs.
void dispatch_matmul(benchmark::State& state) {
  testing::FakeDevice device;
  Dispatcher dispatcher(device, {});
  const ops::KernelProblem problem(
      "matmul", {{"M", 64}, {"N", 64}, {"K", 64}, {"EPILOGUE", 0}, {"NORM", 0}, {"HEAD_DIM", 0}, {"POSITIONS", 0}},
      {{"STORAGE", ElementType::float32}, {"WEIGHT", ElementType::float32}});
  const Buffer buffer = device.allocate(4 * 64 * 64);
  void* const buffers[] = {buffer.data(), buffer.data(), nullptr, nullptr, buffer.data(), nullptr,
                           nullptr,       nullptr,       nullptr, nullptr, nullptr};
  for (auto _ : state) {
    ops::launch(dispatcher, problem, buffers);
  }
}
BENCHMARK(dispatch_matmul);

// A device with sensors, as a card has them.
class WarmDevice : public testing::FakeDevice {
 public:
  [[nodiscard]] Sensors read_sensors() noexcept override {
    Sensors sensors;
    sensors.temperature_c = 60;
    sensors.temperature_limit_c = 83;
    sensors.throttle_reasons = 0;
    return sensors;
  }
};

// Launching a problem with winners by time and by sustained time: with 0 the temperature is left alone, with 1 a thread
// watches it.
void launch_by_temperature(benchmark::State& state) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "pascaline-dispatcher-bench";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  testing::write_scale_kernel(folder);
  WarmDevice device;
  const Problem problem = testing::scale_problem(64, 20);
  for (const auto& [objective, block] : {std::pair(Objective::time, 32), {Objective::sustained, 128}}) {
    Winner winner = testing::scale_winner(problem, testing::scale_config(block));
    winner.objective = objective;
    winner.device = device_row(device.info());
    winner.kernel.source_hash = KernelSource::load(folder / "scale.cu").hash;
    Store store(folder / "tuned.db", OpenMode::create);
    testing::add_winner(store, winner);
  }
  DispatcherOptions options;
  options.kernels = options.spaces = folder;
  options.database = folder / "tuned.db";
  options.thermal.enabled = state.range(0) == 1;
  Dispatcher dispatcher(device, options);
  const Prepared& prepared = dispatcher.prepare(problem);
  if (dispatcher.watches() != (state.range(0) == 1)) {
    state.SkipWithError("it is not watched as it should be");
  }
  const Buffer buffer = device.allocate(4 * 64 * 20);
  void* const buffers[] = {buffer.data(), buffer.data()};
  for (auto _ : state) {
    dispatcher.launch(prepared, buffers);
  }
}
BENCHMARK(launch_by_temperature)->Arg(0)->Arg(1);

// Planning a shape between the tuned ones, without compiling.
void plan_nearest(benchmark::State& state) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const Config config = space.general_default();
  const ToolkitRow toolkit{"nvrtc", "12.9", "sm_61", "12.9"};
  KernelSource source;
  source.hash = "source";
  std::vector<Winner> winners(kProblems);
  for (std::int64_t i = 0; i < kProblems; ++i) {
    Winner& winner = winners[i];
    winner.trial.problem = problem(i);
    winner.trial.config = config;
    winner.trial.time = TimeSummary{10, 9, 11, 30};
    winner.kernel = {"matmul", source.hash};
    winner.toolkit = toolkit;
  }
  const TunedKernel kernel = make_tuned_kernel(space, source, std::move(winners), {toolkit});
  Problem asked = problem(500);
  asked.dimensions[2].second = 2047;
  const DeviceLimits limits;
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_plan(kernel, {toolkit}, BoundSpace(kernel.space, asked, limits)));
  }
}
BENCHMARK(plan_nearest)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pascaline
