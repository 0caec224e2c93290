#include "tuner/simulation/recorded_sweep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/util/draft_folder.hpp"
#include "core/util/paths.hpp"
#include "tuner/simulation/simulation.hpp"

namespace pascaline {
namespace {

constexpr const char* kCandidate = "CANDIDATE";
constexpr const char* kSearch = "SEARCH";

// A space of candidates by number, which are proposed as a portfolio is.
Space candidates_space(const std::string& kernel, std::size_t most) {
  std::vector<std::size_t> numbers(most);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  const nlohmann::json json{
      {"schema", 1},
      {"kernel", kernel},
      {"dimensions",
       {{{"name", kSearch}, {"minimum", 0}},
        {{"name", "CANDIDATES"}},
        {{"name", "FLOPS"}, {"minimum", 0}},
        {{"name", "BYTES"}, {"minimum", 0}}}},
      {"types", nlohmann::json::array()},
      {"parameters", {{{"name", kCandidate}, {"values", numbers}, {"default", 0}}}},
      {"constraints", {{{"require", "CANDIDATE < CANDIDATES"}, {"because", "so many were recorded"}}}},
      {"macros", {{{"name", "SEARCH_NUMBER"}, {"value", kSearch}}}},
      {"launch", {{"function", kernel}, {"block", {32}}, {"grid", {1}}}},
      {"arguments", {{{"name", "out"}, {"buffer", "float32"}, {"access", "out"}, {"extent", 1}}}},
      {"reference", {{"default", true}}},
      {"tolerance", {{"float32", 1e-6}}},
      {"work", {{"flops", "FLOPS"}, {"bytes", "BYTES"}}}};
  Space space = Space::parse(json.dump(), kernel + ".json");
  for (std::size_t number = 1; number < most; ++number) {
    space.portfolio.push_back({static_cast<std::uint16_t>(number)});
  }
  return space;
}

std::size_t value_of(const std::vector<std::string>& defines, const std::string& macro) {
  const auto found =
      std::ranges::find_if(defines, [&](const std::string& define) { return define.starts_with(macro + "="); });
  return std::stoul(found->substr(macro.size() + 1));
}

class RecordedWorld final : public SimulatedWorld {
 public:
  explicit RecordedWorld(const SweepRecording& recording) : recording_(recording) {}

  [[nodiscard]] double compile_s(const CompileRequest& request) const override { return built(request).build_s; }
  [[nodiscard]] std::string compile_failure(const CompileRequest& request) const override {
    return built(request).trial_s() > 0
               ? std::string()
               : fmt::format("candidate {} did not come to the device", value_of(request.defines, kCandidate));
  }
  [[nodiscard]] double prepare_s(const Problem& problem) const override { return search(problem).preparation_s; }
  [[nodiscard]] double finalist_s(const Problem& problem) const override { return search(problem).finalist_s; }
  [[nodiscard]] double verify_s(const Problem& problem, const Config& config) const override {
    return candidate(problem, config).verify_s;
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override {
    const RecordedCandidate& recorded = candidate(problem, config);
    SimulatedResult result;
    result.status = recorded.usable() ? TrialStatus::ok : TrialStatus::wrong_result;
    result.time_us = recorded.time_us;
    result.measure_s = recorded.measure_s;
    return result;
  }
  [[nodiscard]] const RecordedCandidate& candidate(const Problem& problem, const Config& config) const {
    return search(problem).candidates[static_cast<std::size_t>(config.integer(kCandidate))];
  }

 private:
  [[nodiscard]] const RecordedSearch& search(const Problem& problem) const {
    return recording_.searches[static_cast<std::size_t>(problem.dimension(kSearch))];
  }
  [[nodiscard]] const RecordedCandidate& built(const CompileRequest& request) const {
    return recording_.searches[value_of(request.defines, "SEARCH_NUMBER")]
        .candidates[value_of(request.defines, kCandidate)];
  }

  const SweepRecording& recording_;
};

// Nothing of a played sweep is kept: its database is in memory where that is possible, so that it waits for no disk.
std::filesystem::path memory_files() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : temporary_files();
}

}  // namespace

double saved_area(const SweepRecording& recording, const std::vector<TimedDecision>& decisions, double limit_s,
                  std::size_t search) {
  const RecordedSearch& of = recording.searches[search];
  double area = 0;
  double time_us = of.candidates.front().time_us;
  for (const TimedDecision& decision : decisions) {
    if (decision.search == search && decision.at_s < limit_s) {
      area += of.calls * (time_us - decision.time_us) * (limit_s - decision.at_s);
      time_us = decision.time_us;
    }
  }
  return area;
}

double saved_area(const SweepRecording& recording, const std::vector<TimedDecision>& decisions, double limit_s) {
  double area = 0;
  for (std::size_t search = 0; search < recording.searches.size(); ++search) {
    area += saved_area(recording, decisions, limit_s, search);
  }
  return area;
}

PlayedSweep play(const SweepRecording& recording, double limit_s) {
  const DraftFolder folder(memory_files() / "pascaline-played-sweep");
  std::map<std::string, std::size_t> most;
  for (const RecordedSearch& search : recording.searches) {
    most[search.kernel] = std::max(most[search.kernel], search.candidates.size());
  }
  std::vector<Space> spaces;
  for (const auto& [kernel, candidates] : most) {
    spaces.push_back(candidates_space(kernel, candidates));
    write_file_atomically(folder.path() / (kernel + ".cu"), "extern \"C\" __global__ void " + kernel + "(float*) {}\n");
  }
  std::vector<SweepProblem> problems;
  for (std::size_t i = 0; i < recording.searches.size(); ++i) {
    const RecordedSearch& search = recording.searches[i];
    const Problem problem{search.kernel,
                          {{kSearch, static_cast<std::int64_t>(i)},
                           {"CANDIDATES", static_cast<std::int64_t>(search.candidates.size())},
                           {"FLOPS", static_cast<std::int64_t>(search.flops)},
                           {"BYTES", static_cast<std::int64_t>(search.bytes)}},
                          {}};
    problems.push_back({problem, search.calls, search.problem});
  }
  const RecordedWorld world(recording);
  Simulation simulation(world, {device_info(recording.device)});
  SweepOptions options;
  options.devices = {device_info(recording.device).id};
  options.files.kernels = folder.path();
  options.files.cache = folder.path();
  options.database = folder.path() / "played.db";
  options.search.searcher = kNoSearcher;
  options.search.deepen = false;
  options.trials = kUnlimitedTrials;
  options.record.trials_given = false;
  options.budget_s = limit_s;
  options.compile.jobs = recording.workers;
  PlayedSweep played;
  SweepEvents events;
  events.winner = [&](const std::string&, const SweepProblem& wanted, const FinalsResult& result, int) {
    const RecordedCandidate& winner = world.candidate(wanted.problem, result.trials[result.winner].config);
    const auto search = static_cast<std::size_t>(wanted.problem.dimension(kSearch));
    played.decisions.push_back({simulation.clock().elapsed_s(), search, winner.time_us});
  };
  const std::atomic<bool> stop{false};
  played.summary = run_sweep(spaces, problems, options, events, stop, simulation.services());
  return played;
}

}  // namespace pascaline
