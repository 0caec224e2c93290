#include "tuner/static_model/code_estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/sm61/heaviest_path.hpp"
#include "tuner/static_model/loop_trips.hpp"

namespace pascaline {
namespace {

constexpr double kLanes = 32;  // of a warp

/// Clocks of an SM for a number of resident blocks, from beginning to end.
struct BlockClocks {
  double loops = 0;
  double outside = 0;
  sm61::LoopTime hottest;
};

class Player {
 public:
  Player(const sm61::KernelCode& kernel, const LaunchWork& work, std::vector<CountedLoop> loops,
         const sm61::SmRates& rates, PlayedLoops& played)
      : kernel_(kernel),
        played_(played),
        loops_(std::move(loops)),
        rates_(rates),
        warps_(static_cast<std::uint32_t>(std::ceil(work.threads / kLanes))) {}

  [[nodiscard]] BlockClocks play(int blocks) const {
    const sm61::ResidentWarps warps{static_cast<std::uint32_t>(blocks), warps_};
    BlockClocks clocks;
    for (const CountedLoop& counted : loops_) {
      const sm61::LoopTime time = played_.of_loop(kernel_, counted.loop, warps, rates_);
      if (&counted == &loops_.front()) {
        clocks.hottest = time;
      }
      clocks.loops += counted.trips * (counted.own_only ? own_clocks(counted, time.clocks, warps) : time.clocks);
    }
    clocks.outside = played_.outside_loops(kernel_, warps, rates_).clocks + other_loops(warps.blocks);
    return clocks;
  }

 private:
  [[nodiscard]] double issued(const sm61::IssueCost& cost, std::uint32_t blocks) const {
    constexpr double kSchedulers = 4;
    return (cost.issue_slots() - cost.bank_conflicts * (1 - rates_.conflict)) * warps_ * blocks / kSchedulers;
  }
  // Of a loop without those inside it, at least the clocks that issuing takes.
  [[nodiscard]] double own_clocks(const CountedLoop& counted, double clocks, const sm61::ResidentWarps& warps) const {
    for (const std::size_t inside : loops_on(kernel_, sm61::heaviest_path(kernel_, counted.loop))) {
      if (parent_of(kernel_, inside) == counted.loop) {
        clocks -= played_.of_loop(kernel_, inside, warps, rates_).clocks;
      }
    }
    return std::max(clocks, issued(counted.cost, warps.blocks));
  }
  // Loops on the heaviest path of which nothing is known run once.
  [[nodiscard]] double other_loops(std::uint32_t blocks) const {
    double clocks = 0;
    for (const std::size_t loop : loops_on(kernel_, sm61::heaviest_path(kernel_, std::nullopt))) {
      const sm61::Block& header = kernel_.flow.blocks[kernel_.flow.loops[loop].header];
      const bool is_counted = std::any_of(loops_.begin(), loops_.end(), [&](const CountedLoop& counted) {
        return counted.own_only ? counted.loop == loop : sm61::is_within(kernel_.flow, header, counted.loop);
      });
      clocks += is_counted ? 0 : issued(kernel_.costs[loop].own, blocks);
    }
    return clocks;
  }

