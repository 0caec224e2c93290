#pragma once

#include <filesystem>
#include <string>

#include "core/space/space.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {

/// A trial of the space with these indices that took `time_us`.
inline Trial timed_trial(const Problem& problem, const Config& config, double time_us) {
  Trial trial;
  trial.problem = problem;
  trial.config = config;
  trial.resources = {.registers = 32, .instructions = 100, .ffma = 10};
  trial.time = TimeSummary{time_us, time_us, time_us, 5};
  return trial;
}

/// Stores `trials` of a problem as measured on a card with 132 SMs by code for sm_61.
inline void store_trials(const std::filesystem::path& file, const Space& space, const std::vector<Trial>& trials,
                         const std::string& kind = "cuda", const std::string& nvrtc = "11.8") {
  Store store(file, OpenMode::create);
  ContextIds ids;
  ids.device = store.device_id({kind, "Test card", kind == "cuda" ? "9.0" : "", 132, 1, R"({"sm_count":132})"});
  ids.toolkit = store.toolkit_id({"nvrtc", nvrtc, kind == "cuda" ? "compute_61" : "host", ""});
  ids.kernel = store.kernel_id({space.kernel, "source"});
  ids.space = store.space_id(space.kernel, space.hash, space.json);
  SessionRow session;
  session.searcher = "random";
  session.options_json = "{}";
  const std::int64_t id = store.begin_session(session, ids.device, ids.toolkit);
  for (const Trial& trial : trials) {
    ids.problem = store.problem_id(trial.problem, 1, 1);
    store.add_trial(id, ids, trial);
  }
  store.end_session(id, "finished");
}

}  // namespace pascaline::testing
