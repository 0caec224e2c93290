#pragma once

#include <set>
#include <string>

#include "tests/tuner/toy_kernel.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline::testing {

/// The toy kernels without compilers and devices: more threads a block make them quicker, and what FAULT says comes of
/// it.
class ToyWorld : public SimulatedWorld {
 public:
  std::set<std::string> broken_references{};  ///< their functions; these do not compile
  bool endless_references = false;            ///< whether preparing any problem has no end
  std::string endless_problem{};              ///< the one whose preparation has no end; empty: none
  double compile_seconds = 0.3;               ///< each variant
  double verify_seconds = 0.5;                ///< a trial, before it is timed

  [[nodiscard]] double compile_s(const CompileRequest& request) const override;
  [[nodiscard]] std::string compile_failure(const CompileRequest& request) const override;
  [[nodiscard]] bool compiler_crashes(const CompileRequest& request) const override;
  [[nodiscard]] double prepare_s(const Problem& problem) const override;
  [[nodiscard]] double verify_s(const Problem& /*problem*/, const Config& /*config*/) const override {
    return verify_seconds;
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override;
};

}  // namespace pascaline::testing
