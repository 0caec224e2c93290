#pragma once

#include <cstdint>
#include <span>

#include "runtime/model/executor.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline {

/// Throws Error, which says what can be done, unless all logits are below infinity.
void check_logits(std::span<const float> logits);

/// Chooses tokens on the device: what that depends on lies in its memory, so that it can be recorded.
class Sampler {
 public:
  /// `executor` must outlive it.
  Sampler(Executor& executor, std::int64_t vocabulary);

  /// Bytes of device memory that one takes, but for some small change.
  [[nodiscard]] static std::uint64_t bytes_for(std::int64_t vocabulary) noexcept {
    return static_cast<std::uint64_t>(vocabulary) * sizeof(std::int32_t);
  }

  /// Sets how tokens are chosen, and which were seen so far. Throws as `ops::check_settings`.
  void set(const ops::SamplingSettings& settings, std::span<const std::int32_t> seen);
  /// The choice from logits [vocabulary].
  [[nodiscard]] ops::Sample choice(const TensorView& logits) const;
  /// Waits, and gives the token chosen last. Throws Error if none of its logits was a number.
  [[nodiscard]] std::int32_t token();
  /// Where kernels find that: [1], int32.
  [[nodiscard]] TensorView token_of_kernels() const;
  /// Puts another token in its place, as if it had been chosen.
  void put(std::int32_t token);

 private:
  Executor* executor_;
  std::int64_t vocabulary_;
  RawBuffer settings_;
  RawBuffer top_k_;
  RawBuffer generator_;
  RawBuffer seen_;
  PinnedBuffer choice_;  // a token, and its probability behind it, which kernels write where the processor reads them
};

}  // namespace pascaline
