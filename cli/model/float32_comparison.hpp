#pragma once

#include <cstdint>
#include <string>

#include "app/model/model_options.hpp"
#include "cli/model/validation_text.hpp"
#include "model/logit_divergence.hpp"

namespace pascaline::cli {

/// How a model as it was asked for compares with one in float32.
struct Float32Comparison {
  LogitDivergence divergence;
  std::string device;   ///< by its full name
  std::string weights;  ///< of the model as it was asked for
  std::string float32_device;
};

/// The model of `folder` (empty: the same) with float32 weights and cache, on that device without a memory limit
/// (empty: the same device and limit).
[[nodiscard]] ModelCommandOptions in_float32(const ModelCommandOptions& options, const std::string& folder,
                                             const std::string& device);

/// Runs the model of `options`, whose folder that is, over the windows, and after it that of `float32`; only one is
/// loaded at a time, and the logits of the first are kept in a LogitFile meanwhile. Throws Error for logits that are
/// not finite, naming model and token, and if the float32 model does not fit its device; and as LogitFile and
/// ModelSession do.
[[nodiscard]] Float32Comparison compare_with_float32(ModelFolder folder, const ModelCommandOptions& options,
                                                     const ModelCommandOptions& float32, const Passages& passages,
                                                     std::int64_t window);

}  // namespace pascaline::cli
