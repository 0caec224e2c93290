#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "tuner/probe/probe_bench.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr double kFourBytes = 16;  // of four floats
constexpr std::uint32_t kSharedThreads = 1024;
constexpr double kSharedBytesOfRound = 32 * kFourBytes;
constexpr std::uint32_t kMemoryThreads = 512;
constexpr double kCachedBytesOfRound = 256 * kFourBytes;
constexpr double kMemoryLaunchUs = 5000;
constexpr std::uint32_t kBlocksOfSm = 8;        // of read and copy
constexpr std::uint32_t kCachedBlocksOfSm = 2;  // of cached_read

// Per clock and SM, and 10^9 bytes a second.
std::vector<double> bandwidth(const ClockedLaunch& launch, double bytes_of_block, double blocks) {
  return {launch.clocks.blocks_per_clock * bytes_of_block, bytes_of_block * blocks / launch.us / 1e3};
}

// Fours of floats that fill a quarter of L2, a power of two.
std::uint32_t cached_fours(const DeviceLimits& limits) {
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(limits.l2_bytes / 4, 64 * 1024));
  return static_cast<std::uint32_t>(std::bit_floor(bytes / 16));
}

// Bytes that are read, or copied from, so that caches do not matter: 16 times L2 and 256 MiB if there is room; on the
// emulator, little.
std::size_t memory_bytes(ProbeBench& bench) {
  if (bench.is_emulator()) {
    return 2 * kMiB;
  }
  const std::size_t wanted = std::max(256 * kMiB, 16 * static_cast<std::size_t>(bench.device.info().limits.l2_bytes));
  const std::size_t most = bench.device.memory().state().free_bytes / 4;
  return std::min(wanted, most) / 256 * 256;
}

Kernel load_memory_kernel(ProbeBench& bench, const char* function) {
  return bench.device.load(bench.kernels.compile("memory", function));
}

}  // namespace

void measure_shared(ProbeBench& bench) {
  const std::uint32_t blocks = bench.sm_count();
  ClockedKernel kernel(bench.device, bench.kernels.compile("shared", "shared_rate"), blocks, kSharedThreads);
  const Buffer sums = zeros(bench.device, 16);
  void* sums_address = sums.data();
  const auto run = [&](int rounds) { return kernel.run({&sums_address, &kernel.spans, &kernel.places, &rounds}); };
  const int rounds = rounds_for(kMemoryLaunchUs, [&](int count) { return run(count).us; });
  constexpr std::array kQuantities{ProbeQuantity::shared_bytes_per_clock, ProbeQuantity::shared_gbps};
  bench.add(bench.sampler.take(
      kQuantities, [&] { return bandwidth(run(rounds), kSharedThreads * kSharedBytesOfRound * rounds, blocks); }));
}

void measure_l2(ProbeBench& bench) {
  const std::uint32_t blocks = kCachedBlocksOfSm * bench.sm_count();
  ClockedKernel kernel(bench.device, bench.kernels.compile("memory", "cached_read"), blocks, kMemoryThreads);
  std::uint32_t fours = cached_fours(bench.device.info().limits);
  const Buffer values = zeros(bench.device, std::size_t{fours} * 16);
  const Buffer sums = zeros(bench.device, 16);
  void* from = values.data();
  void* sums_address = sums.data();
  const auto run = [&](int rounds) {
    return kernel.run({&from, &sums_address, &kernel.spans, &kernel.places, &rounds, &fours});
  };
  const int rounds = rounds_for(kMemoryLaunchUs, [&](int count) { return run(count).us; });
  constexpr std::array kQuantities{ProbeQuantity::l2_bytes_per_clock, ProbeQuantity::l2_gbps};
  bench.add(bench.sampler.take(
      kQuantities, [&] { return bandwidth(run(rounds), kMemoryThreads * kCachedBytesOfRound * rounds, blocks); }));
}

void measure_memory(ProbeBench& bench) {
  const std::size_t bytes = memory_bytes(bench);
  if (!bench.is_emulator() && bytes < 4 * static_cast<std::size_t>(bench.device.info().limits.l2_bytes)) {
    bench.leave_out(ProbePart::memory,
                    fmt::format("only {} MiB of the device's memory are free, which is too little beside its L2; close "
                                "what uses it",
                                bench.device.memory().state().free_bytes / kMiB));
    return;
  }
  const Buffer first = zeros(bench.device, bytes);
  const Buffer second = zeros(bench.device, bytes);
  const Buffer sums = zeros(bench.device, 16);
  void* from = first.data();
  void* to = second.data();
  void* sums_address = sums.data();
  auto fours = static_cast<long long>(bytes / 16);
  Geometry geometry;
  geometry.grid[0] = kBlocksOfSm * bench.sm_count();
  geometry.block[0] = kMemoryThreads;
  const Kernel read = load_memory_kernel(bench, "read");
  const Kernel copy = load_memory_kernel(bench, "copy");
  const auto gbps = [&](const Kernel& kernel, std::vector<void*> arguments, std::size_t moved) -> std::vector<double> {
    return {static_cast<double>(moved) / bench.device.time_launch_us(kernel, geometry, arguments, false) / 1e3};
  };
  constexpr std::array kRead{ProbeQuantity::read_gbps};
  constexpr std::array kCopied{ProbeQuantity::copy_gbps};
  bench.add(bench.sampler.take(kRead, [&] { return gbps(read, {&from, &sums_address, &fours}, bytes); }));
  bench.add(bench.sampler.take(kCopied, [&] { return gbps(copy, {&from, &to, &fours}, 2 * bytes); }));
}

}  // namespace pascaline
