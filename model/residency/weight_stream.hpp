#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/checkpoint/model_weights.hpp"
#include "model/residency/device_weights.hpp"
#include "model/residency/residency.hpp"
#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// Brings weights that are in the host's memory to the device as they are used, into slots that they take turns in:
/// while a part of the model is used the next one is copied, on a stream of its own. Parts of the decoder are used
/// again and again in the same order, and are copied ahead from the last to the first, too; the vision tower, whose
/// parts share the slots, comes before the decoder.
class WeightStream {
 public:
  /// For the parts of `weights` that have blocks, which stay there; `memory` and `weights` must outlive it. Throws
  /// OutOfMemoryError, and what the device throws.
  WeightStream(DeviceMemory& memory, const DeviceWeights& weights);
  WeightStream(const WeightStream&) = delete;
  WeightStream& operator=(const WeightStream&) = delete;

  /// Whether the part is streamed.
  [[nodiscard]] bool has(WeightPart part) const { return weights_->blocks.contains(part); }
  /// The part's weights on the device, for what the default stream is given from now on until `leave`. `in_host` are
  /// the same in the part's block. Does not wait.
  template <typename Weights>
  [[nodiscard]] Weights enter(WeightPart part, const Weights& in_host) {
    Weights there = in_host;
    move_views(part, views_of(there));
    return there;
  }
  /// What uses the part was given to the default stream: the next part is copied beside it, into another slot.
  void leave(WeightPart part);

  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Copied to the device so far.
  [[nodiscard]] std::uint64_t copied_bytes() const noexcept { return copied_bytes_; }

 private:
  struct Slot {
    RawBuffer memory;
    Event copied;
    Event used;
    std::optional<WeightPart> part;
    std::uint64_t turn = 0;  // when it was last copied or entered
    bool in_use = false;
  };

  [[nodiscard]] Slot* slot_of(WeightPart part) noexcept;
  void move_views(WeightPart part, std::span<TensorView* const> views);
  void finish_use(Slot& slot);
  Slot& copy(WeightPart part);
  [[nodiscard]] WeightPart next_after(WeightPart part) const;

  DeviceMemory* memory_;
  const DeviceWeights* weights_;
  std::vector<Slot> slots_;
  Stream stream_;  // waits for its copies before the slots go
  std::uint64_t turns_ = 0;
  std::uint64_t copied_bytes_ = 0;
};

}  // namespace pascaline