  const sm61::KernelCode& kernel_;
  PlayedLoops& played_;
  std::vector<CountedLoop> loops_;
  sm61::SmRates rates_;
  std::uint32_t warps_;
};

LaunchLimit limit_of_loop(const sm61::LoopTime& time) {
  constexpr double kNearlyAll = 0.85;
  if (time.share(sm61::SlotUse::issued) >= kNearlyAll) {
    return LaunchLimit::issue;
  }
  switch (time.limit()) {
    case sm61::SlotUse::issued:
      return LaunchLimit::issue;
    case sm61::SlotUse::conflict:
      return LaunchLimit::conflicts;
    case sm61::SlotUse::pipe:
      if (time.busy_shared + time.busy_global < 0.5 * time.share(sm61::SlotUse::pipe)) {
        return LaunchLimit::other_units;
      }
      return time.busy_shared >= time.busy_global ? LaunchLimit::shared_memory : LaunchLimit::global_memory;
    case sm61::SlotUse::shared_memory:
      return LaunchLimit::shared_memory;
    case sm61::SlotUse::global_memory:
      return LaunchLimit::global_memory;
    case sm61::SlotUse::barrier:
      return LaunchLimit::other_warps;
    case sm61::SlotUse::latency:
      break;
  }
  return LaunchLimit::latency;
}

/// How the blocks of a launch share the SMs.
struct Waves {
  double whole = 0;  // with every SM full
  int resident = 1;
  int last = 0;  // blocks of an SM in the last wave, 0 if it is full
  double blocks = 1;
  double sms = 1;
  double imbalance = 1;  // of a single wave; several even out
};

Waves waves_of(const LaunchWork& work, int resident, const DeviceRates& rates) {
  Waves waves;
  waves.resident = resident;
  waves.blocks = work.blocks;
  waves.sms = static_cast<double>(std::max<std::int64_t>(1, rates.limits.sm_count));
  waves.whole = std::floor(work.blocks / (resident * waves.sms));
  waves.last = static_cast<int>(std::ceil((work.blocks - waves.whole * resident * waves.sms) / waves.sms));
  waves.imbalance = waves.whole > 0 ? 1 : work.imbalance;
  return waves;
}

CodeTime time_at(const Player& player, const Waves& waves, const DeviceRates& rates, double memory_us) {
  const BlockClocks full = waves.whole > 0 ? player.play(waves.resident) : BlockClocks{};
  const BlockClocks last = waves.last == 0                                   ? BlockClocks{}
                           : waves.last == waves.resident && waves.whole > 0 ? full
                                                                             : player.play(waves.last);
  const BlockClocks& main = waves.whole > 0 ? full : last;
  const double us = 1 / rates.clock_mhz;
  CodeTime time;
  time.loops_us = (waves.whole * full.loops + last.loops * waves.imbalance) * us;
  time.outside_us = (waves.whole * full.outside + last.outside) * us;
  const double starting_us = (waves.whole + (waves.last > 0 ? 1 : 0)) * rates.block_start_latency * us;
  const double busy_us = time.loops_us + time.outside_us;
  time.time_us = rates.launch_us + std::hypot(busy_us + starting_us, memory_us);
  time.arithmetic = main.hottest.arithmetic;
  // The time if the blocks were spread over all SMs as densely as in a full wave.
  const double full_loops = waves.whole > 0 ? full.loops : player.play(waves.resident).loops;
  const double dense_us = waves.blocks / (waves.sms * waves.resident) * full_loops * us;
  if (rates.launch_us + starting_us > 0.5 * time.time_us) {
    time.limit = LaunchLimit::launch;
  } else if (memory_us > busy_us) {
    time.limit = LaunchLimit::device_memory;
  } else if (time.outside_us > time.loops_us) {
    time.limit = LaunchLimit::outside;
  } else if (dense_us < 0.67 * time.loops_us) {
    time.limit = LaunchLimit::few_blocks;
  } else {
    time.limit = limit_of_loop(main.hottest);
  }
  return time;
}

double shared_bytes_of(const sm61::IssueCost& cost) {
  const sm61::Accesses& shared = cost.of(sm61::Space::shared);
  return static_cast<double>(shared.loaded_bytes + shared.stored_bytes);
}

// Bytes of shared memory's bandwidth that the loops use by the space, over those that their instructions name: less
// where lanes share words, more with bank conflicts. Nothing if the space does not tell.
std::optional<double> shared_ratio(const LaunchWork& work, const std::vector<CountedLoop>& loops) {
  double issued = 0;
  for (const CountedLoop& counted : loops) {
    issued += counted.trips * shared_bytes_of(counted.cost) * work.grid_threads;
  }
  return work.shared_bytes && issued > 0 ? std::optional(*work.shared_bytes / issued) : std::nullopt;
}

sm61::SmRates with_sharing(sm61::SmRates rates, std::optional<double> ratio, double otherwise) {
  rates.wide_loads = std::clamp(ratio.value_or(otherwise), 0.5, 1.0);
  rates.shared_bytes /= std::clamp(ratio.value_or(1), 1.0, 32.0);
  return rates;
}

}  // namespace

std::string_view name_of(LaunchLimit limit) noexcept {
  static constexpr std::array<std::string_view, 11> kNames{
      "issue",       "bank conflicts",     "shared memory",         "global memory", "other units",
      "other warps", "arithmetic latency", "code outside the loop", "few blocks",    "device memory",
      "launch"};
  return kNames[static_cast<std::size_t>(limit)];
}

std::string_view name_of(ResidencyLimit limit) noexcept {
  static constexpr std::array<std::string_view, 4> kNames{"registers", "shared memory", "registers and shared memory",
                                                          "threads and blocks"};
  return kNames[static_cast<std::size_t>(limit)];
}

ResidencyLimit residency_limit(const DeviceLimits& limits, int threads, int registers,
                               std::int64_t shared_bytes) noexcept {
  const int blocks = resident_blocks(limits, threads, registers, shared_bytes);
  if (resident_blocks(limits, threads, 0, 0) == blocks) {
    return ResidencyLimit::threads;
  }
  const bool by_registers = resident_blocks(limits, threads, registers, 0) == blocks;
  const bool by_shared = resident_blocks(limits, threads, 0, shared_bytes) == blocks;
  return by_registers && by_shared ? ResidencyLimit::both
         : by_registers            ? ResidencyLimit::registers
                                   : ResidencyLimit::shared_memory;
}

double CodeEstimate::time_us() const noexcept { return std::sqrt(least.time_us * most.time_us); }

PlayedLoops::Key PlayedLoops::key_of(std::int64_t loop, sm61::ResidentWarps warps, const sm61::SmRates& rates) {
  const auto rounded = [](double value) { return static_cast<std::int64_t>(std::llround(value * 1e6)); };
  return {loop,
          warps.blocks,
          warps.warps_per_block,
          rounded(rates.conflict),
          rounded(rates.shared_bytes),
          rounded(rates.wide_loads),
          rounded(rates.global_bytes),
          rounded(rates.shared_latency),
          rounded(rates.global_latency),
          rounded(rates.unit_latency),
          rounded(rates.read_latency)};
}

const sm61::LoopTime& PlayedLoops::of_loop(const sm61::KernelCode& kernel, std::size_t loop, sm61::ResidentWarps warps,
                                           const sm61::SmRates& rates) {
  const Key key = key_of(static_cast<std::int64_t>(loop), warps, rates);
  const auto found = played_.find(key);
  return found != played_.end() ? found->second
                                : played_.emplace(key, sm61::time_of_loop(kernel, loop, warps, rates)).first->second;
}

const sm61::LoopTime& PlayedLoops::outside_loops(const sm61::KernelCode& kernel, sm61::ResidentWarps warps,
                                                 const sm61::SmRates& rates) {
  const Key key = key_of(-1, warps, rates);
  const auto found = played_.find(key);
  return found != played_.end() ? found->second
                                : played_.emplace(key, sm61::time_outside_loops(kernel, warps, rates)).first->second;
}

std::optional<CodeEstimate> estimate_from_code(const sm61::KernelCode& kernel, const LaunchWork& work,
                                               const DeviceRates& rates, const sm61::SmRates& sm_rates) {
  PlayedLoops played;
  return estimate_from_code(kernel, work, rates, sm_rates, played);
}

std::optional<CodeEstimate> estimate_from_code(const sm61::KernelCode& kernel, const LaunchWork& work,
                                               const DeviceRates& rates, const sm61::SmRates& sm_rates,
                                               PlayedLoops& played) {
  const std::int64_t shared_bytes = std::int64_t{kernel.shared_bytes} + work.dynamic_shared_bytes;
  CodeEstimate out;
  out.resident_blocks = resident_blocks(rates.limits, work.threads, kernel.registers, shared_bytes);
  std::vector<CountedLoop> loops;
  if (kernel.hottest) {
    loops = counted_loops(kernel, work);
  }
  if (out.resident_blocks == 0 || (kernel.hottest && loops.empty())) {
    return std::nullopt;
  }
  out.residency = residency_limit(rates.limits, work.threads, kernel.registers, shared_bytes);
  out.trips = loops.empty() ? 0 : loops.front().trips;
  out.memory_us = work.compulsory_bytes / (rates.memory_gbps * 1e3);
  const Waves waves = waves_of(work, out.resident_blocks, rates);
  out.waves = work.blocks / (out.resident_blocks * waves.sms);
  const std::optional<double> told = shared_ratio(work, loops);
  const auto at_end = [&](double conflict, double wide_loads) {
    sm61::SmRates end = with_sharing(sm_rates, told, wide_loads);
    end.conflict = sm_rates.measured_conflict ? sm_rates.conflict : conflict;
    return time_at(Player(kernel, work, loops, end, played), waves, rates, out.memory_us);
  };
  const CodeTime one = at_end(0, 0.5);
  const CodeTime other = at_end(1, 1);
  // Played warps meet differently at either end, so that rounding may turn them round.
  out.least = one.time_us <= other.time_us ? one : other;
  out.most = one.time_us <= other.time_us ? other : one;
  if (sm_rates.measured_conflict) {
    out.measured_conflict = sm_rates.conflict;
  }
  return out;
}

std::optional<CodeEstimate> estimate_from_code(const Binary& binary, const BoundSpace& space, const Config& config,
                                               const DeviceRates& rates, const sm61::SmRates& sm_rates) {
  if (binary.kind != BinaryKind::cubin || binary.code.empty() || !binary.then.empty()) {
    return std::nullopt;
  }
  try {
    return estimate_from_code(sm61::read_kernel(binary.code, binary.function), launch_work(space, config), rates,
                              sm_rates);
  } catch (const Error&) {
    return std::nullopt;  // another architecture, or code that is not read
  }
}

}  // namespace pascaline
