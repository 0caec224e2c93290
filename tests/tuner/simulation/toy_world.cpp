#include "tests/tuner/simulation/toy_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tuner/simulation/simulation.hpp"
#include "tuner/sweep/sweep.hpp"

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

void tune_toy(const std::filesystem::path& folder, const std::filesystem::path& database, int trials) {
  SweepOptions options;
  options.files.kernels = options.files.spaces = folder;
  options.files.cache = test_cache();
  options.database = database;
  options.trials = trials;
  options.compile.jobs = 2;
  options.measure.cold_cache = false;
  options.measure.min_samples = 3;
  options.measure.max_samples = 5;
  options.finals.rounds = 2;
  options.record.command_line = "pascaline sweep --kernel toy";
  options.record.paths = {{"--kernels", folder.string()}, {"--spaces", folder.string()}};
  const Space space = Space::load(folder / "toy.json");
  const ToyWorld world;
  Simulation simulation(world, {list_devices().back()});
  const SweepSummary summary =
      run_sweep({space}, {{space.example_problem(), 1, ""}}, options, {}, false, simulation.services());
  EXPECT_EQ(summary.trials, trials);
}

}  // namespace pascaline::testing
