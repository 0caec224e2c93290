#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/space/space.hpp"

namespace pascaline::testing {

/// Draws shapes that divide by little: the same from the same seed.
class RaggedShapes {
 public:
  explicit RaggedShapes(std::uint64_t seed) : generator_(seed) {}

  /// From 1 to `most`: 1, a prime, a border of vectors, warps or tiles or a neighbour of one, or anything.
  std::int64_t size(std::int64_t most);
  /// One of the values.
  std::int64_t pick(std::initializer_list<std::int64_t> values);
  /// From 0 to `count` - 1.
  std::int64_t below(std::int64_t count);

  /// A shape of a kernel of this tree, of a few thousand elements to a few hundred thousand; its first type variable is
  /// `storage`, the others are drawn. One that the space's default configuration is valid for.
  Problem problem(const Space& space, ElementType storage, const DeviceLimits& limits);
  /// A valid configuration, or nothing if none was found soon.
  std::optional<Config> config(const BoundSpace& space);

  /// Kernels that `problem` knows.
  [[nodiscard]] static std::vector<std::string> kernels();

 private:
  std::mt19937_64 generator_;
};

}  // namespace pascaline::testing
