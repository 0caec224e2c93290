#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline {

/// Keys and values of a sequence's tokens, for every layer. Addresses are reserved for the whole context and get memory
/// in steps as it fills, so that nothing moves; where the device cannot do that, all of it is allocated at once. In
/// int8 each head of a token has a scale for its key and one for its value (docs/formats.md); they are far smaller than
/// a page for each layer, and move to a larger buffer where the cache grows.
class KvCache {
 public:
  /// For up to `context` tokens; `type` is float32, float16 or int8. `memory` must outlive it. Throws Error for a
  /// context below 1, and as the device does.
  KvCache(DeviceMemory& memory, const TextConfig& config, ElementType type, std::int64_t context)
      : KvCache(memory, config, type, context, config.layers) {}
  /// The same of only so many of the layers, 1 at least.
  KvCache(DeviceMemory& memory, const TextConfig& config, ElementType type, std::int64_t context, std::int64_t layers);

  /// Makes room for so many tokens, and for some more if the device has memory for that. Throws Error beyond the
  /// context, and OutOfMemoryError that says how much memory is wanting and what needs less; it may be called again.
  void reserve(std::int64_t tokens);

  /// Bytes that room for so many tokens takes of `memory`, at the beginning of a context of that length.
  [[nodiscard]] static std::uint64_t bytes_for(DeviceMemory& memory, const TextConfig& config, ElementType type,
                                               std::int64_t context, std::int64_t tokens);

  /// Tokens that there is room for. Rooms are twice the one before from kStep up to kMaxDoubled, then kLongStep more,
  /// and no larger than the context; where memory is short, what just holds the tokens.
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::int64_t context() const noexcept { return context_; }
  [[nodiscard]] ElementType type() const noexcept { return type_; }
  [[nodiscard]] std::int64_t layers() const noexcept { return static_cast<std::int64_t>(places_.size() / 2); }
  /// [capacity, kv_heads, head_dim] of a layer.
  [[nodiscard]] TensorView keys(std::int64_t layer) const;
  [[nodiscard]] TensorView values(std::int64_t layer) const;
  /// [capacity, kv_heads] in float32, of int8; else tensors that are not there. `reserve` may move them.
  [[nodiscard]] TensorView key_scales(std::int64_t layer) const;
  [[nodiscard]] TensorView value_scales(std::int64_t layer) const;
  /// Bytes of memory behind it.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Bytes of one token in all layers.
  [[nodiscard]] std::uint64_t token_bytes() const noexcept { return (row_bytes_ + scale_bytes_) * places_.size(); }

  /// The smallest room that is made, the largest that was doubled, and what is added from there on.
  static constexpr std::int64_t kStep = 256;
  static constexpr std::int64_t kMaxDoubled = 8192;
  static constexpr std::int64_t kLongStep = 4096;

 private:
  [[nodiscard]] TensorView view(std::size_t place) const;
  [[nodiscard]] TensorView scales(std::size_t place) const;
  [[nodiscard]] std::uint64_t missing_bytes(std::int64_t tokens) const;
  [[nodiscard]] bool map(std::int64_t tokens);
  [[nodiscard]] bool take(std::int64_t tokens, std::int64_t most);
  void move_scales(std::int64_t tokens);

  DeviceMemory* memory_;
  std::int64_t kv_heads_;
  std::int64_t head_dim_;
  ElementType type_;
  std::int64_t context_;
  std::int64_t capacity_ = 0;
  std::size_t row_bytes_;
  std::size_t scale_bytes_;             // of a token's keys or values in a layer; 0 if they have none
  std::size_t page_bytes_ = 1;          // in which memory is put behind addresses
  std::vector<GrowingBuffer> growing_;  // keys and values of a layer in turn
  std::vector<RawBuffer> whole_;        // instead, where addresses cannot be reserved
  std::vector<void*> places_;
  RawBuffer scales_;  // of each of these in turn, for `capacity_` tokens
};

}  // namespace pascaline
