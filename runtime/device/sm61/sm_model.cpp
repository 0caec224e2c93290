#include "runtime/device/sm61/sm_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "runtime/device/sm61/heaviest_path.hpp"

namespace pascaline::sm61 {
namespace {

constexpr std::size_t kSchedulers = 4;
constexpr std::uint32_t kThreads = 32;
constexpr std::uint32_t kBarriers = 6;
constexpr std::uint32_t kWarmUp = 2;   // iterations before the clock counts
constexpr std::uint32_t kCounted = 6;  // and that count
constexpr double kQueue = 16;          // clocks of work that a shared unit takes in advance

/// Units that warps wait for. The arithmetic of a scheduler takes an instruction a clock, so that issuing is its limit.
enum class Unit : std::uint8_t { arithmetic, quarter, single, shared, global, none };

Unit unit_of(const Instruction& instruction) {
  switch (instruction.kind) {
    case Kind::load:
    case Kind::store:
    case Kind::atomic:
      return instruction.space == Space::shared     ? Unit::shared
             : instruction.space == Space::constant ? Unit::quarter
                                                    : Unit::global;
    case Kind::shuffle:
      return Unit::shared;
    case Kind::special:
    case Kind::conversion:
      return Unit::quarter;
    case Kind::float64:
    case Kind::float16:
      return Unit::single;
    case Kind::control:
    case Kind::nop:
    case Kind::barrier:
    case Kind::fence:
      return Unit::none;
    default:
      return Unit::arithmetic;
  }
}

/// An instruction of the loop as the schedulers see it.
struct Step {
  Control control;
  Unit unit = Unit::arithmetic;
  SlotUse waited_as = SlotUse::latency;  // what waiting for its result is called
  bool is_arithmetic = false;            // FFMA or dp4a
  bool is_barrier = false;
  double conflicts = 0;
  double busy = 0;     // clocks of its unit
  double latency = 0;  // until its write barrier is released
};

Step step_of(const KernelCode& kernel, std::uint32_t i, const SmRates& rates) {
  const Instruction& instruction = kernel.instructions[i];
  Step step;
  step.control = instruction.control;
  step.unit = unit_of(instruction);
  step.is_arithmetic = instruction.kind == Kind::ffma || instruction.kind == Kind::dp4a;
  step.is_barrier = instruction.kind == Kind::barrier;
  step.conflicts = bank_conflicts(instruction, i == 0 ? nullptr : &kernel.instructions[i - 1]);
  const double bytes = static_cast<double>(kThreads) * std::max<double>(instruction.bytes, 4);
  const bool wide = instruction.kind == Kind::load && instruction.bytes > 4;
  switch (step.unit) {
    case Unit::quarter:
      step.busy = 4;
      step.latency = rates.unit_latency;
      break;
    case Unit::single:
      step.busy = 32;
      step.latency = rates.unit_latency + 32;
      break;
    case Unit::shared:
      step.busy = bytes / rates.shared_bytes * (wide ? rates.wide_loads : 1);
      step.latency = rates.shared_latency + step.busy;
      step.waited_as = SlotUse::shared_memory;
      break;
    case Unit::global:
      step.busy = bytes / rates.global_bytes;
      step.latency = rates.global_latency + step.busy;
      step.waited_as = SlotUse::global_memory;
      break;
    default:
      step.latency = rates.unit_latency;
  }
  return step;
}

std::vector<Step> steps_of(const KernelCode& kernel, const SmRates& rates, const std::vector<std::uint32_t>& blocks) {
  std::vector<Step> steps;
  for (const std::uint32_t block : blocks) {
    for (std::uint32_t i = kernel.flow.blocks[block].begin; i < kernel.flow.blocks[block].end; ++i) {
      steps.push_back(step_of(kernel, i, rates));
    }
  }
  return steps;
}

struct Warp {
  std::size_t next = 0;  // step
  std::uint32_t iterations = 0;
  double ready = 0;  // when its next instruction may issue by the stall counts
  std::array<double, kBarriers> released{};
  std::array<SlotUse, kBarriers> of{};  // what each barrier is waited for as
  bool is_waiting = false;              // for other warps
};

class Sm {
 public:
  Sm(std::vector<Step> steps, ResidentWarps warps, const SmRates& rates)
      : steps_(std::move(steps)), rates_(rates), per_block_(warps.warps_per_block) {
    warps_.resize(static_cast<std::size_t>(warps.blocks) * warps.warps_per_block);
    arrived_.resize(warps.blocks);
  }

