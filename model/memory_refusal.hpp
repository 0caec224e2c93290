#pragma once

#include <vector>

#include "model/memory_layout.hpp"

namespace pascaline {

/// What is left on the device if as much as the options allow is elsewhere.
[[nodiscard]] ModelResidency smallest_residency(const ModelConfig& config, const ModelOptions& options);

/// Throws OutOfMemoryError with what `lay_out_model` says of a model that does not fit; `parts` are what it needs at
/// least.
[[noreturn]] void refuse_model(const ModelHome& home, const ModelConfig& config, const ModelOptions& options,
                               const std::vector<MemoryPart>& parts);

}  // namespace pascaline
