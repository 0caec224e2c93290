#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "runtime/device/device_memory.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline {

/// Copies of an operation's tensors in the host's memory, for computing there. Tensors with the same address share a
/// copy, as an operation may write where it reads.
class HostCopies {
 public:
  /// `memory` must outlive it; the device has no work to do.
  explicit HostCopies(DeviceMemory& memory) : memory_(&memory) {}

  /// Each makes the views point to copies; a tensor that is not there stays so. Read ones hold the contents.
  template <typename... Tensors>
  void read(Tensors&... tensors) {
    (add(tensors, true, false), ...);
  }
  /// Written ones are brought back, of unspecified contents before.
  template <typename... Tensors>
  void write(Tensors&... tensors) {
    (add(tensors, false, true), ...);
  }
  /// Changed ones both.
  template <typename... Tensors>
  void change(Tensors&... tensors) {
    (add(tensors, true, true), ...);
  }
  /// Puts what was written into the device's memory.
  void bring_back();

 private:
  struct Copy {
    DeviceSpan there;
    std::vector<std::byte> here;
    std::size_t offset = 0;  // of the first byte, for alignment
    bool written = false;
  };
  void add(TensorView& tensor, bool reads, bool writes);
  Copy& copy_of(DeviceSpan span);

  DeviceMemory* memory_;
  std::list<Copy> copies_;
};

}  // namespace pascaline
