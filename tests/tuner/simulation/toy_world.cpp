#include "tests/tuner/simulation/toy_world.hpp"

#include <algorithm>

namespace pascaline::testing {
namespace {

bool has_fault(const CompileRequest& request, Fault fault) {
  return std::ranges::find(request.defines, "FAULT=" + std::to_string(fault)) != request.defines.end();
}

}  // namespace

double ToyWorld::compile_s(const CompileRequest& request) const {
  return has_fault(request, kHangsCompiler) ? kForever : compile_seconds;
}

std::string ToyWorld::compile_failure(const CompileRequest& request) const {
  return broken_references.contains(request.function) ? "#error no"
         : has_fault(request, kDoesNotCompile)        ? "wrong on purpose"
         : has_fault(request, kCrashesCompiler)       ? "the compiler crashed: ended by signal 11"
                                                      : "";
}

bool ToyWorld::compiler_crashes(const CompileRequest& request) const { return has_fault(request, kCrashesCompiler); }

SimulatedResult ToyWorld::measure(const Problem& problem, const Config& config) const {
  switch (config.integer("FAULT")) {
    case kNotANumber:
      return {.status = TrialStatus::wrong_result, .reason = "error inf above the tolerance"};
    case kLastElementLeftOut:
      return {.status = TrialStatus::wrong_result, .reason = "error 1 above the tolerance"};
    case kWriteBefore:
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

double ToyWorld::prepare_s(const Problem& problem) const {
  return endless_references || problem.text() == endless_problem ? kForever : SimulatedWorld::prepare_s(problem);
}

}  // namespace pascaline::testing
