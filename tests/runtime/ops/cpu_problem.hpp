#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/ops/tensor.hpp"
#include "tuner/measure/problem_data.hpp"

namespace pascaline::testing {

/// A problem of a search space on the emulated device, whose buffers are in host memory, for the operation on the
/// processor that computes it.
class CpuProblem {
 public:
  /// `space` must outlive it.
  CpuProblem(const Space& space, const Problem& problem, std::uint64_t seed);

  /// Kernels that an operation is known for, sorted.
  [[nodiscard]] static std::vector<std::string> kernels();

  /// Computes it from what was drawn, with so many threads; fails the test where the result is not the reference's
  /// within the space's tolerance, an input has changed or a byte outside of a buffer was written.
  void check(int threads);
  /// What the last `check` computed.
  [[nodiscard]] ProblemData::Results results() { return data_.outputs(); }

  [[nodiscard]] std::int64_t dimension(const char* name) const { return bound_.problem().dimension(name); }
  [[nodiscard]] ElementType type(const char* variable) const { return bound_.problem().type(variable); }
  /// The buffer as a tensor; a buffer without elements is a tensor that is not there.
  [[nodiscard]] TensorView view(const char* name, std::initializer_list<std::int64_t> shape) const;

 private:
  BoundSpace bound_;
  ProblemData data_;
};

}  // namespace pascaline::testing
