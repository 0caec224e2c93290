#include "tests/tuner/simulation/simulated_fixture.hpp"

#include <algorithm>

namespace pascaline::testing {

std::string SimulatedSweepTest::compile_failure(const CompileRequest& request) const {
  const bool fails =
      std::ranges::find(request.defines, "FAULT=" + std::to_string(kDoesNotCompile)) != request.defines.end();
  return fails ? "it does not compile" : "";
}

double SimulatedSweepTest::verify_s(const Problem& /*problem*/, const Config& /*config*/) const { return 0.5; }

SimulatedResult SimulatedSweepTest::measure(const Problem& problem, const Config& config) const {
  if (config.integer("FAULT") == kNotANumber) {
    return {.status = TrialStatus::wrong_result, .reason = "out[5]: nan"};
  }
  if (config.integer("FAULT") == kEndless) {
    return {.time_us = kForever};
  }
  return {.time_us = 10.0 + static_cast<double>(problem.dimension("N")) / static_cast<double>(config.integer("BLOCK"))};
}

}  // namespace pascaline::testing
