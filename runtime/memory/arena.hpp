#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// A tensor of a fixed sequence of steps, needed from its first step to its last, both included.
struct ArenaTensor {
  std::string name;  ///< not empty, no two alike
  std::size_t bytes = 0;
  int first_step = 0;
  int last_step = 0;
};

/// Where each tensor lies in one piece of memory.
struct ArenaLayout {
  std::vector<std::size_t> offsets;   ///< in bytes, in the order of the tensors, multiples of the alignment
  std::size_t total_bytes = 0;        ///< of the memory
  std::size_t lower_bound_bytes = 0;  ///< what the tensors of the fullest step take; no plan needs less
};

/// Lets tensors whose steps do not overlap share memory. The largest is placed first, each into the smallest gap
/// between those already placed that live at the same time, else behind them: "greedy by size for offset calculation"
/// of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv:2001.03288. Takes time
/// quadratic in the number of tensors. Throws Error for a lifetime that ends before it begins, sizes beyond 2^62 bytes
/// in all, or an alignment that is no power of two.
[[nodiscard]] ArenaLayout lay_out_arena(std::span<const ArenaTensor> tensors,
                                        std::size_t alignment = DeviceMemory::kAlignment);

/// What is wrong with a plan, or nothing: an offset a tensor, aligned, inside the total, and no two tensors that live
/// at the same time on the same bytes.
[[nodiscard]] std::optional<std::string> flaw_of(const ArenaLayout& plan, std::span<const ArenaTensor> tensors,
                                                 std::size_t alignment = DeviceMemory::kAlignment);

/// One piece of device memory in which the tensors of a plan lie. Allocates when it is made and never again.
class Arena {
 public:
  /// Plans, checks the plan and allocates; `memory` must outlive it. Throws as `lay_out_arena` does, Error for names
  /// that are empty or stand twice, and OutOfMemoryError saying how much is needed and free.
  Arena(DeviceMemory& memory, std::vector<ArenaTensor> tensors);

  /// The memory of a tensor by its position in the list; throws Error if there is none.
  [[nodiscard]] DeviceSpan view(std::size_t tensor) const;
  /// By its name; throws Error naming it if there is none.
  [[nodiscard]] DeviceSpan view(std::string_view name) const;
  [[nodiscard]] const ArenaLayout& plan() const noexcept { return plan_; }
  [[nodiscard]] const std::vector<ArenaTensor>& tensors() const noexcept { return tensors_; }

 private:
  std::vector<ArenaTensor> tensors_;
  std::vector<std::size_t> by_name_;  // positions in the list
  ArenaLayout plan_;
  RawBuffer memory_;
};

}  // namespace pascaline
