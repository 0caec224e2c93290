#pragma once

#include <cstddef>

#include "core/binary.hpp"
#include "core/config.hpp"

namespace pascaline {

/// The compiled reference of a problem, and the configuration that it is launched with: the default, or the valid
/// configuration closest to it that can be compiled.
struct ReferenceRun {
  Binary binary;
  Config config;
};

/// Configurations in which a reference is tried before it counts as unusable.
inline constexpr std::size_t kMaxReferences = 8;

}  // namespace pascaline
