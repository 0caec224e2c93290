#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/checkpoint/weight_recipe.hpp"
#include "model/executor.hpp"
#include "runtime/ops/sample.hpp"

namespace pascaline {

/// What to say of logits that are not numbers, with the options that may help: those whose advice is not followed yet.
[[nodiscard]] std::string no_numbers_text(const WeightRecipe& weights, ElementType cache);

/// Throws Error with `no_numbers` unless all logits are below infinity.
void check_logits(std::span<const float> logits, const std::string& no_numbers);

/// Chooses tokens on the device: what that depends on lies in its memory, so that it can be recorded.
class Sampler {
 public:
  /// `executor` must outlive it. `no_numbers` is said where there is nothing to choose from.
  Sampler(Executor& executor, std::int64_t vocabulary, std::string no_numbers);

  /// Bytes of device memory that one takes, but for some small change.
  [[nodiscard]] static std::uint64_t bytes_for(std::int64_t vocabulary) noexcept {
    return static_cast<std::uint64_t>(vocabulary) * sizeof(std::int32_t);
  }

  /// Sets how tokens are chosen, and which were seen so far. Throws as `ops::check_settings`.
  void set(const ops::SamplingSettings& settings, std::span<const std::int32_t> seen);
  /// The choice from logits [vocabulary].
  [[nodiscard]] ops::Sample choice(const TensorView& logits) const;
  [[nodiscard]] const std::string& no_numbers() const noexcept { return no_numbers_; }
  /// Waits, and gives the token chosen last. Throws Error if none of its logits was a number.
  [[nodiscard]] std::int32_t token();
  /// Where kernels find that: [1], int32.
  [[nodiscard]] TensorView token_of_kernels() const;
  /// Puts another token in its place, as if it had been chosen.
  void put(std::int32_t token);

 private:
  Executor* executor_;
  std::int64_t vocabulary_;
  std::string no_numbers_;
  RawBuffer settings_;
  RawBuffer top_k_;
  RawBuffer generator_;
  RawBuffer seen_;
  PinnedBuffer choice_;  // a token, and its probability behind it, which kernels write where the processor reads them
};

}  // namespace pascaline
