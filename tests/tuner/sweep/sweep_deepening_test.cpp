#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "db/sweep_plan.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

// What a sweep does with the time that its searches leave. Spaces are small, so that this ends long before the limit.
namespace pascaline::testing {
namespace {

constexpr double kLongEnough = 300;

class SweepDeepeningTest : public SimulatedSweepTest {
 protected:
  std::vector<std::string> told_;
  std::vector<std::string> winners_;  ///< of the problem that finals were of, in order

  SweepDeepeningTest() {
    options_.trials = kUnlimitedTrials;
    options_.min_gain = 0;
    options_.budget_s = kLongEnough;
    events_.note = [this](const std::string& text) { told_.push_back(text); };
    events_.winner = [this](const std::string&, const SweepProblem& wanted, const FinalsResult&, int) {
      winners_.push_back(wanted.problem.text());
    };
  }
  // Blocks of which all cut the problem into as many parts: nearly the same time each.
  void use_blocks(const std::vector<int>& blocks) {
    nlohmann::json json = toy_json({kRight});
    json["parameters"][0]["values"] = blocks;
    json["parameters"][0]["default"] = blocks.front();
    json["dimensions"][0]["varies"] = true;
    write_toys(folder_.path(), {json});
    space_ = Space::load(folder_ / "toy.json");
  }
  // So many configurations that differ in a number of their code alone: whatever the machine does, their times are
  // alike.
  void use_equals(int count) {
    std::vector<Fault> alike;
    for (int i = 0; i < count; ++i) {
      alike.push_back(static_cast<Fault>(kAlike + i));
    }
    nlohmann::json json = toy_json(alike);
    json["parameters"][0].update({{"values", {640}}, {"default", 640}});
    write_toys(folder_.path(), {json});
    space_ = Space::load(folder_ / "toy.json");
  }
  [[nodiscard]] std::size_t times_told(const std::string& part) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        told_, [&](const std::string& text) { return text.find("time left: " + part) != std::string::npos; }));
  }
  [[nodiscard]] SweepProblem problem(const std::string& n) const { return {space_.problem({{"N", n}}), 1, ""}; }
  [[nodiscard]] SweepProblem between(const std::string& n) const {
    return {space_.problem({{"N", n}}), 0, "between others", {}, true};
  }
  [[nodiscard]] SweepSummary sweep_of(const std::vector<SweepProblem>& problems) {
    return run_sweep({space_}, problems, options_, events_, stop_, services_);
  }
  [[nodiscard]] std::vector<StoredTrial> stored_of(const std::string& n, TrialStage stage) const {
    std::vector<StoredTrial> trials = stored(stage);
    std::erase_if(trials, [&](const StoredTrial& trial) { return trial.trial.problem.text() != "toy N=" + n; });
    return trials;
  }
  [[nodiscard]] std::optional<Winner> winner_of(const std::string& n) const {
    for (const Winner& winner : Store(database_, OpenMode::read_only).winners("toy", nullptr)) {
      if (winner.trial.problem.text() == "toy N=" + n) {
        return winner;
      }
    }
    return std::nullopt;
  }
};

TEST_F(SweepDeepeningTest, FinalsThatLeftSomethingOpenAreHeldAgainWithMoreRounds) {
  use_equals(5);
  options_.finals.tie_width = 1e-9;
  const SweepSummary summary = sweep();
  EXPECT_GE(summary.deepening.finals, 1);
  EXPECT_LE(summary.deepening.finals, kMaxFinalsAgain);
  EXPECT_EQ(times_told("finals again, with up to 16 rounds"), 1U);
  EXPECT_LE(summary.deepening.winners_changed, summary.deepening.finals);
  EXPECT_GT(summary.deepening.spent_s, 0);
  std::map<std::string, std::vector<int>> counts;  // of samples, by configuration
  std::int64_t last = 0;
  for (const StoredTrial& trial : stored(TrialStage::finals)) {
    counts[trial.trial.config.text()].push_back(trial.trial.time->count);
    last = std::max(last, trial.id);
  }
  const auto winner = winner_of("1000");
  ASSERT_TRUE(winner);
  const std::vector<int>& of_winner = counts.at(winner->trial.config.text());
  ASSERT_GE(of_winner.size(), 2U);
  EXPECT_GT(of_winner.back(), of_winner.front()) << "more rounds than at first";
  const auto trials = stored(TrialStage::finals);
  const auto newest =
      std::ranges::find_if(trials, [&](const StoredTrial& trial) { return trial.id == winner->trial_id; });
  ASSERT_NE(newest, trials.end());
  EXPECT_LE(last - newest->id, 6) << "the winner is of the last finals";
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(last_state(), "finished");
  EXPECT_LT(summary.wall_s, kLongEnough);
  expect_sound();
}

