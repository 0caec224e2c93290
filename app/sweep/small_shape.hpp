#pragma once

#include <optional>
#include <string>

#include "core/space/space.hpp"

namespace pascaline {

/// Sizes as `--problem` takes them, "M=64,N=64,K=64": those of the space's example shape that a problem must name, each
/// made as small as the space allows, but no smaller than 64.
[[nodiscard]] std::string small_shape(const Space& space, const DeviceLimits& limits);

/// A warning that the space's example shape takes long on the emulated device, how long, and what shape to give
/// instead; nothing where a trial takes a few seconds at most.
[[nodiscard]] std::optional<std::string> emulated_shape_warning(const Space& space);

}  // namespace pascaline
