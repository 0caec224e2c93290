#include "tests/tuner/simulation/simulated_fixture.hpp"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

namespace pascaline::testing {

namespace {

bool has_fault(const CompileRequest& request, Fault fault) {
  return std::ranges::find(request.defines, "FAULT=" + std::to_string(fault)) != request.defines.end();
}

}  // namespace

void SimulatedSweepTest::use_space(const std::vector<Fault>& faults, const std::vector<int>& blocks) {
  nlohmann::json json = toy_json(faults);
  json["parameters"][0]["values"] = blocks;
  write_toys(folder_.path(), {json});
  space_ = Space::load(folder_ / "toy.json");
}

std::map<TrialStatus, int> SimulatedSweepTest::statuses() const {
  std::map<TrialStatus, int> counts;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    ++counts[trial.trial.status];
  }
  return counts;
}

bool SimulatedSweepTest::noted(const std::string& text) const {
  return std::ranges::any_of(notes_, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

void SimulatedSweepTest::expect_complete(std::size_t configurations) const {
  expect_sound();
  EXPECT_EQ(tried().size(), configurations);
  EXPECT_EQ(last_state(), "finished");
  EXPECT_EQ(Store(database_, OpenMode::read_only).winners("toy", nullptr).size(), 1U);
}

void SimulatedSweepTest::kill() const {
  for (const char* const end : {"", "-wal"}) {
    if (std::filesystem::exists(database_.string() + end)) {
      std::filesystem::copy_file(database_.string() + end, (folder_ / "killed.db").string() + end);
    }
  }
  throw KilledSweep();
}

bool SimulatedSweepTest::ends_unkilled(const std::function<void()>& sweep) const {
  try {
    sweep();
    return true;
  } catch (const KilledSweep&) {
    // Its exception has it store that it failed; a process that is killed stores nothing more.
    for (const char* const end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(database_.string() + end);
      if (std::filesystem::exists((folder_ / "killed.db").string() + end)) {
        std::filesystem::rename((folder_ / "killed.db").string() + end, database_.string() + end);
      }
    }
    SQLite::Database(database_.string(), SQLite::OPEN_READWRITE)
        .exec("UPDATE sessions SET process_start = process_start - 1");  // of another process with the same number
    return false;
  }
}

double SimulatedSweepTest::compile_s(const CompileRequest& request) const {
  return has_fault(request, kHangsCompiler) ? kForever : compile_s_;
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
