#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/checkpoint/model_weights.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/model/device_weights.hpp"
#include "runtime/model/placement.hpp"

namespace pascaline {

/// Brings layers whose weights are in the host's memory to the device as they are used, into slots that they take turns
/// in: while one is used the next is copied, on a stream of its own. Layers that are used again and again in the same
/// order are copied ahead, from the last to the first, too.
class LayerStream {
 public:
  /// For the layers of `weights` that have blocks, which stay there; `memory` and `weights` must outlive it. Throws
  /// OutOfMemoryError, and what the device throws.
  LayerStream(DeviceMemory& memory, const DeviceWeights& weights);
  LayerStream(const LayerStream&) = delete;
  LayerStream& operator=(const LayerStream&) = delete;
  /// The layer's weights on the device, for what the default stream is given from now on until `leave`. Does not wait.
  [[nodiscard]] TextLayerWeights enter(std::size_t layer);
  /// What uses the layer was given to the default stream: the next layer is copied beside it, into another slot.
  void leave(std::size_t layer);

  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Copied to the device so far.
  [[nodiscard]] std::uint64_t copied_bytes() const noexcept { return copied_bytes_; }

 private:
  struct Slot {
    RawBuffer memory;
    Event copied;
    Event used;
    std::size_t layer = kNone;
    std::uint64_t turn = 0;  // when it was last copied or entered
    bool in_use = false;
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  [[nodiscard]] Slot* slot_of(std::size_t layer) noexcept;
  void finish_use(Slot& slot);
  Slot& copy(std::size_t layer);
  [[nodiscard]] std::size_t next_after(std::size_t layer) const;

  DeviceMemory* memory_;
  const DeviceWeights* weights_;
  std::vector<Slot> slots_;
  Stream stream_;  // waits for its copies before the slots go
  std::uint64_t turns_ = 0;
  std::uint64_t copied_bytes_ = 0;
};

}  // namespace pascaline
