#pragma once

#include "cli/tune/rank_options.hpp"

namespace pascaline::cli {

/// `pascaline rank --against`: compares the model's order with stored times and prints that. `one_kernel`: only the
/// kernel of the options. Returns the exit code; throws Error if there is nothing to compare with.
[[nodiscard]] int rank_against(const RankCommandOptions& options, bool one_kernel);

}  // namespace pascaline::cli