  LoopTime run() {
    LoopTime time;
    double begin = 0;
    bool counts = false;
    double now = 0;
    const double limit = 4e4 + 400.0 * static_cast<double>(steps_.size() * warps_.size());
    for (; slowest() < kWarmUp + kCounted; ++now) {
      if (now > limit) {
        throw Error("the loop does not end in the model of an SM");
      }
      if (!counts && slowest() >= kWarmUp) {
        counts = true;
        begin = now;
        began_at_ = 0;
        for (const Warp& warp : warps_) {
          began_at_ += progress(warp);
        }
        arithmetic_ = 0;
        lost_ = {};
      }
      // The scheduler that had a shared unit longest ago has the first choice.
      std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return served_[a] < served_[b]; });
      for (const std::size_t scheduler : order_) {
        const SlotUse use = clock(scheduler, now);
        if (counts) {
          time.shares[static_cast<std::size_t>(use)] += 1;
        }
      }
    }
    double ended_at = 0;
    for (const Warp& warp : warps_) {
      ended_at += progress(warp);
    }
    const double clocks = now - begin;
    const double iterations = (ended_at - began_at_) / static_cast<double>(warps_.size());
    time.clocks = clocks / std::max(iterations, 1e-9);
    time.arithmetic = static_cast<double>(arithmetic_) / (clocks * static_cast<double>(kSchedulers));
    time.busy_shared = lost_[0] / (clocks * static_cast<double>(kSchedulers));
    time.busy_global = lost_[1] / (clocks * static_cast<double>(kSchedulers));
    for (double& share : time.shares) {
      share /= clocks * static_cast<double>(kSchedulers);
    }
    return time;
  }

 private:
  [[nodiscard]] std::uint32_t slowest() const {
    const std::size_t schedulers = std::min(kSchedulers, warps_.size());
    return *std::min_element(slowest_.begin(), slowest_.begin() + static_cast<std::ptrdiff_t>(schedulers));
  }
  [[nodiscard]] double progress(const Warp& warp) const {
    return warp.iterations + static_cast<double>(warp.next) / static_cast<double>(steps_.size());
  }

  [[nodiscard]] SlotUse verdict(const Warp& warp, std::size_t scheduler, double now) const {
    if (warp.is_waiting) {
      return SlotUse::barrier;
    }
    if (warp.ready > now) {
      return SlotUse::latency;
    }
    const Step& step = steps_[warp.next];
    for (std::uint32_t i = 0; i < kBarriers; ++i) {
      if ((step.control.wait_mask >> i & 1U) != 0 && warp.released[i] > now) {
        return warp.of[i];
      }
    }
    return unit_is_free(step, scheduler, now) ? SlotUse::issued : SlotUse::pipe;
  }
  [[nodiscard]] bool unit_is_free(const Step& step, std::size_t scheduler, double now) const {
    switch (step.unit) {
      case Unit::shared:
      case Unit::global:
        return memory_[step.unit == Unit::global ? 1 : 0] <= now + kQueue;
      case Unit::quarter:
      case Unit::single:
        return slow_[scheduler] <= now;
      default:
        return true;
    }
  }

