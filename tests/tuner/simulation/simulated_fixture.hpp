#pragma once

#include <string>

#include "tests/tuner/sweep/sweep_fixture.hpp"
#include "tuner/simulation/simulation.hpp"

namespace pascaline::testing {

/// Sweeps of the toy kernel without compilers, processes and waiting: more threads a block make it quicker, and what
/// FAULT says comes of it.
class SimulatedSweepTest : public SweepTest, protected SimulatedWorld {
 protected:
  Simulation simulation_{*this, {list_devices().back()}};

  SimulatedSweepTest() { services_ = simulation_.services(); }
  [[nodiscard]] double compile_s(const CompileRequest& request) const override;
  [[nodiscard]] std::string compile_failure(const CompileRequest& request) const override;
  [[nodiscard]] bool compiler_crashes(const CompileRequest& request) const override;
  [[nodiscard]] double verify_s(const Problem& problem, const Config& config) const override;
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override;
};

}  // namespace pascaline::testing
