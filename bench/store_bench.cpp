#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "db/store.hpp"

// Cost of the store beside a trial, which takes about a second to compile and some hundred milliseconds to time.
// $TMPDIR decides which disk is measured.

namespace pascaline {
namespace {

constexpr int kSamples = 30;

Trial make_trial(std::int64_t number) {
  Trial trial;
  trial.problem = {"matmul", {{"M", 512}, {"N", 2048}, {"K", 2048}}, {{"STORAGE", ElementType::float32}}};
  trial.config = Config({{"BLOCK_M", std::int64_t{64}},
                         {"BLOCK_N", std::int64_t{128}},
                         {"BLOCK_K", std::int64_t{8}},
                         {"DOUBLE_BUFFER", true},
                         {"MAX_REGISTERS", std::int64_t{128}},
                         {"NUMBER", number}});
  trial.binary_hash = std::string(32, 'a');
  trial.time = TimeSummary{100, 99, 101, kSamples};
  for (int i = 0; i < kSamples; ++i) {
    trial.samples.push_back({100.0 + i, SampleMark::none, 60.0, 1900.0, 180.0});
  }
  return trial;
}

// A database in a temporary folder with a session begun.
struct Fixture {
  explicit Fixture(Durability durability)
      : folder(std::filesystem::temp_directory_path() / ("pascaline-bench-" + std::to_string(::getpid()))),
        store(folder / "tuned.db", OpenMode::create, durability) {
    context.device = store.device_id({"cuda", "bench", "6.1", 28, 0, "{}"});
    context.toolkit = store.toolkit_id({"nvrtc", "12.9", "sm_61", "12.9"});
    context.kernel = store.kernel_id({"matmul", "hash"});
    context.space = store.space_id("matmul", "hash", "{}");
    context.problem = store.problem_id(make_trial(0).problem, 1, 1);
    SessionRow row;
    session = store.begin_session(row, context.device, context.toolkit);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::filesystem::path folder;
  Store store;
  ContextIds context;
  std::int64_t session = 0;
};

void add_trial(benchmark::State& state, Durability durability) {
  Fixture fixture(durability);
  std::int64_t number = 0;
  for (auto _ : state) {
    fixture.store.add_trial(fixture.session, fixture.context, make_trial(number++));
  }
}
BENCHMARK_CAPTURE(add_trial, full, Durability::full)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(add_trial, normal, Durability::normal)->Unit(benchmark::kMicrosecond)->UseRealTime();

void attempt_and_trial(benchmark::State& state) {
  Fixture fixture(Durability::full);
  std::int64_t number = 0;
  for (auto _ : state) {
    const Trial trial = make_trial(number++);
    fixture.store.begin_attempt(fixture.session, fixture.context, trial.config);
    fixture.store.add_trial(fixture.session, fixture.context, trial);
  }
}
BENCHMARK(attempt_and_trial)->Unit(benchmark::kMicrosecond)->UseRealTime();

void fill(Fixture& fixture, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    fixture.store.add_trial(fixture.session, fixture.context, make_trial(i));
  }
}

void known_trials(benchmark::State& state) {
  Fixture fixture(Durability::normal);
  fill(fixture, state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(fixture.store.known_trials(fixture.context));
  }
}
BENCHMARK(known_trials)->Arg(10'000)->Unit(benchmark::kMillisecond);

void all_trials(benchmark::State& state) {
  Fixture fixture(Durability::normal);
  fill(fixture, state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(fixture.store.trials({}));
  }
}
BENCHMARK(all_trials)->Arg(10'000)->Unit(benchmark::kMillisecond);

// With the look for damage (write) and without it (read).
void open_store(benchmark::State& state, OpenMode mode) {
  Fixture fixture(Durability::normal);
  fill(fixture, state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Store(fixture.store.file(), mode));
  }
}
BENCHMARK_CAPTURE(open_store, read, OpenMode::read_only)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(open_store, write, OpenMode::read_write)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pascaline
