#include "tuner/static_model/static_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr int kRegistersUnknown = 40;  // of a kernel whose file says nothing
constexpr double kWarp = 32;
constexpr double kSpillBytes = 4;  // a thread's, of one local load or store

// Clocks of a launch that several resources limit: they overlap, but not wholly, so the norm of them all rather than
// the largest.
double joined(std::initializer_list<double> clocks) {
  double squares = 0;
  for (const double each : clocks) {
    squares += each * each;
  }
  return std::sqrt(squares);
}

}  // namespace

/// The numbers of one configuration; sums are over all blocks.
struct StaticModel::Work {
  double blocks = 1;
  double threads = 1;
  double imbalance = 1;
  double flops = 0;
  double instructions = 0;
  double global_bytes = 0;
  double shared_bytes = 0;
  double spilled_bytes = 0;
  double global_steps = 1;
  double prefetched_steps = 0;
  double shared_steps = 0;
  double barriers = 0;
  int registers = kRegistersUnknown;
  std::int64_t shared_memory = 0;

  [[nodiscard]] double warps() const { return std::ceil(threads / kWarp); }
  [[nodiscard]] double issued() const { return flops / 2 + instructions; }  // by all threads
};

StaticModel::StaticModel(const BoundSpace& space, const DeviceRates& rates)
    : space_(&space), rates_(rates), compulsory_bytes_(space.bytes()), least_flops_(space.flops()) {}

std::optional<StaticModel::Work> StaticModel::work_of(std::span<const std::uint16_t> indices) const {
  std::vector<std::int64_t> slots = space_->base_slots();
  const auto& values = space_->integer_values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    slots[i] = values[i][indices[i]];
  }
  const Space& space = space_->space();
  bool good = true;
  const auto number = [&](const Expression& expression, std::int64_t least) {
    const auto value = expression.try_evaluate(slots);
    good = good && value && *value >= least;
    return value.value_or(0);
  };
  Work work;
  for (std::size_t i = 0; i < 3; ++i) {
    work.blocks *= static_cast<double>(number(space.launches.front().grid[i], 1));
    work.threads *= static_cast<double>(number(space.launches.front().block[i], 1));
  }
  work.shared_memory = number(space.launches.front().shared_bytes, 0);
  work.flops = least_flops_;
  work.global_bytes = compulsory_bytes_;
  if (space.model) {
    const PerformanceModel& model = *space.model;
    const auto take = [&](const std::optional<Expression>& expression, double otherwise, std::int64_t least = 0) {
      return expression ? static_cast<double>(number(*expression, least)) : otherwise;
    };
    work.blocks = take(model.blocks, work.blocks, 1);
    work.imbalance = take(model.imbalance, 100, 1) / 100;
    work.flops = take(model.flops, work.flops);
    work.instructions = take(model.instructions, 0);
    work.global_bytes = take(model.global_bytes, work.global_bytes);
    work.shared_bytes = take(model.shared_bytes, 0);
    work.global_steps = take(model.global_steps, work.global_steps);
    work.prefetched_steps = take(model.prefetched_steps, 0);
    work.shared_steps = take(model.shared_steps, 0);
    work.barriers = take(model.barriers, 0);
    work.registers = static_cast<int>(take(model.registers, kRegistersUnknown, 1));
    work.shared_memory += static_cast<std::int64_t>(take(model.static_shared_bytes, 0));
  }
  return good ? std::optional(work) : std::nullopt;
}

void StaticModel::apply_resources(Work& work, const Resources& compiled) const {
  if (compiled.registers > 0) {
    work.registers = compiled.registers;
  }
  work.shared_memory = std::max<std::int64_t>(work.shared_memory, compiled.static_shared_bytes);
  if (compiled.instructions <= 0) {
    return;
  }
  const double instructions = compiled.instructions;
  // The mix of the whole code stands for the loop's only where nothing better is known: what comes before and after the
  // loop is a part of it, too.
  const bool counted = space_->space().model && space_->space().model->instructions;
  if (!counted && compiled.ffma > 0) {
    work.instructions = work.flops / 2 * (instructions - compiled.ffma) / compiled.ffma;
  }
  const double local = compiled.local_loads + compiled.local_stores;
  work.spilled_bytes = work.issued() * (local / instructions) * kSpillBytes;
}

