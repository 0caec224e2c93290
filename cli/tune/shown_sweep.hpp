#pragma once

#include <atomic>
#include <cstdio>

#include "app/sweep/prepared_sweep.hpp"
#include "tuner/services/services.hpp"

namespace pascaline::cli {

/// Runs the sweep, shows it on `out` and in its log as it goes, and returns the exit code. `stop` is the user's
/// interrupt. Throws what `run_sweep` throws, and Error, with the command that resumes it, if its devices were lost.
[[nodiscard]] int run_shown(const PreparedSweep& prepared, std::FILE* out, const std::atomic<bool>& stop,
                            const SweepServices& services = real_services());

}  // namespace pascaline::cli
