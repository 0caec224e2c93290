#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/ops.hpp"

namespace pascaline {

/// The operations that a model is made of.
enum class Operation : std::uint8_t {
  matmul,
  attention_prefill,
  attention_decode,
  rmsnorm,
  layernorm,
  qk_norm_rope,
  rope_vision,
  add,
  gather,
  position_embedding,
  sample,
  advance,
  kCount
};

/// "matmul" and so on, as the operations' functions are called.
[[nodiscard]] const char* name_of(Operation operation) noexcept;

/// Runs a model's operations on a device, each launch chosen by a dispatcher; or on the processor. An operation whose
/// kernel cannot be built or launched falls back to the processor with one warning, and stays there: its operands are
/// brought there and back, and everything before it is waited for. One thread at a time.
class Executor {
 public:
  /// On the dispatcher's device. Both must outlive it. `warnings` may be null.
  explicit Executor(Dispatcher& dispatcher, std::FILE* warnings = stderr);
  /// On the processor, with the memory of the host device, or with `memory` over it, which must outlive it.
  explicit Executor(Device& host, DeviceMemory* memory = nullptr);

  [[nodiscard]] Device& device() const noexcept { return *device_; }
  /// The dispatcher's.
  [[nodiscard]] DeviceMemory& memory() const noexcept { return *memory_; }
  /// Null on the processor.
  [[nodiscard]] Dispatcher* dispatcher() const noexcept { return dispatcher_; }
  /// Whether any operation so far fell back; whether that one did, which then cannot be recorded.
  [[nodiscard]] bool fell_back() const noexcept { return fell_back_; }
  [[nodiscard]] bool fell_back(Operation operation) const noexcept {
    return falls_back_[static_cast<std::size_t>(operation)];
  }
  [[nodiscard]] bool on_processor() const noexcept { return dispatcher_ == nullptr; }

  // As the functions of these names in runtime/ops. Errors that are none of the operation's call are thrown on: want
  // of memory, a device that is lost, and wrong arguments, which the processor's operation refuses, too.
  void matmul(const ops::MatmulArguments& given);
  void attention_prefill(const ops::AttentionPrefillArguments& given);
  void attention_decode(const ops::AttentionDecodeArguments& given);
  void rmsnorm(const ops::RmsnormArguments& given);
  void layernorm(const ops::LayernormArguments& given);
  void qk_norm_rope(const ops::QkNormRopeArguments& given);
  void rope_vision(const ops::RopeVisionArguments& given);
  void add(const TensorView& a, const TensorView& b, const TensorView& y);
  void gather(const TensorView& table, const TensorView& indices, const TensorView& y);
  void position_embedding(const ops::PositionEmbeddingArguments& given);
  void sample(const ops::SampleArguments& given);
  void advance(const TensorView& length, const TensorView& slots, const TensorView& positions);

 private:
  template <typename Arguments>
  void run(Operation operation, const Arguments& given, void (*on_device)(Dispatcher&, const Arguments&),
           void (*on_host)(const Arguments&));
  void warn(Operation operation, const std::string& reason);

  Device* device_;
  DeviceMemory* memory_;
  Dispatcher* dispatcher_ = nullptr;
  std::FILE* warnings_ = nullptr;
  std::array<bool, static_cast<std::size_t>(Operation::kCount)> falls_back_{};
  bool fell_back_ = false;
};

}  // namespace pascaline
