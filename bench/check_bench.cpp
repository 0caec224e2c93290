#include <benchmark/benchmark.h>

#include <cstddef>
#include <span>
#include <vector>

#include "core/elements.hpp"
#include "core/error_bound.hpp"
#include "runtime/device/cuda/cuda_device.hpp"
#include "runtime/device/device.hpp"
#include "tuner/measure/readback.hpp"

// What it takes to compare a kernel's results, float32 in a device's memory, with what they must be: read back into new
// memory, brought to float64 and compared (`whole`), or in pieces as a sweep does it (`in_pieces`); on a GPU where
// there is one, and on the emulated device. `there` leaves it to the GPU. The argument is the number of results.

namespace pascaline {
namespace {

constexpr const char* kSpace = R"json({
  "schema": 1,
  "kernel": "copy",
  "description": "y = x",
  "dimensions": [{"name": "N", "minimum": 1}],
  "types": [{"name": "STORAGE", "values": ["float32"]}],
  "parameters": [{"name": "BLOCK", "values": [128], "default": 128, "description": "threads a block"}],
  "launch": {"function": "copy", "block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
  "arguments": [
    {"name": "x", "buffer": "STORAGE", "access": "in", "extent": "N"},
    {"name": "y", "buffer": "STORAGE", "access": "out", "extent": "N"}
  ],
  "reference": {"host": "copy"},
  "tolerance": {"float32": 1e-6},
  "work": {"flops": "0", "bytes": "2 * N * sizeof(STORAGE)"}
})json";

/// Results in a device's memory that are what they must be, to rounding.
struct Results {
  explicit Results(Device& device, std::size_t count)
      : space(Space::parse(kSpace, "copy.json")),
        bound(space, space.problem({{"N", std::to_string(count)}}), DeviceLimits()),
        bytes(draw_elements(ElementType::float32, count, Fill::uniform, -1, 1, 1)),
        expected(widen(ElementType::float32, bytes)),
        errors(bound, ElementType::float32, expected),
        buffer(device.allocate(bytes.size())) {
    device.upload(buffer, bytes);
  }
  Space space;
  BoundSpace bound;
  std::vector<std::byte> bytes;
  std::vector<double> expected;
  ErrorBound errors;
  Buffer buffer;
};

void compare_whole(benchmark::State& state, Device& device) {
  const Results results(device, static_cast<std::size_t>(state.range()));
  for (auto _ : state) {
    std::vector<std::byte> bytes(results.buffer.bytes());
    device.download(bytes, results.buffer);
    benchmark::DoNotOptimize(results.errors.compare(widen(ElementType::float32, bytes), results.expected));
  }
}

void compare_in_pieces(benchmark::State& state, Device& device) {
  const Results results(device, static_cast<std::size_t>(state.range()));
  Readback readback(device);
  for (auto _ : state) {
    ErrorBound::Verdict worst;
    readback.read(results.buffer, [&](std::span<const std::byte> piece, std::size_t offset) {
      worst.keep_worse(results.errors.compare(ElementType::float32, piece, results.expected, offset / sizeof(float)));
    });
    benchmark::DoNotOptimize(worst);
  }
}

void compare_there(benchmark::State& state, Device& device) {
  const Results results(device, static_cast<std::size_t>(state.range()));
  const Buffer expected = device.allocate(results.expected.size() * sizeof(double));
  device.upload(expected, std::as_bytes(std::span(results.expected)));
  const ElementLimits limits = *results.errors.limits();
  for (auto _ : state) {
    benchmark::DoNotOptimize(device.largest_error(results.buffer, ElementType::float32, expected, limits));
  }
}

template <void (*Compare)(benchmark::State&, Device&)>
void on_gpu(benchmark::State& state) {
  std::string note;
  if (list_cuda_devices(&note).empty()) {
    state.SkipWithError(note.c_str());
    return;
  }
  Compare(state, *open_device("cuda:0"));
}
template <void (*Compare)(benchmark::State&, Device&)>
void on_emulator(benchmark::State& state) {
  Compare(state, *open_device("emulator"));
}

constexpr int kSmall = 1 << 12;
constexpr int kMedium = 1 << 20;
constexpr int kLarge = 1 << 24;

BENCHMARK(on_emulator<compare_whole>)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge)->UseRealTime();
BENCHMARK(on_emulator<compare_in_pieces>)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge)->UseRealTime();
BENCHMARK(on_gpu<compare_whole>)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge)->UseRealTime();
BENCHMARK(on_gpu<compare_in_pieces>)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge)->UseRealTime();
BENCHMARK(on_gpu<compare_there>)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge)->UseRealTime();

}  // namespace
}  // namespace pascaline
