#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "runtime/device/device_memory.hpp"
#include "runtime/ops/operands.hpp"

namespace pascaline {

/// Copies of an operation's tensors in the host's memory, for computing there. Tensors with the same address share a
/// copy, as an operation may write where it reads.
class HostCopies {
 public:
  /// `memory` must outlive it; the device has no work to do.
  explicit HostCopies(DeviceMemory& memory) : memory_(&memory) {}

  /// For an operation's `operands`: makes the view point to a copy; a tensor that is not there stays so. One that is
  /// read holds the contents; what one that is written holds is unspecified.
  void operator()(const char* name, TensorView& tensor, ops::Use use);
  /// Of a buffer that the operation does not have.
  void operator()(const char* /*name*/, const TensorView& /*tensor*/, ops::Use /*use*/) const {}
  /// Puts what was written into the device's memory.
  void bring_back();

 private:
  struct Copy {
    DeviceSpan there;
    std::vector<std::byte> here;
    std::size_t offset = 0;  // of the first byte, for alignment
    bool written = false;
  };
  Copy& copy_of(DeviceSpan span);

  DeviceMemory* memory_;
  std::list<Copy> copies_;
};

}  // namespace pascaline
