#pragma once

#include "runtime/ops/operation.hpp"
#include "runtime/ops/sample_host.hpp"

namespace pascaline::ops {

/// The next token from logits, as SamplingSettings describe it: what `sample_on_host` gives, to the bit. All of it lies
/// in device memory and is read when the launch runs, so that a recorded one can be repeated; its contents are not
/// checked: see `check_settings`. Dense. What is written overlaps nothing.
struct Sample {
  static constexpr const char* kName = "sample";

  TensorView logits;       ///< [VOCABULARY], float32; at most kMaxVocabulary
  TensorView settings;     ///< [5], float32: `device_settings`
  TensorView top_k;        ///< [1], int32
  TensorView generator;    ///< [2], int64: seed and number of the draw, to which one is added
  TensorView seen;         ///< [VOCABULARY], int32: how often each token was seen; counts the chosen one
  TensorView token;        ///< [1], int32: the chosen one
  TensorView probability;  ///< [1], float32: its probability among those kept; 0 if all logits were NaN (token 0)

  template <typename Self, typename Visit>
  static void operands(Self& self, Visit&& visit) {
    visit("logits", self.logits, Use::read);
    visit("settings", self.settings, Use::read);
    visit("top_k", self.top_k, Use::read);
    visit("generator", self.generator, Use::change);
    visit("seen", self.seen, Use::change);
    visit("token", self.token, Use::write);
    visit("probability", self.probability, Use::write);
  }
  [[nodiscard]] bool check() const;
  [[nodiscard]] KernelProblem problem() const;
  void compute() const;
};

}  // namespace pascaline::ops
