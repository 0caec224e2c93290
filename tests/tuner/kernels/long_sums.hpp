#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/trial.hpp"
#include "runtime/device/compile.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/device/device.hpp"
#include "tests/tuner/kernels/ragged_shapes.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline::testing {

/// Runs a kernel of this tree, as it is or with a mistake, through the tuner's trials.
class LongSums {
 public:
  using Sizes = std::vector<std::pair<std::string, std::string>>;

  LongSums(Device& device, const std::string& target, const std::string& kernel);

  /// Replaces a text that the kernel's source or one of its headers has once.
  void damage(const std::string& from, const std::string& to);

  /// A trial of the default configuration and of `drawn` others, each verified as a sweep does it.
  [[nodiscard]] std::vector<Trial> run(const Sizes& sizes, std::size_t drawn = 0);
  /// `run`, of which each trial must be `ok`; one that does not fit the device may be `rejected`.
  void expect_right(const Sizes& sizes, std::size_t drawn = 0);

 private:
  Device& device_;
  CompileTarget plan_;
  Toolchain toolchain_;
  CubinCache cache_;
  Space space_;
  KernelSource source_;
  RaggedShapes draw_{1};
};

}  // namespace pascaline::testing