double StaticModel::clocks_of(const Work& work, double load) const {
  const double share = work.imbalance / work.blocks;  // of all work that the block with most of it has
  const double lanes = std::min(rates_.fp32_lanes, rates_.issue_slots * kWarp);
  const double compute = std::max(work.flops / 2 / lanes, work.issued() / (rates_.issue_slots * kWarp)) / work.blocks;
  const double shared = work.shared_bytes / rates_.shared_bytes / work.blocks;
  const double global = (work.global_bytes + work.spilled_bytes) / rates_.l2_bytes / work.blocks;
  // A block alone: each warp on a scheduler of its own, waiting for what it needs.
  const double warps = work.warps();
  const double turns = std::ceil(warps / rates_.issue_slots);
  const double own = work.issued() * share / (warps * kWarp) * turns;
  const double reads = work.shared_steps * rates_.shared_latency + work.barriers * rates_.barrier_latency;
  const double ahead = work.prefetched_steps * rates_.global_latency;
  const double chain = std::max(own + reads, ahead) + work.global_steps * rates_.global_latency;
  return rates_.block_start_latency + joined({load * compute, load * shared, load * global, chain});
}

std::optional<Estimate> StaticModel::estimate(std::span<const std::uint16_t> indices, const Resources* compiled) const {
  std::optional<Work> found = work_of(indices);
  if (!found) {
    return std::nullopt;
  }
  Work& work = *found;
  if (compiled != nullptr) {
    apply_resources(work, *compiled);
  }
  const DeviceLimits& limits = rates_.limits;
  const int registers = std::min(work.registers, static_cast<int>(limits.max_registers_per_thread));
  const int threads = static_cast<int>(std::min(work.threads, 1e9));
  Estimate out;
  out.registers = registers;
  out.resident_blocks = resident_blocks(limits, threads, registers, work.shared_memory);
  out.fits = out.resident_blocks > 0;
  if (!out.fits) {
    out.time_us = std::numeric_limits<double>::infinity();
    return out;
  }
  const double sms = static_cast<double>(std::max<std::int64_t>(1, limits.sm_count));
  const double resident = out.resident_blocks;
  out.occupancy = std::min(1.0, resident * work.warps() * kWarp / static_cast<double>(limits.max_threads_per_sm));
  out.waves = work.blocks / (resident * sms);
  const double whole = std::floor(out.waves);
  const double left = work.blocks - whole * resident * sms;
  // Where all blocks run at once, nothing evens out that one has more to do than another.
  const double uneven = whole > 0 ? 0 : work.imbalance - 1;
  const double clocks =
      whole * clocks_of(work, resident) + (left > 0 ? clocks_of(work, std::ceil(left / sms) + uneven) : 0);
  const double us = 1 / rates_.clock_mhz;
  out.compute_us = work.issued() / (rates_.issue_slots * kWarp) / sms * us;
  out.shared_us = (work.shared_bytes + work.spilled_bytes) / rates_.shared_bytes / sms * us;
  const double memory_us = compulsory_bytes_ / (rates_.memory_gbps * 1e3);
  out.global_us = std::max(work.global_bytes / rates_.l2_bytes / sms * us, memory_us);
  Work idle = work;
  idle.flops = idle.instructions = idle.shared_bytes = idle.spilled_bytes = idle.global_bytes = 0;
  out.latency_us = std::ceil(out.waves) * clocks_of(idle, 1) * us;
  out.time_us = rates_.launch_us + joined({clocks * us, memory_us});
  return out;
}

std::optional<double> StaticModel::time_us(std::span<const std::uint16_t> indices) const {
  const auto found = estimate(indices);
  return found ? std::optional(found->time_us) : std::nullopt;
}

std::optional<double> StaticModel::predicted_log_time(const Config& config) const {
  const auto time = time_us(space_->space().indices_of(config));
  return time && std::isfinite(*time) && *time > 0 ? std::optional(std::log(*time)) : std::nullopt;
}

Estimate estimate(const BoundSpace& space, const Config& config, const DeviceRates& rates, const Resources* compiled) {
  const auto found = StaticModel(space, rates).estimate(space.space().indices_of(config), compiled);
  if (!found) {
    throw Error(fmt::format(
        "cannot estimate {} of {}: an expression of the section 'model' or of the launch has no value there or is "
        "negative; correct it in {}",
        config.text(), space.problem().text(), space.space().file));
  }
  return *found;
}

}  // namespace pascaline
