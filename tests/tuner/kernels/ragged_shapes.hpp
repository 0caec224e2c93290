#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"

namespace pascaline::testing {

/// A kernel, and the type that its first type variable stands for, if it has any.
struct RaggedKernel {
  std::string name;
  ElementType storage = ElementType::float32;
  /// A type that has code of its own, int8 or a format of matrices: that of every other variable that takes it.
  std::optional<ElementType> other = std::nullopt;

  [[nodiscard]] std::string text() const {
    return name + "_" + std::string(name_of(storage)) + (other ? "_" + std::string(name_of(*other)) : "");
  }
  // GoogleTest shows it so.
  friend void PrintTo(const RaggedKernel& kernel, std::ostream* out) { *out << kernel.text(); }
};

/// Up to six cases of one kernel: few enough for the time that a test may take.
struct RaggedKernels {
  std::string name;
  std::vector<RaggedKernel> cases;

  friend void PrintTo(const RaggedKernels& kernels, std::ostream* out) { *out << kernels.name; }
};

/// Draws shapes that divide by little: the same from the same seed.
class RaggedShapes {
 public:
  using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

  explicit RaggedShapes(std::uint64_t seed) : generator_(seed) {}

  /// From 1 to `most`: 1, a prime, a border of vectors, warps or tiles or a neighbour of one, or anything.
  std::int64_t size(std::int64_t most);
  /// One of the values.
  std::int64_t pick(std::initializer_list<std::int64_t> values);
  /// From 0 to `count` - 1.
  std::int64_t below(std::int64_t count);

  /// A shape of a kernel, of a few hundred thousand elements at most, with its types, of which those not given are
  /// drawn, or are those of `like`. One that the space's default configuration is valid for.
  Problem problem(const Space& space, const RaggedKernel& kernel, const DeviceLimits& limits,
                  const Problem* like = nullptr);
  /// A valid configuration, or nothing if none was found soon.
  std::optional<Config> config(const BoundSpace& space);

  /// The kernels of a folder of search spaces, sorted by name, with float32 and float16 where they take them, and with
  /// float32 and each type that has code of its own.
  [[nodiscard]] static std::vector<RaggedKernel> kernels(const std::filesystem::path& spaces);
  /// The same in groups named KERNEL, KERNEL_2, …
  [[nodiscard]] static std::vector<RaggedKernels> by_kernel(const std::filesystem::path& spaces);

 private:
  [[nodiscard]] Sizes sizes_of(const Space& space);
  [[nodiscard]] std::int64_t size_of_dimension(const Space& space, std::size_t index, const Sizes& earlier);

  std::mt19937_64 generator_;
  Problem last_;  ///< that was drawn
};

}  // namespace pascaline::testing
