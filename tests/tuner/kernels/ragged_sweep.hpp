#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/compile.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "tests/tuner/kernels/ragged_shapes.hpp"
#include "tuner/measure/problem_data.hpp"

namespace pascaline::testing {

/// How much of a kernel is looked at: a variant is what is compiled once.
struct RaggedLimits {
  int shapes = 40;
  std::size_t default_variants = 0;  ///< of the default configuration
  std::size_t drawn_variants = 0;    ///< of all drawn configurations together
  std::size_t drawn_configs = 0;
};

/// A kernel by its two files.
struct RaggedSource {
  std::filesystem::path kernels;  ///< folder of NAME.cu
  std::filesystem::path spaces;   ///< folder of NAME.json
  RaggedKernel kernel;

  /// One of this tree.
  [[nodiscard]] static RaggedSource shipped(const RaggedKernel& kernel);
};

/// Checks one kernel against its reference: ragged shapes in the default and in drawn configurations.
class RaggedSweep {
 public:
  /// Fails the test where the search space's tolerance is looser than 1e-5 for float32 and 2e-3 for float16.
  RaggedSweep(Device& device, const std::string& target, const RaggedSource& source, RaggedLimits limits);

  /// Fails the test where a result is wrong, a kernel does not compile, or nothing was looked at.
  void run();

 private:
  [[nodiscard]] CompileRequest request(const BoundSpace& bound, const Config& config) const;
  [[nodiscard]] bool admits(const BoundSpace& bound, const Config& config);
  [[nodiscard]] std::vector<Config> configs(const BoundSpace& bound);
  [[nodiscard]] Kernel reference(const BoundSpace& bound);
  void check_shape(const BoundSpace& bound);
  void check_config(const BoundSpace& bound, ProblemData& data, const Config& config);

  Device& device_;
  CompileTarget plan_;
  Toolchain toolchain_;
  CubinCache cache_;
  Space space_;
  KernelSource source_;
  RaggedKernel kernel_;
  RaggedLimits limits_;
  RaggedShapes draw_;
  Config default_;
  std::vector<Config> drawn_;
  std::vector<Problem> compiled_;  ///< shapes that the default was compiled for first
  std::set<std::string> default_variants_;
  std::set<std::string> drawn_variants_;
  int default_runs_ = 0;
  int drawn_runs_ = 0;
};

}  // namespace pascaline::testing
