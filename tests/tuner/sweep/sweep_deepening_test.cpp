#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "db/sweep_plan.hpp"
#include "runtime/dispatch/dispatcher.hpp"
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
    options_.search.min_gain = 0;
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
  EXPECT_LT(summary.times.wall_s, kLongEnough);
  expect_sound();
}

// Measuring an energy takes seconds: held again, finals at the same clock and temperature have it from those before.
TEST_F(SweepDeepeningTest, FinalsThatAreHeldAgainTakeNoEnergyTwice) {
  use_equals(5);
  options_.finals.tie_width = 1e-9;
  options_.finals.energy_after_search_s = 0;
  options_.finals.energy_window_ms = 100;
  options_.governor.passive = true;
  options_.files.sensors = folder_ / "trace.json";
  write_file_atomically(options_.files.sensors, R"({"repeat_s": 0.1, "steps": [
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
  options_.search.min_gain = 1;
  events_.trial = [this](const Trial&, int, int, double, double) { options_.search.min_gain = 0; };
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
  EXPECT_EQ(summary.problems.done, 2) << "a shape in between is none of the plan's problems";
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
  dispatch.cache = options_.files.cache;
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
  options_.search.deepen = false;
  const SweepSummary search_on = sweep_of({problem("1000"), problem("4000"), between("2000")});
  for (const SweepSummary& summary : {by_trials, search_on}) {
    EXPECT_EQ(summary.deepening.finals + summary.deepening.neighbours + summary.deepening.shapes, 0);
    EXPECT_TRUE(summary.problems.not_reached.empty());
    EXPECT_FALSE(summary.interrupted);
  }
  EXPECT_EQ(times_told(""), 0U);
  EXPECT_TRUE(stored_of("2000", TrialStage::search).empty());
  EXPECT_EQ(last_state(), "finished");
}

TEST_F(SweepDeepeningTest, WhereNothingMayGainThatMuchTheSweepEnds) {
  use_blocks({64, 32, 128});
  options_.search.min_gain = 1;
  const SweepSummary summary = sweep_of({problem("1000"), problem("4000"), between("2000")});
  EXPECT_EQ(summary.deepening.finals + summary.deepening.neighbours + summary.deepening.shapes, 0);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_LT(summary.times.wall_s, kLongEnough);
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
  EXPECT_LE(summary.times.wall_s, 30.1);
  EXPECT_GE(summary.deepening.shapes, 1);
  EXPECT_LT(summary.deepening.shapes, 29) << "three trials of 0.7 s each";
  EXPECT_FALSE(summary.interrupted);
  EXPECT_TRUE(summary.problems.not_reached.empty()) << "shapes in between that were not begun are not listed";
  EXPECT_TRUE(winner_of("1000"));
  EXPECT_TRUE(winner_of("4000"));
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

TEST_F(SweepDeepeningTest, KilledInTheMiddleItIsResumed) {
  use_blocks({64, 32, 128});
  const std::vector<SweepProblem> problems{problem("1000"), problem("4000"), between("2000")};
  events_.trial = [this](const Trial& trial, int, int, double, double) {
    if (trial.problem.text() == "toy N=2000") {
      kill();
    }
  };
  ASSERT_FALSE(ends_unkilled([&] { std::ignore = sweep_of(problems); }));
  ASSERT_FALSE(stored_of("2000", TrialStage::search).empty());
  events_.trial = {};
  const auto plan = [this] {
    const Store store(database_, OpenMode::read_only);
    return store.plan(store.sessions().at(0).run_uuid).value();
  };
  const SweepPlan before = plan();
  options_.record.resume_run = Store(database_, OpenMode::read_only).sessions().at(0).run_uuid;
  EXPECT_FALSE(sweep_of(problems).interrupted);
  EXPECT_EQ(plan().problems, before.problems);
  EXPECT_TRUE(plan().deepen);
  std::map<std::string, std::set<std::string>> configs;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    EXPECT_TRUE(configs[trial.trial.problem.text()].insert(trial.trial.config.text()).second)
        << trial.trial.problem.text() << ": " << trial.trial.config.text() << " twice";
  }
  EXPECT_EQ(configs.at("toy N=2000").size(), 3U);
  EXPECT_TRUE(winner_of("2000"));
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
