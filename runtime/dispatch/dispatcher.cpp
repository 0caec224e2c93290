#include "runtime/dispatch/dispatcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "core/util/shown_text.hpp"
#include "runtime/device/device_failure.hpp"
#include "runtime/dispatch/compile_request.hpp"

namespace pascaline {
namespace {

std::filesystem::path or_data(const std::filesystem::path& folder, std::string_view name) {
  return folder.empty() ? data_folder(name) : folder;
}

ProblemKey key_of(KernelHandle handle, const Problem& problem) {
  ProblemKey key{handle, {}, {}};
  for (const auto& [name, value] : problem.dimensions) {
    key.dimensions.push_back(value);
  }
  for (const auto& [name, type] : problem.types) {
    key.types.push_back(type);
  }
  return key;
}

// Scratch beyond all of the device's memory is the configuration's fault, scratch beyond what is free is not.
void require_scratch_fits(const BoundSpace& space, const Config& config, const DeviceInfo& info) {
  for (const Argument& argument : space.space().arguments) {
    if (argument.access == Access::scratch && space.buffer_bytes(argument, config) > info.memory_bytes) {
      throw Error(fmt::format("scratch buffer '{}' of {} bytes does not fit on the device, which has {}", argument.name,
                              space.buffer_bytes(argument, config), info.memory_bytes));
    }
  }
}

// A launch that cannot start is better refused here, where another configuration can take over.
void require_fits(const Kernel& kernel, const Geometry& geometry, const DeviceLimits& limits) {
  const Resources& needs = kernel.resources();
  if (const auto reason = reason_block_does_not_fit(limits, static_cast<int>(geometry.threads()), needs.registers,
                                                    std::int64_t{geometry.shared_bytes} + needs.static_shared_bytes)) {
    throw Error(*reason);
  }
}

// The failure with another message, of the same kind: whoever catches it asks whether the device is what failed.
[[noreturn]] void throw_device_failure(const Error& error, const std::string& message) {
  if (const auto* const memory = dynamic_cast<const OutOfMemoryError*>(&error)) {
    throw OutOfMemoryError(message, memory->needed_bytes(), memory->free_bytes());
  }
  if (dynamic_cast<const DeviceLostError*>(&error) != nullptr) {
    throw DeviceLostError(message, error.code());
  }
  if (dynamic_cast<const CudaError*>(&error) != nullptr) {
    throw CudaError(message, error.code());
  }
  throw EmulatorError(message, error.code());
}

// Throws for kernels that cannot be launched with any configuration.
void require_launchable(const Space& space) {
  const auto too_many = [](const auto& arguments) { return arguments.size() > Dispatcher::kMaxArguments; };
  if (too_many(space.arguments) || std::ranges::any_of(space.launches, too_many, &Launch::arguments)) {
    throw Error(fmt::format("kernel '{}' has more than {} arguments", space.kernel, Dispatcher::kMaxArguments));
  }
  const auto texture =
      std::ranges::find_if(space.arguments, [](const Argument& argument) { return argument.texture.has_value(); });
  if (texture != space.arguments.end()) {
    throw Error(fmt::format(
        "kernel '{}' reads '{}' as a texture; the dispatcher cannot launch such kernels: pass a plain buffer",
        space.kernel, texture->name));
  }
}

}  // namespace

Dispatcher::Dispatcher(Device& device, const DispatcherOptions& options, DeviceMemory* memory)
    : device_(&device),
      memory_(memory != nullptr ? memory : &device.memory()),
      supply_(device.info(), options),
      registry_(or_data(options.kernels, "kernel_templates"), or_data(options.spaces, "search_spaces"),
                supply_.winners(), supply_.toolkits()),
      thermal_(options.thermal) {
  warn_of_policy();
}

// A policy of the user's own that names objectives without winners does less than its words say.
void Dispatcher::warn_of_policy() const {
  if (!thermal_.enabled || thermal_.policy.file.empty()) {
    return;
  }
  for (const Objective objective : kObjectives) {
    if (objective != Objective::time && thermal_.policy.file_names(objective) && !registry_.has_winners_by(objective)) {
      fmt::print(stderr,
                 "pascaline: warning: {}: no winner by {} is known for this device, so the next objective of the list "
                 "is used, or time (pascaline sweep --objective {} finds such winners)\n",
                 clean_line(thermal_.policy.file), phrase_of(objective), name_of(objective));
    }
  }
}

Plan Dispatcher::plan(const Problem& problem) const {
  const TunedKernel& kernel = registry_.at(registry_.open(KernelName(problem.kernel)));
  return make_plan(kernel, toolkits(), BoundSpace(kernel.space, problem, target().limits));
}

const Prepared& Dispatcher::prepare(const Problem& problem) {
  const KernelHandle handle = registry_.open(KernelName(problem.kernel));
  ProblemKey key = key_of(handle, problem);

  const std::lock_guard lock(prepare_mutex_);
  const TunedKernel& kernel = registry_.at(handle);
  const BoundSpace space(kernel.space, problem, target().limits);
  if (const Prepared* known = table_.find(handle, key.dimensions, key.types)) {
    return *known;
  }
  if (device_->recording()) {
    throw Error(
        fmt::format("{} was not prepared before the recording began: call it once, or prepare it, before recording",
                    problem.text()));
  }
  auto prepared = std::make_unique<Prepared>(build_or_fall_back(kernel, space));
  prepared->key = std::move(key);
  prepared->by_state.fill(prepared.get());
  add_variants(kernel, *prepared);
  const Prepared& result = *prepared_.emplace_back(std::move(prepared));
  if (result.plan.provenance != Provenance::exact) {
    const std::lock_guard misses_lock(misses_mutex_);
    misses_.push_back({problem, result.plan.provenance, result.plan.reason});
  }
  note_differences(result);
  table_.publish(result);
  return result;
}

// One for each state whose objectives have a winner of their own; what cannot be built leaves the winner by time.
void Dispatcher::add_variants(const TunedKernel& kernel, Prepared& prepared) {
  if (!thermal_.enabled) {
    return;
  }
  std::map<Objective, const Prepared*> known{{Objective::time, &prepared}};  // null: there is no such winner
  for (std::size_t state = 0; state < kThermalStates; ++state) {
    for (const Objective objective : thermal_.policy.objectives[state]) {
      const auto found = known.find(objective);
      const Prepared* const variant =
          found != known.end() ? found->second
                               : known.emplace(objective, add_variant(kernel, objective, prepared)).first->second;
      if (variant != nullptr) {
        prepared.by_state[state] = variant;
        break;
      }
    }
  }
}

// Null if the problem has no winner by that objective.
const Prepared* Dispatcher::add_variant(const TunedKernel& kernel, Objective objective, Prepared& prepared) {
  auto plan = make_plan_by(objective, kernel, toolkits(), prepared.plan, target().limits);
  if (!plan) {
    return nullptr;
  }
  if (plan->config == prepared.plan.config && plan->toolkit == prepared.plan.toolkit) {
    return &prepared;
  }
  try {
    const BoundSpace space(kernel.space, prepared.plan.problem, target().limits);
    auto made = std::make_unique<Prepared>(build(kernel, space, std::move(*plan)));
    made->key = prepared.key;
    made->by_state.fill(made.get());
    return prepared.others.emplace_back(std::move(made)).get();
  } catch (const StoppedError&) {
    throw;
  } catch (const Error& error) {
    if (is_device_failure(error)) {
      throw Error(fmt::format("cannot prepare {}: {}", prepared.plan.problem.text(), error.what()), error.code());
    }
    fmt::print(stderr, "pascaline: warning: {}: its winner by {} cannot be used: {}; that by time is used\n",
               prepared.plan.problem.text(), phrase_of(objective), clean_line(error.what()));
    return &prepared;
  }
}

// The first problem of which a winner by another objective than time may run begins the watching, also where that is
// the same one in all states.
void Dispatcher::note_differences(const Prepared& prepared) {
  bool differs = false;
  for (std::size_t state = 0; state < kThermalStates; ++state) {
    differs = differs || prepared.by_state[state] != &prepared;
    for (std::size_t other = 0; other < kThermalStates; ++other) {
      alike_[state][other] = alike_[state][other] && prepared.by_state[state] == prepared.by_state[other];
    }
  }
  differing_ += differs ? 1 : 0;
  if (differs && watcher_ == nullptr) {
    ThermalSources sources = thermal_.sources;
    sources.period_s = thermal_.policy.period_s;
    watcher_ =
        std::make_unique<ThermalWatcher>(*device_, thermal_.policy.thresholds, std::move(sources), thermal_state_);
  }
}

ThermalState Dispatcher::launches_as(ThermalState state) const noexcept {
  const auto& alike = alike_[static_cast<std::size_t>(state)];
  return static_cast<ThermalState>(std::find(alike.begin(), alike.end(), true) - alike.begin());
}

ThermalReport Dispatcher::thermal() const {
  return {watcher_ ? watcher_->snapshot() : ThermalSnapshot{}, launches_, differing_};
}

Prepared Dispatcher::build_or_fall_back(const TunedKernel& kernel, const BoundSpace& space) {
  require_launchable(kernel.space);
  std::vector<Config> failed;
  std::string reasons;
  bool only_lacks_code = true;  // of a bundle
  Plan plan = make_plan(kernel, toolkits(), space);
  for (;;) {
    const Provenance provenance = plan.provenance;
    const Config config = plan.config;
    try {
      Prepared made = build(kernel, space, std::move(plan));
      if (!failed.empty() && only_lacks_code && !std::exchange(told_of_lacking_, true)) {
        fmt::print(stderr,
                   "pascaline: warning: {}: {}; another configuration is used, as for all that the bundle lacks\n",
                   space.problem().text(), clean_line(reasons));
      }
      return made;
    } catch (const StoppedError&) {
      throw;
    } catch (const Error& error) {
      if (is_device_failure(error)) {
        throw_device_failure(error, fmt::format("cannot prepare {}: {}", space.problem().text(), error.what()));
      }
      const bool lacks_code = dynamic_cast<const MissingCodeError*>(&error) != nullptr;
      only_lacks_code = only_lacks_code && lacks_code;
      failed.push_back(config);
      if (provenance == Provenance::fallback && only_lacks_code) {
        throw MissingCodeError(fmt::format("cannot prepare {}: {}", space.problem().text(), error.what()));
      }
      reasons += fmt::format("{}the {} configuration ({}) cannot be used: {}", reasons.empty() ? "" : "; ",
                             name_of(provenance), config.text(), error.what());
      if (provenance == Provenance::fallback) {
        throw Error(fmt::format("cannot prepare {}: {}", space.problem().text(), reasons), error.code());
      }
      if (failed.size() == 1 && !lacks_code) {
        fmt::print(stderr, "pascaline: warning: {}: {}; trying another configuration\n", space.problem().text(),
                   clean_line(reasons));
      }
    }
    plan = plan_untuned(space, failed, reasons);
    plan.toolkit = toolkit();
  }
}

Prepared Dispatcher::build(const TunedKernel& kernel, const BoundSpace& space, Plan plan) {
  Prepared prepared;
  require_scratch_fits(space, plan.config, device_->info());
  prepared.geometries = space.geometries(plan.config);
  prepared.kernels = &load(kernel, space, plan);
  for (std::size_t i = 0; i < prepared.geometries.size(); ++i) {
    require_fits((*prepared.kernels)[i], prepared.geometries[i], target().limits);
  }
  prepared.arguments = LaunchArguments(*device_, space, plan.config, scratch_);
  prepared.plan = std::move(plan);
  return prepared;
}

const std::vector<Kernel>& Dispatcher::load(const TunedKernel& kernel, const BoundSpace& space, const Plan& plan) {
  CompileRequest request = compile_request(space, plan.config, kernel.source, target().kind, target().architecture);
  request.translation = target().translation;
  const std::string key = supply_.key(request, plan.toolkit);
  if (const auto known = loaded_.find(key); known != loaded_.end()) {
    return known->second;
  }
  return loaded_.emplace(key, load_launches(*device_, supply_.code(request, plan.toolkit))).first->second;
}

void Dispatcher::launch(const Prepared& prepared, std::span<void* const> buffers) {
  if (buffers.size() != prepared.arguments.buffer_count()) {
    throw Error(fmt::format("{} takes {} buffers, got {}", prepared.plan.problem.text(),
                            prepared.arguments.buffer_count(), buffers.size()));
  }
  const std::uint8_t state = state_cell_->load(std::memory_order_relaxed);
  const Prepared& chosen = *prepared.by_state[state];
  ++chosen.launches;
  ++(*counts_)[state];
  std::ignore = chosen.arguments.copy_variables(*device_, *chosen.kernels, buffers);
  double time_us = 0;
  for (std::size_t i = 0; i < chosen.geometries.size(); ++i) {
    const Kernel& kernel = (*chosen.kernels)[i];
    std::array<void*, kMaxArguments> values;
    const std::span<void* const> arguments = chosen.arguments.gather(i, buffers, values);
    if (observer_) [[unlikely]] {
      time_us += device_->time_launch_us(kernel, chosen.geometries[i], arguments, false);
    } else {
      device_->launch(kernel, chosen.geometries[i], arguments);
    }
  }
  if (observer_) [[unlikely]] {
    observer_(chosen, time_us);
  }
}

void Dispatcher::reload(const std::optional<std::filesystem::path>& database) {
  std::vector<Winner> winners = supply_.winners_in(database);
  const std::lock_guard lock(prepare_mutex_);
  registry_.replace(std::move(winners));
  table_.clear();
  first_since_reload_ = prepared_.size();
  differing_ = 0;
  const std::lock_guard misses_lock(misses_mutex_);
  misses_.clear();
}

std::vector<const Prepared*> Dispatcher::prepared() const {
  const std::lock_guard lock(prepare_mutex_);
  std::vector<const Prepared*> result;
  for (std::size_t i = first_since_reload_; i < prepared_.size(); ++i) {
    result.push_back(prepared_[i].get());
  }
  return result;
}

std::vector<Miss> Dispatcher::misses() const {
  const std::lock_guard lock(misses_mutex_);
  return misses_;
}

}  // namespace pascaline
