#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/session/session.hpp"

namespace pascaline::cli {

/// A part of a model's work that is looked at: reading a prompt, one decoding step, or encoding a picture.
struct ModelPass {
  std::string name;               ///< "prefill", "decode", "image"
  std::string per;                ///< what one pass is, for people
  std::function<void()> prepare;  ///< what comes before it
  std::function<void()> run;      ///< ends when the device is done
};

/// Reading a prompt of that many tokens, any of the vocabulary's, without pictures.
[[nodiscard]] ModelPass prefill_pass(Model& model, std::int64_t tokens);
/// One token after a context of that many, chosen greedily.
[[nodiscard]] ModelPass decode_pass(Model& model, std::int64_t context);
/// Encoding a picture of so many pixels, of any content.
[[nodiscard]] ModelPass image_pass(Model& model, std::int64_t height, std::int64_t width);

/// What launches of one problem took together.
struct LaunchSum {
  const Prepared* prepared = nullptr;
  std::int64_t count = 0;
  double time_us = 0;
};

/// Runs a pass with every launch timed by itself; the sums in the order of the first launches. Throws Error if the
/// model runs on the processor.
[[nodiscard]] std::vector<LaunchSum> observe_pass(Executor& executor, const ModelPass& pass);

}  // namespace pascaline::cli