// Measuring an energy takes seconds: held again, finals at the same clock and temperature have it from those before.
TEST_F(SweepDeepeningTest, FinalsThatAreHeldAgainTakeNoEnergyTwice) {
  use_equals(5);
  options_.finals.tie_width = 1e-9;
  options_.finals.energy_after_search_s = 0;
  options_.finals.energy_window_ms = 100;
  options_.governor.passive = true;
  options_.sensors = folder_ / "trace.json";
  services_ = real_services();  // whose workers read sensors
  write_file_atomically(options_.sensors, R"({"repeat_s": 0.1, "steps": [
      {"at_s": 0, "power_w": 50, "temperature_c": 60, "sm_clock_mhz": 1500, "throttle_reasons": 0},
      {"at_s": 0.03, "power_w": 50.05}, {"at_s": 0.07, "power_w": 49.98}]})");
  ASSERT_GE(sweep().deepening.finals, 1);
  std::vector<std::string> measured;
  std::vector<std::string> taken;
  for (const StoredTrial& trial : stored(TrialStage::finals)) {
    if (trial.trial.energy_mj) {
      (trial.trial.reason.empty() ? measured : taken).push_back(trial.trial.config.text());
      EXPECT_GT(*trial.trial.energy_mj, 0);
    }
  }
  EXPECT_FALSE(measured.empty());
  EXPECT_FALSE(taken.empty()) << "the default, at least, which equals are compared with";
  expect_sound();
}

// The searches end as soon as they may, by a --min-gain that no search reaches; what is left after that is not bound by
// it.
TEST_F(SweepDeepeningTest, NeighboursOfTheWinnerThatWereNotTriedAre) {
  std::vector<int> blocks;
  for (int block = 32; block <= 1024; block += 32) {
    blocks.push_back(block);
  }
  use_blocks(blocks);
  options_.min_gain = 1;
  events_.trial = [this](const Trial&, int, int, double, double) { options_.min_gain = 0; };
  const SweepSummary summary = sweep();
  EXPECT_GE(times_told("1"), 1U) << "so many configurations near the winners";
  EXPECT_GT(summary.deepening.neighbours, 0);
  EXPECT_EQ(tried().size(), blocks.size()) << "all differ from the winner in one parameter";
  // Finals follow where one was faster, and only there.
  EXPECT_GE(winners_.size(), static_cast<std::size_t>(1 + summary.deepening.finals));
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

TEST_F(SweepDeepeningTest, AShapeInBetweenBeginsWithItsNeighboursWinnersAndServesTheSizesNearIt) {
  use_blocks({64, 32, 128});
  const SweepSummary summary = sweep_of({problem("1000"), problem("4000"), between("2000")});
  EXPECT_EQ(summary.deepening.shapes, 1);
  EXPECT_EQ(times_told("a shape between others"), 1U);
  EXPECT_EQ(summary.problems_done, 2) << "a shape in between is none of the plan's problems";
  const std::vector<StoredTrial> trials = stored_of("2000", TrialStage::search);
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_TRUE(trials[0].trial.is_default);
  ASSERT_TRUE(winner_of("1000"));
  ASSERT_TRUE(winner_of("2000"));
  const auto device = open_device("emulator");
  DispatcherOptions dispatch;
  dispatch.database = database_;
  dispatch.kernels = folder_.path();
  dispatch.spaces = folder_.path();
  dispatch.cache = options_.cache;
  const Dispatcher dispatcher(*device, dispatch);
  const Plan near = dispatcher.plan(space_.problem({{"N", "2100"}}));
  EXPECT_EQ(near.provenance, Provenance::nearest);
  ASSERT_TRUE(near.tuned_for);
  EXPECT_EQ(near.tuned_for->text(), "toy N=2000");
  EXPECT_EQ(near.config, winner_of("2000")->trial.config);
  EXPECT_EQ(dispatcher.plan(space_.problem({{"N", "1100"}})).tuned_for->text(), "toy N=1000");
  const auto plan = Store(database_, OpenMode::read_only).plan(summary.run);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->problems.size(), 3U);
  EXPECT_EQ(plan->problems[2].count, 0);
}

