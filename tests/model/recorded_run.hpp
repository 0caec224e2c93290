#pragma once

#include <filesystem>

#include "model/executor.hpp"
#include "tests/model/golden_run.hpp"

namespace pascaline::testing {

/// Runs the model of a folder and compares all logits with those that another program recorded in its
/// reference.safetensors, in the format of `pascaline validate`: the prompt, read in one pass, in chunks and token by
/// token, and the tokens after it, read one by one and as an answer is made. The model only reads text.
void check_recorded(Executor& executor, const std::filesystem::path& folder, const GoldenTolerance& tolerance = {});
/// Likewise of a folder or GGUF file, with what that file holds.
void check_recorded(Executor& executor, const std::filesystem::path& model, const std::filesystem::path& reference,
                    const GoldenTolerance& tolerance);

}  // namespace pascaline::testing
