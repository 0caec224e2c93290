#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "core/error.hpp"
#include "runtime/device/sm61/kernel_code.hpp"
#include "tuner/probe/conflict_chains.hpp"
#include "tuner/probe/probe_bench.hpp"

namespace pascaline {
namespace {

using ChainClock = std::chrono::steady_clock;

constexpr std::size_t kMaxChains = 24;
constexpr std::uint32_t kChainThreads = 512;
constexpr double kWarpsOfBlock = kChainThreads / 32.0;
constexpr double kChainLaunchUs = 2000;
constexpr int kFewestPasses = 5;
constexpr int kMaxPasses = 50;
constexpr double kShareOfTime = 6;  // as many times what another quantity has
constexpr double kSteadyInterval = 0.2;

/// A chain on the device.
class TimedChain {
 public:
  TimedChain(ProbeBench& bench, ConflictChain chain)
      : chain_(std::move(chain)),
        kernel_(bench.device, chain_.binary, bench.sm_count(), kChainThreads),
        operands_(zeros(bench.device, 48 * sizeof(float))),
        sums_(zeros(bench.device, 16 * sizeof(float))),
        operands_address_(operands_.data()),
        sums_address_(sums_.data()) {}

  [[nodiscard]] ClockedLaunch run(int rounds) {
    return kernel_.run({&operands_address_, &sums_address_, &kernel_.spans, &kernel_.places, &rounds});
  }
  /// Clocks of a scheduler for each FFMA of a warp.
  [[nodiscard]] double slots(int rounds, double schedulers) {
    const double ffma_of_block = kWarpsOfBlock * chain_.ffma * rounds;
    return schedulers / (run(rounds).clocks.blocks_per_clock * ffma_of_block);
  }
  [[nodiscard]] const ConflictChain& chain() const noexcept { return chain_; }

 private:
  ConflictChain chain_;
  ClockedKernel kernel_;
  Buffer operands_;
  Buffer sums_;
  void* operands_address_;
  void* sums_address_;
};

std::vector<TimedChain> load_chains(ProbeBench& bench) {
  std::vector<ConflictChain> chains;
  for (const std::vector<std::string>& defines : conflict_variants()) {
    bench.sampler.look();
    chains.push_back(read_chain(fmt::format("{}", fmt::join(defines, " ")),
                                bench.kernels.compile("bank_conflicts", "bank_conflicts", defines)));
  }
  std::vector<TimedChain> loaded;
  for (ConflictChain& chain : choose_chains(std::move(chains), kMaxChains)) {
    loaded.emplace_back(bench, std::move(chain));
  }
  return loaded;
}

// All chains in turn, again and again, so that what the card does meanwhile concerns all alike.
std::vector<std::vector<double>> time_chains(ProbeBench& bench, std::vector<TimedChain>& chains) {
  std::vector<std::vector<double>> slots(chains.size());
  const int rounds = rounds_for(kChainLaunchUs, [&](int count) { return chains.front().run(count).us; });
  const auto begin = ChainClock::now();
  const auto spent = [&] { return std::chrono::duration<double>(ChainClock::now() - begin).count(); };
  const double seconds = kShareOfTime * bench.sampler.seconds_each();
  for (int pass = -1; pass < kMaxPasses && (pass < kFewestPasses || spent() < seconds); ++pass) {
    bench.sampler.look();
    for (std::size_t i = 0; i < chains.size(); ++i) {
      const double value = chains[i].slots(rounds, bench.schedulers);
      if (pass >= 0) {  // the first warms up
        slots[i].push_back(value);
      }
    }
  }
  return slots;
}

// Why the part is left out, empty if it is not.
std::string why_not(const ProbeBench& bench) {
  if (!sm61::reads_architecture(bench.sm)) {
    return fmt::format("machine code of sm_50 to sm_62 is read, this device is {}, whose registers lie in other banks",
                       bench.device.info().architecture);
  }
  if (bench.kernels.target().kind != BinaryKind::cubin) {
    return fmt::format(
        "with code for {} it is the driver that makes the machine code of this {}, which is then not "
        "known; leave --target out",
        bench.kernels.target().architecture, bench.device.info().architecture);
  }
  return {};
}

}  // namespace

void measure_conflicts(ProbeBench& bench) {
  if (const std::string why = why_not(bench); !why.empty()) {
    bench.leave_out(ProbePart::conflicts, why);
    return;
  }
  std::vector<TimedChain> chains = load_chains(bench);
  if (chains.empty()) {
    bench.leave_out(ProbePart::conflicts, "no two of the compiled loops differ by their conflicts alone");
    return;
  }
  const std::vector<std::vector<double>> slots = time_chains(bench, chains);
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const ProbeValue value = probe_value(ProbeQuantity::conflict_slots, slots[i]);
    bench.probe.chains.push_back(
        {chains[i].chain().variant, chains[i].chain().conflicts, value.median, value.low, value.high, value.samples});
  }
  const std::optional<LinearFit> fit = fit_conflicts(bench.probe.chains);
  if (!fit) {
    bench.leave_out(ProbePart::conflicts, "the compiled loops differ too little by their conflicts");
    return;
  }
  ProbeValue cost;
  cost.quantity = ProbeQuantity::conflict_slots;
  cost.median = fit->slope;
  cost.low = fit->low;
  cost.high = fit->high;
  cost.samples = static_cast<int>(chains.size());
  cost.steady = fit->high - fit->low <= kSteadyInterval;
  bench.add({cost});
}

}  // namespace pascaline