TEST_F(SweepDeepeningTest, WithoutALimitOfTimeOrWithTimeLeftForTheSearchNothingOfItHappens) {
  use_blocks({64, 32, 128});
  options_.budget_s.reset();
  options_.trials = 100;
  const SweepSummary by_trials = sweep_of({problem("1000"), problem("4000"), between("2000")});
  options_.budget_s = kLongEnough;
  options_.trials = kUnlimitedTrials;
  options_.deepen = false;
  const SweepSummary search_on = sweep_of({problem("1000"), problem("4000"), between("2000")});
  for (const SweepSummary& summary : {by_trials, search_on}) {
    EXPECT_EQ(summary.deepening.finals + summary.deepening.neighbours + summary.deepening.shapes, 0);
    EXPECT_TRUE(summary.not_reached.empty());
    EXPECT_FALSE(summary.interrupted);
  }
  EXPECT_EQ(times_told(""), 0U);
  EXPECT_TRUE(stored_of("2000", TrialStage::search).empty());
  EXPECT_EQ(last_state(), "finished");
}

TEST_F(SweepDeepeningTest, WhereNothingMayGainThatMuchTheSweepEnds) {
  use_blocks({64, 32, 128});
  options_.min_gain = 1;
  const SweepSummary summary = sweep_of({problem("1000"), problem("4000"), between("2000")});
  EXPECT_EQ(summary.deepening.finals + summary.deepening.neighbours + summary.deepening.shapes, 0);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_LT(summary.wall_s, kLongEnough);
}

// More shapes in between than there is time for.
TEST_F(SweepDeepeningTest, TheLimitHoldsAsEver) {
  use_blocks({64, 32, 128});
  options_.budget_s = 30;
  options_.measure.min_samples = options_.measure.max_samples = 1'000'000;
  options_.measure.budget_ms = 200;
  options_.measure.race_error = 0;
  std::vector<SweepProblem> problems{problem("1000"), problem("4000")};
  for (int n = 1100; n < 4000; n += 100) {
    problems.push_back(between(std::to_string(n)));
  }
  const SweepSummary summary = sweep_of(problems);
  EXPECT_LE(summary.wall_s, 30.1);
  EXPECT_GE(summary.deepening.shapes, 1);
  EXPECT_LT(summary.deepening.shapes, 29) << "three trials of 0.7 s each";
  EXPECT_FALSE(summary.interrupted);
  EXPECT_TRUE(summary.not_reached.empty()) << "what was not begun in between is not missed";
  EXPECT_TRUE(winner_of("1000"));
  EXPECT_TRUE(winner_of("4000"));
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

/// The program, of which the searches and what comes after them can be resumed.
class SweepDeepeningProgramTest : public SweepDeepeningTest {
 protected:
  void SetUp() override {
    SweepDeepeningTest::SetUp();
    use_blocks({64, 32, 128});
    write_bytes(folder_ / "sizes.json",
                R"({"schema": 1, "name": "sizes", "description": "two sizes", "source": "a test",
      "phases": [{"name": "prompt", "per": "prompt of S tokens", "symbols": {"S": [10, 20]}}],
      "entries": [{"kernel": "toy", "name": "first", "phase": "prompt", "dimensions": {"N": "100 * S"}, "count": 2}]})");
  }
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more) const {
    const std::string folder = folder_.path().string();
    std::vector<std::string> words{"sweep",    "--kernels", folder,   "--spaces", folder, "--db", database_.string(),
                                   "--device", "emulator",  "--jobs", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] std::vector<std::string> of_sizes(const std::vector<std::string>& more) const {
    std::vector<std::string> all{
        "--workload", (folder_ / "sizes.json").string(), "--warm-cache", "--max-samples", "10", "--rounds", "4"};
    all.insert(all.end(), more.begin(), more.end());
    return words(all);
  }
  [[nodiscard]] SweepPlan plan() const {
    const Store store(database_, OpenMode::read_only);
    return store.plan(store.sessions().at(0).run_uuid).value();
  }
};

