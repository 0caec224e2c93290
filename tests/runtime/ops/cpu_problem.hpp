#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/space/space.hpp"
#include "runtime/ops/tensor.hpp"
#include "tests/runtime/ops/host_buffer.hpp"

namespace pascaline::testing {

/// A problem of a search space with its buffers in host memory, for the operation on the processor that computes it.
class CpuProblem {
 public:
  /// `space` must outlive it.
  CpuProblem(const Space& space, const Problem& problem, std::uint64_t seed);

  /// Kernels that an operation is known for, sorted.
  [[nodiscard]] static std::vector<std::string> kernels();

  /// Computes it from what was drawn, with so many threads; fails the test where the result is not the host reference's
  /// within the space's tolerance, an input has changed or a byte outside of a buffer was written.
  void check(int threads);
  /// What the last `check` computed, each output's bytes.
  [[nodiscard]] std::vector<std::vector<std::byte>> results() const;

  [[nodiscard]] std::int64_t dimension(const char* name) const { return problem_.dimension(name); }
  [[nodiscard]] ElementType type(const char* variable) const { return problem_.type(variable); }
  /// The buffer as a tensor; a buffer without elements is a tensor that is not there.
  [[nodiscard]] TensorView view(const char* name, std::initializer_list<std::int64_t> shape) const;

 private:
  struct Slot {
    const Argument* argument;
    ElementType type;
    std::int64_t rows;  ///< of a matrix; else elements
    std::int64_t columns;
    HostBuffer buffer;
    std::vector<std::byte> initial;
    std::vector<double> expected;  ///< of an output
    std::vector<double> slack;     ///< of an output, where the reference has some
  };
  void compute_expected();
  void compare(const Slot& slot) const;

  const Space* space_;
  Problem problem_;
  std::vector<Slot> slots_;
};

}  // namespace pascaline::testing