  // The lower, the sooner a warp issues: the one that issued last, unless it is an iteration ahead of another, and then
  // those that have come least far.
  [[nodiscard]] double rank(std::size_t warp, std::size_t scheduler) const {
    return warp == last_[scheduler] && warps_[warp].iterations <= slowest_[scheduler] ? -1 : progress(warps_[warp]);
  }
  void note_slowest(std::size_t scheduler) {
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t i = scheduler; i < warps_.size(); i += kSchedulers) {
      least = std::min(least, warps_[i].iterations);
    }
    slowest_[scheduler] = least;
  }

  // What a scheduler does with a clock.
  SlotUse clock(std::size_t scheduler, double now) {
    if (delayed_[scheduler] > now) {
      return SlotUse::conflict;
    }
    Warp* chosen = nullptr;
    std::size_t chosen_index = 0;
    std::array<bool, LoopTime::kUses> reasons{};
    for (std::size_t i = scheduler; i < warps_.size(); i += kSchedulers) {
      const SlotUse use = verdict(warps_[i], scheduler, now);
      reasons[static_cast<std::size_t>(use)] = true;
      if (use == SlotUse::issued && (chosen == nullptr || rank(i, scheduler) < rank(chosen_index, scheduler))) {
        chosen = &warps_[i];
        chosen_index = i;
      }
    }
    if (chosen == nullptr) {
      for (const SlotUse use :
           {SlotUse::pipe, SlotUse::shared_memory, SlotUse::global_memory, SlotUse::barrier, SlotUse::latency}) {
        if (reasons[static_cast<std::size_t>(use)]) {
          note_busy(use, scheduler, now);
          return use;
        }
      }
      return SlotUse::latency;  // a scheduler without a warp
    }
    last_[scheduler] = static_cast<std::size_t>(chosen - warps_.data());
    double lost = issue(*chosen, scheduler, now);
    // The second of two that issue together, if its unit is free and nothing it waits for is missing.
    if (chosen->ready == now && verdict(*chosen, scheduler, now) == SlotUse::issued) {
      lost += issue(*chosen, scheduler, now);
    }
    if (chosen->ready <= now) {
      chosen->ready = now + 1;
    }
    owed_[scheduler] += lost;
    const double whole = std::floor(owed_[scheduler]);
    owed_[scheduler] -= whole;
    delayed_[scheduler] = now + 1 + whole;
    return SlotUse::issued;
  }

  // Which memory a scheduler's warps find busy, if it is one.
  void note_busy(SlotUse use, std::size_t scheduler, double now) {
    for (std::size_t i = scheduler; use == SlotUse::pipe && i < warps_.size(); i += kSchedulers) {
      const Unit unit = steps_[warps_[i].next].unit;
      if ((unit == Unit::shared || unit == Unit::global) && verdict(warps_[i], scheduler, now) == SlotUse::pipe) {
        lost_[unit == Unit::global ? 1 : 0] += 1;
        return;
      }
    }
  }

  // Issues the warp's next instruction; returns the clocks that conflicts delay the scheduler.
  double issue(Warp& warp, std::size_t scheduler, double now) {
    const Step& step = steps_[warp.next];
    double start = now;
    if (step.unit == Unit::shared || step.unit == Unit::global) {
      double& free = memory_[step.unit == Unit::global ? 1 : 0];
      start = std::max(now, free);
      served_[scheduler] = now;
      free = start + step.busy;
    } else if (step.busy > 0) {
      slow_[scheduler] = now + step.busy;
    }
    if (step.control.write_barrier < kBarriers) {
      release(warp, step.control.write_barrier, start + step.latency, step.waited_as);
    }
    if (step.control.read_barrier < kBarriers) {
      release(warp, step.control.read_barrier, start + std::min(step.latency, rates_.read_latency), step.waited_as);
    }
    arithmetic_ += step.is_arithmetic ? 1 : 0;
    warp.ready = now + step.control.stall;
    if (++warp.next == steps_.size()) {
      warp.next = 0;
      ++warp.iterations;
      note_slowest(scheduler);
    }
    if (step.is_barrier) {
      arrive(warp);
    }
    return step.conflicts * rates_.conflict;
  }
  static void release(Warp& warp, std::uint8_t barrier, double when, SlotUse use) {
    warp.released[barrier] = std::max(warp.released[barrier], when);
    warp.of[barrier] = use;
  }
  void arrive(Warp& warp) {
    const auto block = static_cast<std::size_t>(&warp - warps_.data()) / per_block_;
    warp.is_waiting = true;
    if (++arrived_[block] == per_block_) {
      arrived_[block] = 0;
      for (std::size_t i = block * per_block_; i < (block + 1) * per_block_; ++i) {
        warps_[i].is_waiting = false;
      }
    }
  }

  std::vector<Step> steps_;
  SmRates rates_;
  std::uint32_t per_block_;
  std::vector<Warp> warps_;
  std::vector<std::uint32_t> arrived_;
  std::array<double, 2> memory_{};             // when shared and global memory are done with what they have
  std::array<double, kSchedulers> slow_{};     // when a scheduler's slow units are free
  std::array<double, kSchedulers> delayed_{};  // until when conflicts hold a scheduler
  std::array<double, kSchedulers> owed_{};     // parts of a clock
  std::array<double, kSchedulers> served_{};   // when a scheduler last used a unit that all share
  std::array<std::size_t, kSchedulers> order_{0, 1, 2, 3};
  std::array<std::size_t, kSchedulers> last_{};       // warps that issued last
  std::array<std::uint32_t, kSchedulers> slowest_{};  // iterations of the warp that has come least far
  std::array<double, 2> lost_{};                      // clocks of schedulers, while shared or global memory was busy
  double began_at_ = 0;
  std::uint64_t arithmetic_ = 0;
};

