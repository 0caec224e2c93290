#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tuner/program.hpp"
#include "tests/tuner/simulation/toy_world.hpp"

namespace pascaline::testing {

/// Runs `pascaline sweep`, whose words these are, in this process and with simulated workers: what it prints and stores
/// is the program's. An Error is its one line on stderr.
[[nodiscard]] ProgramResult simulate_command(const std::filesystem::path& folder, const std::vector<std::string>& words,
                                             const SimulatedWorld& world = ToyWorld());

}  // namespace pascaline::testing
