#include "tuner/measure/trial_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "core/util/hash.hpp"
#include "runtime/device/cubin_info.hpp"

namespace pascaline {
namespace {

// Machine code is the same whichever compiler made it, as far as that can be told.
std::string code_hash(const Binary& binary) {
  if (binary.kind != BinaryKind::cubin) {
    return hash_hex(binary.code);
  }
  const auto hash = cubin_launch_hash(binary.code, binary.function);
  return hash ? *hash : cubin_code_hash(binary.code);
}

}  // namespace

Resources resources_of_launches(const Binary& binary) {
  Resources all = binary.resources;
  for (const Binary& next : binary.then) {
    for (auto most : {&Resources::registers, &Resources::static_shared_bytes, &Resources::constant_bytes,
                      &Resources::local_bytes}) {
      all.*most = std::max(all.*most, next.resources.*most);
    }
    for (auto counted :
         {&Resources::local_loads, &Resources::local_stores, &Resources::instructions, &Resources::ffma}) {
      all.*counted += next.resources.*counted;
    }
  }
  return all;
}

Trial blank_trial(const BoundSpace& space, const Config& config, const Binary& binary) {
  Trial trial;
  trial.problem = space.problem();
  trial.config = config;
  trial.is_default = config == space.default_config();
  trial.started_unix_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  trial.compile_ms = binary.compile_ms;
  if (!binary.code.empty()) {
    trial.resources = resources_of_launches(binary);
    trial.binary_hash = hash_hex(binary.code);
    trial.occupancy = least_occupancy(space, space.space().launches, config, binary);
    for (const Binary& next : binary.then) {
      trial.binary_hash = hash_hex(trial.binary_hash + hash_hex(next.code));
    }
  }
  return trial;
}

std::span<const Launch> reference_launches(const Space& space) {
  return space.reference.kernel ? std::span(&*space.reference.kernel, 1) : std::span(space.launches);
}

double least_occupancy(const BoundSpace& space, std::span<const Launch> launches, const Config& config,
                       const Binary& binary) {
  double least = 1;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Resources& resources = binary.of_launch(i).resources;
    const Geometry geometry = space.geometry(launches[i], config);
    least = std::min(least, occupancy(space.limits(), static_cast<int>(geometry.threads()), resources.registers,
                                      std::int64_t{resources.static_shared_bytes} + geometry.shared_bytes));
  }
  return least;
}

std::optional<std::string> exceeds_limits(const BoundSpace& space, std::span<const Launch> launches,
                                          const Config& config, const Binary& binary) {
  for (std::size_t i = 0; i < launches.size(); ++i) {
    auto why = exceeds_limits(binary.of_launch(i).resources, space.geometry(launches[i], config), space.limits());
    if (why) {
      return launches.size() == 1 ? why : fmt::format("{}: {}", launches[i].function, *why);
    }
  }
  return std::nullopt;
}

std::optional<std::string> exceeds_limits(const Resources& resources, const Geometry& geometry,
                                          const DeviceLimits& limits) {
  return reason_block_does_not_fit(limits, static_cast<int>(geometry.threads()), resources.registers,
                                   std::int64_t{resources.static_shared_bytes} + geometry.shared_bytes);
}

std::string run_key(const BoundSpace& space, const Config& config, const Binary& binary) {
  FieldHash hash;
  const std::vector<Geometry> geometries = space.geometries(config);
  for (std::size_t i = 0; i < geometries.size(); ++i) {
    const Binary& code = binary.of_launch(i);
    hash.add(code_hash(code));
    hash.add(fmt::format("{} {} {} {} {}", fmt::join(geometries[i].grid, " "), fmt::join(geometries[i].block, " "),
                         geometries[i].shared_bytes, code.max_registers, code.function));
  }
  for (const Argument& argument : space.space().arguments) {
    hash.add(fmt::format("{}", space.value(argument, config)));
    for (const Argument& member : argument.members) {
      hash.add(fmt::format("{} {}", space.value(member, config), member.number.value_or(0)));
    }
  }
  return hash.hex();
}

}  // namespace pascaline
