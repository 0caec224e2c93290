#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>

#include "runtime/ops/checks.hpp"
#include "runtime/ops/kernel_problem.hpp"
#include "runtime/ops/launch.hpp"
#include "runtime/ops/operands.hpp"

namespace pascaline::ops {

/// An operation is a struct of its tensors and numbers that says, once, everything that is to be known about it:
///
/// - `kName`: what messages call it;
/// - `operands(self, visit)`: calls `visit(name, tensor, use)` for each tensor, in the order of the kernel's buffers.
///   From this follow the buffers of a launch, which addresses are refused, what may not overlap, and what is copied
///   where the processor takes over;
/// - `check()`: throws Error for shapes, types and numbers that do not fit; false where there is nothing to do;
/// - `problem()`: the kernel that computes it, with dimensions and types; after `check`;
/// - `compute()`: computes it on the processor, with addresses in host memory; after `check`, finished on return.
template <typename Op>
concept Operation = requires(const Op& op) {
  { Op::kName } -> std::convertible_to<const char*>;
  { op.check() } -> std::same_as<bool>;
  { op.problem() } -> std::same_as<KernelProblem>;
  { op.compute() } -> std::same_as<void>;
  Op::operands(op, [](const char*, const TensorView&, Use) {});
};

/// Whether there is anything to do. Throws Error, naming the operation, the tensor, what it is and what it must be, for
/// whatever does not fit: shapes, types, alignment, overlap.
template <Operation Op>
[[nodiscard]] bool is_needed(const Op& op) {
  if (!op.check()) {
    return false;
  }
  Checks(Op::kName).memory(Operands(op).all());
  return true;
}

/// Launches an operation that `is_needed`.
template <Operation Op>
void launch(Dispatcher& dispatcher, const Op& op) {
  std::array<void*, Operands::kMax> buffers;  // as many as there are operands
  std::size_t count = 0;
  Op::operands(op, [&](const char*, const TensorView& tensor, Use) { buffers[count++] = tensor.data; });
  launch(dispatcher, op.problem(), std::span<void* const>(buffers.data(), count));
}

/// Launches the operation on the dispatcher's device; does not wait. Throws as `is_needed`, and whatever `launch` of
/// its problem throws. A problem's first call prepares it, which may compile, and throws Error while the device
/// records: call each shape once before recording it.
template <Operation Op>
void run(Dispatcher& dispatcher, const Op& op) {
  if (is_needed(op)) {
    launch(dispatcher, op);
  }
}

/// Computes the operation on the processor, its tensors in host memory. Arithmetic is float32, sums over rows float64.
/// It uses the threads of `worker_pool()`; a result does not depend on how many there are. Several threads may
/// call it at once: then all but one work alone. Lengths, slots, positions, indices and segments are read as kernels
/// read them: what is out of range never leads out of a tensor. Throws as `is_needed`.
template <Operation Op>
void compute(const Op& op) {
  if (is_needed(op)) {
    op.compute();
  }
}

}  // namespace pascaline::ops