TEST_F(SweepDeepeningProgramTest, AWorkloadsSymbolsSayWhatVaries) {
  const auto json = json_of(run_program(folder_.path(), of_sizes({"--budget", "300s", "--min-gain", "0", "--json"})));
  EXPECT_EQ(json.at("deepening").at("shapes"), 1);
  EXPECT_EQ(json.at("problems_done"), 2);
  EXPECT_EQ(json.at("phases").at(0).at("problems"), 2) << "the shape in between is in no phase";
  ASSERT_EQ(plan().problems.size(), 3U);
  EXPECT_EQ(plan().problems[2].problem.text(), "toy N=1400");
  EXPECT_EQ(plan().problems[2].label, "between S=10 and S=20; prompt: first");
  EXPECT_TRUE(winner_of("1400"));
  const ProgramResult trials = run_program(folder_.path(), of_sizes({"--trials", "5"}));
  EXPECT_EQ(trials.exit_code, 0);
  EXPECT_EQ(trials.out.find("time left"), std::string::npos) << trials.out;
  EXPECT_EQ(plan().problems.size(), 2U) << "without a limit of time there is nothing in between";
  const ProgramResult off = run_program(folder_.path(), of_sizes({"--budget", "300s", "--time-left", "search"}));
  EXPECT_EQ(off.out.find("time left"), std::string::npos) << off.out;
  EXPECT_FALSE(plan().deepen);
}

TEST_F(SweepDeepeningProgramTest, KilledInTheMiddleItIsResumed) {
  const std::vector<std::string> slow{"--budget",      "300s",   "--min-gain",         "0",   "--min-samples", "100000",
                                      "--max-samples", "100000", "--sample-budget-ms", "200", "--race-error",  "0"};
  const int sweep = start_program(folder_.path(), of_sizes(slow));
  const auto begun = [&] {
    try {
      return !stored_of("1400", TrialStage::search).empty();
    } catch (const Error&) {
      return false;  // there is no database yet
    }
  };
  for (int i = 0; i < 6000 && !begun(); ++i) {
    ::usleep(10'000);
  }
  ::kill(sweep, SIGKILL);
  std::ignore = wait_child(sweep);
  ASSERT_TRUE(begun());
  const SweepPlan before = plan();
  const ProgramResult resumed = run_program(folder_.path(), words({"--resume"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  EXPECT_EQ(resumed.out.find("N=1400", 0) < resumed.out.find('\n'), false) << "no problem of the plan: " << resumed.out;
  EXPECT_EQ(plan().problems, before.problems);
  EXPECT_TRUE(plan().deepen);
  std::map<std::string, std::set<std::string>> tried;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    EXPECT_TRUE(tried[trial.trial.problem.text()].insert(trial.trial.config.text()).second)
        << trial.trial.problem.text() << ": " << trial.trial.config.text() << " twice";
  }
  EXPECT_EQ(tried.at("toy N=1400").size(), 3U);
  EXPECT_TRUE(winner_of("1400"));
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
