#include <fmt/format.h>

#include <array>

#include "tuner/probe/probe_bench.hpp"

namespace pascaline {
namespace {

constexpr std::uint32_t kRateThreads = 1024;
constexpr double kStepsOfRound = 256;  // multiply-adds of a thread
constexpr double kRateLaunchUs = 10'000;
constexpr double kClockLaunchUs = 50'000;
constexpr std::uint32_t kOneOfFloat = 0x3f800000;

enum class RateOf : std::uint8_t { ffma, dp4a };

/// ffma_rate or dp4a_rate: as many blocks as there are SMs, each with as many warps as hide any latency.
class RateKernel {
 public:
  RateKernel(ProbeBench& bench, RateOf rate)
      : kernel_(bench.device,
                rate == RateOf::ffma ? bench.kernels.compile("ffma", "ffma_rate")
                                     : bench.kernels.compile("dp4a", "dp4a_rate"),
                bench.sm_count(), kRateThreads),
        sums_(zeros(bench.device, 16)),
        sums_address_(sums_.data()),
        start_(rate == RateOf::ffma ? kOneOfFloat : 0U) {}

  [[nodiscard]] ClockedLaunch run(int rounds) {
    return kernel_.run({&sums_address_, &kernel_.spans, &kernel_.places, &rounds, &start_});
  }
  [[nodiscard]] int rounds_for_us(double us) {
    return rounds_for(us, [&](int rounds) { return run(rounds).us; });
  }

 private:
  ClockedKernel kernel_;
  Buffer sums_;
  void* sums_address_;
  std::uint32_t start_;  // bits of a float or an integer
};

// Per clock and SM, and 10^9 operations a second; an instruction of a thread being so many operations.
void measure_rate(ProbeBench& bench, RateOf rate, std::array<ProbeQuantity, 2> quantities, double operations) {
  RateKernel kernel(bench, rate);
  const int rounds = kernel.rounds_for_us(kRateLaunchUs);
  const double of_block = kRateThreads * kStepsOfRound * rounds;
  bench.add(bench.sampler.take(quantities, [&]() -> std::vector<double> {
    const ClockedLaunch launch = kernel.run(rounds);
    return {launch.clocks.blocks_per_clock * of_block, operations * of_block * bench.sm_count() / launch.us / 1e3};
  }));
}

}  // namespace

void measure_clock(ProbeBench& bench) {
  RateKernel kernel(bench, RateOf::ffma);
  // Longer than the rates, so that starting and ending it make no difference.
  const int rounds = kernel.rounds_for_us(kClockLaunchUs);
  constexpr std::array kQuantities{ProbeQuantity::sm_clock_mhz};
  bench.add(bench.sampler.take(kQuantities, [&]() -> std::vector<double> {
    const ClockedLaunch launch = kernel.run(rounds);
    return {launch.clocks.longest / launch.us};
  }));
}

void measure_arithmetic(ProbeBench& bench) {
  measure_rate(bench, RateOf::ffma, {ProbeQuantity::ffma_per_clock, ProbeQuantity::ffma_gflops}, 2);
  constexpr int kFirstWithDp4a = 61;
  if (bench.code_sm < kFirstWithDp4a) {
    bench.leave_out(ProbePart::arithmetic,
                    fmt::format("dp4a: code for {} has no such instruction", bench.kernels.target().architecture));
    return;
  }
  measure_rate(bench, RateOf::dp4a, {ProbeQuantity::dp4a_per_clock, ProbeQuantity::dp4a_gops}, 8);
}

}  // namespace pascaline
