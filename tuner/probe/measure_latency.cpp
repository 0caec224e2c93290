#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tuner/probe/probe_bench.hpp"

namespace pascaline {
namespace {

constexpr int kChaseSteps = 4096;
constexpr std::size_t kChaseStride = 256;  // bytes from one address to its neighbour: more than a line of any cache
constexpr std::size_t kChaseMiB = std::size_t{1} << 20;

// Latency of a kernel of one warp that does so many dependent steps in a round.
void measure_chain(ProbeBench& bench, ProbeQuantity quantity, const char* file, const char* function,
                   double steps_of_round) {
  ClockedKernel kernel(bench.device, bench.kernels.compile(file, function), 1, 32);
  const Buffer sums = zeros(bench.device, 16);
  void* sums_address = sums.data();
  int rounds = 64;
  float start = 1;  // of the chain of FFMA; that of loads has no such argument
  bench.add(bench.sampler.take(std::array{quantity}, [&]() -> std::vector<double> {
    const std::vector<void*> arguments{&sums_address, &kernel.spans, &kernel.places, &rounds, &start};
    return {kernel.run(arguments).clocks.longest / (steps_of_round * rounds)};
  }));
}

// Memory in which every place holds the address of another, in one circle through all of them in random order.
Buffer circle(Device& device, std::size_t bytes) {
  Buffer buffer = device.allocate(bytes);
  const std::size_t places = bytes / kChaseStride;
  std::vector<std::uint32_t> order(places);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 draw(1);
  std::shuffle(order.begin() + 1, order.end(), draw);
  constexpr std::size_t kWords = kChaseStride / sizeof(std::uint64_t);
  std::vector<std::uint64_t> words(places * kWords);
  const auto base = reinterpret_cast<std::uintptr_t>(buffer.data());
  for (std::size_t i = 0; i < places; ++i) {
    words[order[i] * kWords] = base + order[(i + 1) % places] * kChaseStride;
  }
  device.upload(buffer, std::as_bytes(std::span(words)).first(bytes));
  return buffer;
}

void measure_chase(ProbeBench& bench, ProbeQuantity quantity, std::size_t bytes, bool from_l2) {
  ClockedKernel kernel(bench.device, bench.kernels.compile("memory", "chase"), 1, 1);
  const Buffer links = circle(bench.device, bytes / kChaseStride * kChaseStride);
  const Buffer last = zeros(bench.device, 16);
  void* first_address = links.data();
  void* last_address = last.data();
  // Once around, so that all is in L2; or nothing of it, L2 being emptied before each launch.
  int warm = from_l2 ? static_cast<int>(bytes / kChaseStride) : 0;
  int steps = kChaseSteps;
  const std::vector<void*> arguments{&first_address, &last_address, &kernel.spans, &kernel.places, &warm, &steps};
  bench.add(bench.sampler.take(std::array{quantity}, [&]() -> std::vector<double> {
    return {kernel.run(arguments, !from_l2).clocks.longest / kChaseSteps};
  }));
}

}  // namespace

void measure_latency(ProbeBench& bench) {
  measure_chain(bench, ProbeQuantity::ffma_latency, "ffma", "ffma_latency", 256);
  measure_chain(bench, ProbeQuantity::shared_latency, "shared", "shared_latency", 64);
  const auto l2_bytes = static_cast<std::size_t>(bench.device.info().limits.l2_bytes);
  measure_chase(bench, ProbeQuantity::l2_latency, std::clamp(l2_bytes / 4, std::size_t{64} * 1024, kChaseMiB), true);
  const std::size_t bytes = std::max(64 * kChaseMiB, 4 * l2_bytes);
  if (bench.device.memory().state().free_bytes / 4 < bytes) {
    bench.leave_out(ProbePart::latency,
                    fmt::format("device memory: {} MiB are wanted, and four times as much is not free; close what uses "
                                "the device",
                                bytes / kChaseMiB));
    return;
  }
  measure_chase(bench, ProbeQuantity::memory_latency, bytes, false);
}

}  // namespace pascaline
