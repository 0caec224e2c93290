#include <benchmark/benchmark.h>

#include <vector>

#include "core/space/expression.hpp"

namespace pascaline {
namespace {

// A short and a long constraint of a real search space.
constexpr const char* kTexts[] = {
    "BLOCK_K % VECTOR == 0",
    "MIN_BLOCKS * (BLOCK_M / THREAD_M) * (BLOCK_N / THREAD_N) * (THREAD_M * THREAD_N + THREAD_M + THREAD_N + 16) <= "
    "device_max_registers_per_sm",
};

Symbols symbols() {
  Symbols symbols;
  for (const char* name : {"BLOCK_M", "BLOCK_N", "BLOCK_K", "THREAD_M", "THREAD_N", "VECTOR", "MIN_BLOCKS",
                           "device_max_registers_per_sm"}) {
    symbols.add(name);
  }
  return symbols;
}

const std::vector<std::int64_t> kSlots{128, 128, 8, 8, 8, 4, 2, 65536};

void evaluate(benchmark::State& state) {
  const Expression expression = Expression::parse(kTexts[state.range(0)], symbols());
  std::vector<std::int64_t> slots = kSlots;
  for (auto _ : state) {
    benchmark::DoNotOptimize(slots.data());
    benchmark::DoNotOptimize(expression.try_evaluate(slots));
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(expression.text());
}
BENCHMARK(evaluate)->Arg(0)->Arg(1);

void parse(benchmark::State& state) {
  const Symbols known = symbols();
  for (auto _ : state) {
    benchmark::DoNotOptimize(Expression::parse(kTexts[state.range(0)], known));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(parse)->Arg(0)->Arg(1);

}  // namespace
}  // namespace pascaline
