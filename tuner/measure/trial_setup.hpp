#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/space/space.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// A trial with all that is known before it runs: problem, configuration, whether it is the default, and what the
/// binary says of itself. `started_unix_ms` is now.
[[nodiscard]] Trial blank_trial(const BoundSpace& space, const Config& config, const Binary& binary);

/// Registers and bytes are the maximum over the launches, instructions their sum.
[[nodiscard]] Resources resources_of_launches(const Binary& binary);

/// The launches of the reference: of the naive kernel, or the space's own where they are compared with the default.
[[nodiscard]] std::span<const Launch> reference_launches(const Space& space);

/// Why a kernel may not run with these resources on this device, or nothing.
[[nodiscard]] std::optional<std::string> exceeds_limits(const Resources& resources, const Geometry& geometry,
                                                        const DeviceLimits& limits);
/// The same of launches of a space in that configuration, whose code is `binary`.
[[nodiscard]] std::optional<std::string> exceeds_limits(const BoundSpace& space, std::span<const Launch> launches,
                                                        const Config& config, const Binary& binary);
/// The occupancy of the launch that has the least, 0 to 1.
[[nodiscard]] double least_occupancy(const BoundSpace& space, std::span<const Launch> launches, const Config& config,
                                     const Binary& binary);

/// Key of what a configuration runs as: machine code, launch geometry and everything else the configuration decides.
/// Equal keys of one problem cannot differ in result or time.
[[nodiscard]] std::string run_key(const BoundSpace& space, const Config& config, const Binary& binary);

}  // namespace pascaline
