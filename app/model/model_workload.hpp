#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "app/model/model_options.hpp"
#include "app/model/model_passes.hpp"

namespace pascaline {

/// What a model launches, as a workload: docs/workloads.md.
struct ModelWorkload {
  std::string text;         ///< the document, JSON
  std::size_t entries = 0;  ///< calls of one problem in one phase each
  std::size_t untuned = 0;  ///< of them, dispatched as nearest, default or fallback
  std::string device{};     ///< id and name
};

/// A model's name for people: its folder's.
[[nodiscard]] std::string model_name(const std::filesystem::path& folder);

/// Follows the model once for each size, as it would run on the device and with the types that `model` says, and writes
/// down what it launches: phase "prompt" for reading prompts, "token" for the decoding step after each, "image" for a
/// prompt that is an image (of `sizes`, or of the largest usual size that fits). Nothing is compiled, loaded or
/// launched (see ModelSessionOptions::observe_only). `dispatcher` says which problems have a winner of their own;
/// without it none counts as tuned. Throws Error and its kinds as the session does, and if the model runs on the
/// processor.
[[nodiscard]] ModelWorkload observe_workload(const ModelCommandOptions& model, PassCommandOptions sizes,
                                             const std::string& name, const Dispatcher* dispatcher = nullptr);

}  // namespace pascaline
