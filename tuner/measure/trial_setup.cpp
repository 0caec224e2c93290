#include "tuner/measure/trial_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    const Geometry geometry = space.geometry(space.space().launch, config);
    trial.resources = binary.resources;
    trial.binary_hash = hash_hex(binary.code);
    trial.occupancy = occupancy(space.limits(), static_cast<int>(geometry.threads()), binary.resources.registers,
                                std::int64_t{binary.resources.static_shared_bytes} + geometry.shared_bytes);
  }
  return trial;
}

std::optional<std::string> exceeds_limits(const Resources& resources, const Geometry& geometry,
                                          const DeviceLimits& limits) {
  return reason_block_does_not_fit(limits, static_cast<int>(geometry.threads()), resources.registers,
                                   std::int64_t{resources.static_shared_bytes} + geometry.shared_bytes);
}

std::string run_key(const BoundSpace& space, const Config& config, const Binary& binary) {
  FieldHash hash;
  hash.add(code_hash(binary));
  const Geometry geometry = space.geometry(space.space().launch, config);
  hash.add(fmt::format("{} {} {} {} {}", fmt::join(geometry.grid, " "), fmt::join(geometry.block, " "),
                       geometry.shared_bytes, binary.max_registers, binary.function));
  for (const Argument& argument : space.space().arguments) {
    hash.add(fmt::format("{}", space.value(argument, config)));
    for (const Argument& member : argument.members) {
      hash.add(fmt::format("{} {}", space.value(member, config), member.number.value_or(0)));
    }
  }
  return hash.hex();
}

}  // namespace pascaline
