#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/sm61/control_flow.hpp"
#include "runtime/device/sm61/instruction.hpp"
#include "runtime/device/sm61/loop_cost.hpp"

namespace pascaline::sm61 {

/// A kernel's machine code, read.
struct KernelCode {
  std::string name;
  int registers = 0;     ///< per thread
  int shared_bytes = 0;  ///< static, per block
  int local_bytes = 0;   ///< stack and spills, per thread
  std::vector<Instruction> instructions;
  ControlFlow flow;
  std::vector<LoopCost> costs;         ///< of each loop of `flow`
  std::optional<std::size_t> hottest;  ///< its loop in which most time is likely to go
};

/// Whether machine code of that compute capability (61 for sm_61) is read here: 50 to 62.
[[nodiscard]] bool reads_architecture(int sm) noexcept;

/// Reads one kernel of a cubin. The instructions keep no reference to `cubin`. Throws Error, with one line, if the
/// cubin is damaged, is for an architecture that is not read, or has no such kernel.
[[nodiscard]] KernelCode read_kernel(std::string_view cubin, std::string_view function);

/// Reads all kernels of a cubin, in the order of their sections. Throws Error as `read_kernel` does, and if the
/// sections of code together are larger than the file.
[[nodiscard]] std::vector<KernelCode> read_kernels(std::string_view cubin);

}  // namespace pascaline::sm61