void check(const std::vector<Step>& steps, ResidentWarps warps) {
  const std::uint64_t count = static_cast<std::uint64_t>(warps.blocks) * warps.warps_per_block;
  if (steps.empty() || count == 0 || count > 64) {
    throw Error("a model of an SM needs 1 to 64 warps, and instructions");
  }
}

}  // namespace

std::string_view name_of(SlotUse use) noexcept {
  static constexpr std::array<std::string_view, LoopTime::kUses> kNames{
      "issued", "bank conflicts", "busy units", "shared memory", "global memory", "other warps", "arithmetic latency"};
  return kNames[static_cast<std::size_t>(use)];
}

SlotUse LoopTime::limit() const noexcept {
  if (share(SlotUse::issued) >= 0.95) {
    return SlotUse::issued;
  }
  const auto most = std::max_element(shares.begin() + 1, shares.end());
  return static_cast<SlotUse>(most - shares.begin());
}

SmRates sm_rates(const MeasuredRates& measured) {
  const auto take = [&](double& rate, ProbeQuantity quantity) { rate = measured.of(quantity).value_or(rate); };
  SmRates rates;
  take(rates.conflict, ProbeQuantity::conflict_slots);
  rates.conflict = std::clamp(rates.conflict, 0.0, 1.0);
  rates.measured_conflict = measured.of(ProbeQuantity::conflict_slots).has_value();
  take(rates.shared_bytes, ProbeQuantity::shared_bytes_per_clock);
  take(rates.global_bytes, ProbeQuantity::l2_bytes_per_clock);
  take(rates.shared_latency, ProbeQuantity::shared_latency);
  take(rates.global_latency, ProbeQuantity::l2_latency);
  return rates;
}

LoopTime time_of_loop(const KernelCode& kernel, std::size_t loop, ResidentWarps warps, const SmRates& rates) {
  std::vector<Step> steps = steps_of(kernel, rates, heaviest_path(kernel, loop));
  check(steps, warps);
  return Sm(std::move(steps), warps, rates).run();
}

LoopTime time_outside_loops(const KernelCode& kernel, ResidentWarps warps, const SmRates& rates) {
  std::vector<std::uint32_t> path = heaviest_path(kernel, std::nullopt);
  std::erase_if(path, [&](std::uint32_t block) { return kernel.flow.blocks[block].loop != Block::kNone; });
  std::vector<Step> steps = steps_of(kernel, rates, path);
  if (steps.empty()) {
    return {};
  }
  check(steps, warps);
  return Sm(std::move(steps), warps, rates).run();
}

}  // namespace pascaline::sm61
