#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/util/hash.hpp"
#include "runtime/device/emulator/emulated_device.hpp"

namespace pascaline {
namespace {

constexpr const char* kText = R"(
extern "C" __global__ void barriers(float* data, int rounds) {
  for (int i = 0; i < rounds; ++i) __syncthreads();
  data[threadIdx.x] = rounds;
}
extern "C" __global__ void shuffles(float* data, int rounds) {
  float sum = threadIdx.x;
  for (int i = 0; i < rounds; ++i) sum = __shfl_xor_sync(0xffffffffu, sum, 1);
  data[threadIdx.x] = sum;
}
extern "C" __global__ void plain(float* data, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) % n;
  data[i] = data[i] * 2.0f + 1.0f;
}
)";

Kernel compile(Device& device, const std::string& function) {
  const KernelSource source{"emulator_bench.cu", kText, {}, hash_hex(kText)};
  CompileRequest request;
  request.source = &source;
  request.function = function;
  const CompileResult result = compile_for_emulator(HostCompiler::find(), request);
  if (!result.ok) {
    throw std::runtime_error(result.log);
  }
  return device.load(result.binary);
}

// One block, so one hardware thread: time of one round for one CUDA thread.
void time_rounds(benchmark::State& state, const std::string& function) {
  constexpr int kRounds = 1000;
  const auto device = open_emulated_device();
  const Kernel kernel = compile(*device, function);
  const Buffer data = device->allocate(1024 * sizeof(float));
  void* pointer = data.data();
  int rounds = kRounds;
  void* arguments[] = {&pointer, &rounds};
  const auto threads = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    device->launch(kernel, {{1, 1, 1}, {threads, 1, 1}, 0}, arguments);
  }
  device->synchronize();
  state.counters["per_thread_and_round"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kRounds * threads,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void barrier(benchmark::State& state) { time_rounds(state, "barriers"); }
void shuffle(benchmark::State& state) { time_rounds(state, "shuffles"); }

void thread_without_barriers(benchmark::State& state) {
  const auto device = open_emulated_device();
  const Kernel kernel = compile(*device, "plain");
  constexpr std::uint32_t kBlocks = 4096;
  const Buffer data = device->allocate(4096 * sizeof(float));
  device->fill(data, 0);
  void* pointer = data.data();
  int n = 4096;
  void* arguments[] = {&pointer, &n};
  const auto threads = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    device->launch(kernel, {{kBlocks, 1, 1}, {threads, 1, 1}, 0}, arguments);
  }
  device->synchronize();
  state.counters["per_thread"] = benchmark::Counter(static_cast<double>(state.iterations()) * kBlocks * threads,
                                                    benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(barrier)->Arg(32)->Arg(128)->Arg(256)->Arg(1024);
BENCHMARK(shuffle)->Arg(32)->Arg(256)->Arg(1024);
BENCHMARK(thread_without_barriers)->Arg(32)->Arg(256)->UseRealTime();

}  // namespace
}  // namespace pascaline

BENCHMARK_MAIN();
