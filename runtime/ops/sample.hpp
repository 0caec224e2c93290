#pragma once

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/ops/sample_host.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::ops {

/// The next token from logits, as SamplingSettings describe it. All of it lies in device memory and is read when the
/// launch runs, so that a recorded one can be repeated; its contents are not checked: see `check_settings`. Dense.
struct SampleArguments {
  TensorView logits;       ///< [VOCABULARY], float32; at most kMaxVocabulary
  TensorView settings;     ///< [4], float32: `device_settings`
  TensorView top_k;        ///< [1], int32
  TensorView generator;    ///< [2], int64: seed and number of the draw, to which one is added
  TensorView seen;         ///< [VOCABULARY], int32: how often each token was seen; counts the chosen one
  TensorView token;        ///< [1], int32: the chosen one
  TensorView probability;  ///< [1], float32: its probability among those kept; 0 if all logits were NaN (token 0)
};

/// Launches it; does not wait. What is written overlaps nothing. Gives what `sample_on_host` gives, to the bit. Throws
/// Error for what does not fit (shapes, types, alignment, overlap), and whatever `launch` throws.
void sample(Dispatcher& dispatcher, const SampleArguments& arguments);

/// Adds one to `length`[1], `slots`[1] and `positions`[3,1], int32 on the device: to where the next token of a decoding
/// step goes. Does not wait. Throws as `sample`.
void advance(Dispatcher& dispatcher, const TensorView& length, const TensorView& slots, const TensorView& positions);

}  // namespace pascaline::ops
