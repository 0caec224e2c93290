#include "tests/tuner/simulation/simulated_fixture.hpp"

#include <algorithm>

namespace pascaline::testing {

namespace {

bool has_fault(const CompileRequest& request, Fault fault) {
  return std::ranges::find(request.defines, "FAULT=" + std::to_string(fault)) != request.defines.end();
}

}  // namespace

double SimulatedSweepTest::compile_s(const CompileRequest& request) const {
  return has_fault(request, kHangsCompiler) ? kForever : SimulatedWorld::compile_s(request);
}

std::string SimulatedSweepTest::compile_failure(const CompileRequest& request) const {
  return broken_references_.contains(request.function) ? "#error no"
         : has_fault(request, kDoesNotCompile)         ? "wrong on purpose"
         : has_fault(request, kCrashesCompiler)        ? "the compiler crashed: ended by signal 11"
                                                       : "";
}

bool SimulatedSweepTest::compiler_crashes(const CompileRequest& request) const {
  return has_fault(request, kCrashesCompiler);
}

SimulatedResult SimulatedSweepTest::measure(const Problem& problem, const Config& config) const {
  switch (config.integer("FAULT")) {
    case kNotANumber:
      return {.status = TrialStatus::wrong_result, .reason = "error inf above the tolerance"};
    case kLastElementLeftOut:
      return {.status = TrialStatus::wrong_result, .reason = "error 1 above the tolerance"};
    case kWriteBehind:
      return {.status = TrialStatus::wrong_result, .reason = "wrote outside of buffer 'out'"};
    case kDeadlock:
      return {.status = TrialStatus::launch_failed, .reason = "the threads of a block wait for each other"};
    case kIllegalAddress:
      return {.status = TrialStatus::crashed, .reason = "the measuring process ended: signal 11"};
    case kEndless:
      return {.time_us = kForever};
    default:
      return {.time_us =
                  10.0 + static_cast<double>(problem.dimension("N")) / static_cast<double>(config.integer("BLOCK"))};
  }
}

}  // namespace pascaline::testing
