#pragma once

#include <set>
#include <string>

#include "tests/tuner/sweep/sweep_fixture.hpp"
#include "tuner/simulation/simulation.hpp"

namespace pascaline::testing {

/// Sweeps of the toy kernel without compilers, processes and waiting: more threads a block make it quicker, and what
/// FAULT says comes of it.
class SimulatedSweepTest : public SweepTest, protected SimulatedWorld {
 protected:
  Simulation simulation_{*this, {list_devices().back()}};
  std::set<std::string> broken_references_;  ///< their functions; these do not compile
  bool endless_references_ = false;          ///< whether preparing a problem has no end
  double verify_s_ = 0.5;                    ///< a trial, before it is timed

  SimulatedSweepTest() { services_ = simulation_.services(); }
  [[nodiscard]] double compile_s(const CompileRequest& request) const override;
  [[nodiscard]] std::string compile_failure(const CompileRequest& request) const override;
  [[nodiscard]] bool compiler_crashes(const CompileRequest& request) const override;
  [[nodiscard]] double prepare_s(const Problem& problem) const override {
    return endless_references_ ? kForever : SimulatedWorld::prepare_s(problem);
  }
  [[nodiscard]] double verify_s(const Problem& /*problem*/, const Config& /*config*/) const override {
    return verify_s_;
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override;
};

}  // namespace pascaline::testing
