#include <benchmark/benchmark.h>

#include "core/space/enumeration.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

// Items are candidates whose constraints were evaluated.
void enumerate_matmul(benchmark::State& state) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const Problem problem =
      space.problem({{"M", std::to_string(state.range(0))}, {"N", "2048"}, {"K", std::to_string(state.range(1))}});
  const BoundSpace bound(space, problem, *limits_of_architecture("sm_61"));
  Enumerator enumerator(bound);
  std::uint64_t considered = 0;
  std::uint64_t valid = 0;
  for (auto _ : state) {
    valid = enumerator.for_each([](std::span<const std::uint16_t> indices) {
      benchmark::DoNotOptimize(indices.data());
      return true;
    });
    considered += enumerator.considered();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(considered));
  state.counters["valid"] = static_cast<double>(valid);
  state.counters["raw"] = space.raw_size();
}
BENCHMARK(enumerate_matmul)->Args({1, 2048})->Args({512, 2048})->Args({2048, 6144})->Unit(benchmark::kMillisecond);

void ask_one(benchmark::State& state) {
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const BoundSpace bound(space, space.problem({{"M", "512"}, {"N", "2048"}, {"K", "2048"}}),
                         *limits_of_architecture("sm_61"));
  Enumerator enumerator(bound);
  const auto indices = space.indices_of(space.general_default());
  for (auto _ : state) {
    benchmark::DoNotOptimize(enumerator.valid(indices));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ask_one);

void parse_matmul(benchmark::State& state) {
  const std::string text = read_file(data_folder("search_spaces") / "matmul.json");
  for (auto _ : state) {
    benchmark::DoNotOptimize(Space::parse(text, "matmul.json"));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse_matmul)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pascaline
