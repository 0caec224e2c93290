#pragma once

#include "app/model/model_options.hpp"
#include "app/model/model_passes.hpp"

namespace pascaline::cli {

/// Prints how each site of a model would be computed, why, and what was measured of its alternatives; as JSON it is a
/// plan that `--fusion FILE` takes. `model.observe_only` and what comes of it is set here. Throws Error and its kinds
/// for what is not there.
void explain_model(const ModelCommandOptions& model, PassCommandOptions sizes, bool as_json);

}  // namespace pascaline::cli
