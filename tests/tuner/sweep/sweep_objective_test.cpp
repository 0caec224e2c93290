#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "db/sweep_plan.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/finals/objective.hpp"
#include "tuner/sweep/budget.hpp"

namespace pascaline::testing {
namespace {

/// Sweeps by another objective on the emulated device, a script standing for its sensors.
class SweepObjectiveTest : public SimulatedSweepTest {
 protected:
  void SetUp() override {
    SimulatedSweepTest::SetUp();
    space_ = make_space({kRight});
    options_.finalists = 1;
    options_.governor.passive = true;
    options_.finals.energy_window_ms = 100;
    tune_for(Objective::energy);
    use_sensors(kLivePower);
  }
  void tune_for(Objective objective) {
    options_.finals.objective = objective_of(objective).defaults();
    options_.finals.objective.max_rounds = 3;
    options_.finals.objective.contender_factor = 1000;
    options_.finals.objective.sustain_first_s = 0.2;
    options_.finals.objective.sustain_again_s = 0.1;
    options_.finals.objective.sustain_window_s = 0.1;
  }
  void use_sensors(const std::string& trace) {
    write_file_atomically(folder_ / "trace.json", trace);
    options_.files.sensors = folder_ / "trace.json";
  }
  [[nodiscard]] std::vector<Winner> winners(Objective objective) const {
    return Store(database_, OpenMode::read_only).winners("toy", nullptr, objective);
  }
  [[nodiscard]] std::string reason_of_refusal() {
    try {
      std::ignore = sweep();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  static constexpr const char* kLivePower =
      R"({"steps": [{"at_s": 0, "power_w": 50}, {"at_s": 0.03, "power_w": 50.05}, {"at_s": 0.07, "power_w": 49.98}],
          "repeat_s": 0.1})";
};

TEST_F(SweepObjectiveTest, WinnerByEnergyIsStoredBesideThatByTime) {
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.problems.done, 1);
  ASSERT_EQ(winners(Objective::time).size(), 1U);
  const std::vector<Winner> by_energy = winners(Objective::energy);
  ASSERT_EQ(by_energy.size(), 1U);
  EXPECT_GT(by_energy[0].trial.energy_mj.value_or(0), 0);
  EXPECT_GT(by_energy[0].baseline_score.value_or(0), 0);
  EXPECT_GE(by_energy[0].confidence, 0.5);
  EXPECT_TRUE(winners(Objective::edp).empty());
  for (const StoredTrial& finalist : stored(TrialStage::finals)) {
    EXPECT_TRUE(finalist.trial.energy_mj) << finalist.trial.config.text();
    // 50 W over what a launch takes back to back, which is about its median.
    EXPECT_GT(*finalist.trial.energy_mj, 0.01 * 50 * finalist.trial.time->median_us / 1000);
  }
  EXPECT_EQ(Store(database_, OpenMode::read_only).plan(summary.run)->objective, Objective::energy);
  EXPECT_TRUE(noted("then finals by time and by energy"));
  expect_sound();
}

TEST_F(SweepObjectiveTest, ByTimeAloneEnergiesAreTakenAfterALongSearch) {
  tune_for(Objective::time);
  EXPECT_EQ(sweep().problems.done, 1);
  ASSERT_EQ(winners(Objective::time).size(), 1U);
  EXPECT_FALSE(winners(Objective::time)[0].trial.energy_mj) << "of a search of a moment";
  options_.finals.energy_after_search_s = 0;
  EXPECT_EQ(sweep({"2000"}).problems.done, 1);
  const std::vector<Winner> found = winners(Objective::time);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const Winner& winner) { return winner.trial.energy_mj > 0; }),
            1);
}

TEST_F(SweepObjectiveTest, PowerThatVanishesCostsOnlyTheObjectiveAndResumingTriesItAgain) {
  use_sensors(R"([{"at_s": 0, "power_w": 50}, {"at_s": 0.05, "power_w": null}])");
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.problems.done, 1);
  EXPECT_EQ(winners(Objective::time).size(), 1U);
  EXPECT_TRUE(winners(Objective::energy).empty());
  EXPECT_TRUE(noted("no winner by energy: the card stopped reporting its power"));

  use_sensors(kLivePower);
  options_.record.resume_run = summary.run;
  const std::size_t measured = stored(TrialStage::search).size();
  EXPECT_EQ(sweep().problems.done, 1);
  EXPECT_EQ(winners(Objective::energy).size(), 1U);
  EXPECT_EQ(stored(TrialStage::search).size(), measured) << "nothing is searched again";

  const std::size_t finals = stored(TrialStage::finals).size();
  std::ignore = sweep();
  EXPECT_EQ(stored(TrialStage::finals).size(), finals) << "both are decided: nothing is left to do";
}

TEST_F(SweepObjectiveTest, PowerThatSticksCostsOnlyTheObjective) {
  use_sensors(R"([{"at_s": 0, "power_w": 50}])");
  EXPECT_EQ(sweep().problems.done, 1);
  EXPECT_EQ(winners(Objective::time).size(), 1U);
  EXPECT_TRUE(winners(Objective::energy).empty());
  EXPECT_TRUE(noted("no winner by energy: the card's power reading is stuck at 50 W"));
}

TEST_F(SweepObjectiveTest, SustainedWorkIsTimedWhereTemperatureOrClockIsTold) {
  tune_for(Objective::sustained);
  use_sensors(R"([{"at_s": 0, "temperature_c": 60}])");
  EXPECT_EQ(sweep().problems.done, 1);
  const std::vector<Winner> sustained = winners(Objective::sustained);
  ASSERT_EQ(sustained.size(), 1U);
  EXPECT_GT(sustained[0].trial.sustained_us.value_or(0), 0);
  EXPECT_GT(sustained[0].baseline_score.value_or(0), 0);
  EXPECT_FALSE(sustained[0].trial.energy_mj);
  EXPECT_EQ(winners(Objective::time).size(), 1U);
}

TEST_F(SweepObjectiveTest, TheTimeThatIsToldCountsTheWindows) {
  tune_for(Objective::time);
  EXPECT_FALSE(sweep().forecast.expected_s);
  const std::optional<double> by_time_s = sweep({"2000"}).forecast.expected_s;
  ASSERT_TRUE(by_time_s);
  tune_for(Objective::energy);
  const double windows_s = objective_windows_s(options_.finals);
  EXPECT_GT(windows_s, 3 * 3 * 0.1) << "three contenders, three rounds";
  const SweepSummary by_energy = sweep({"3000"});
  ASSERT_TRUE(by_energy.forecast.expected_s);
  EXPECT_GT(*by_energy.forecast.expected_s, windows_s) << "of sweeps by time it is known without them";
  TrialCost cost;
  {
    Store store(database_, OpenMode::read_write);
    cost = store.trial_costs(store.device_id(store.sessions().at(0).device), "toy", Objective::energy);
  }
  EXPECT_TRUE(cost.with_objective);
  EXPECT_EQ(cost.problems, 1);
  const std::optional<double> again_s = sweep({"4000"}).forecast.expected_s;
  ASSERT_TRUE(again_s);
  EXPECT_DOUBLE_EQ(*again_s, estimate_s({3, 1}, cost).value()) << "they are part of what such a sweep took";
}

// The first shape's share is too short for the windows; what is left when the second was looked at is enough for it.
TEST_F(SweepObjectiveTest, WhatItsShareWasTooShortForIsDecidedWithTheTimeThatIsLeft) {
  options_.finals.objective.min_rounds = 1;
  options_.finals.objective.max_rounds = 1;
  options_.budget_s = 16;
  options_.search.deepen = false;
  const SweepSummary summary = sweep({"1000", "2000"});
  EXPECT_TRUE(noted("toy N=2000: no winner by energy yet"));
  EXPECT_EQ(winners(Objective::energy).size(), 2U);
  EXPECT_EQ(std::count_if(notes_.begin(), notes_.end(),
                          [](const std::string& note) { return note.find("no winner by") != std::string::npos; }),
            1);
  EXPECT_LE(summary.times.wall_s, 16.2);
}

// Of a shape that has one "no winner by energy" is wrong, however short the time is.
TEST_F(SweepObjectiveTest, AStoredWinnerIsNotDenied) {
  std::ignore = sweep();
  ASSERT_EQ(winners(Objective::energy).size(), 1U);
  const std::int64_t before = winners(Objective::energy)[0].trial_id;
  notes_.clear();
  options_.budget_s = 3;
  options_.finals.objective.min_rounds = 3;
  std::vector<std::string> no_time;
  events_.view = [&](const SweepView& view) { no_time = view.no_time; };
  std::ignore = sweep();
  EXPECT_FALSE(noted("no winner by"));
  for (const std::string& line : no_time) {
    EXPECT_EQ(line.find("no winner by"), std::string::npos) << line;
  }
  EXPECT_EQ(winners(Objective::energy)[0].trial_id, before);
}

TEST_F(SweepObjectiveTest, WhatADeviceDoesNotReportIsRefusedBeforeAnythingIsBegun) {
  use_sensors(R"([{"at_s": 0, "temperature_c": 60}, {"at_s": 1, "power_w": 50}])");
  for (const Objective objective : {Objective::energy, Objective::edp}) {
    tune_for(objective);
    const std::string message = reason_of_refusal();
    EXPECT_NE(message.find("--objective " + std::string(name_of(objective))), std::string::npos) << message;
    EXPECT_NE(message.find("does not report its power"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_NE(message.find("use --objective sustained"), std::string::npos) << "it tells a temperature: " << message;
  }
  tune_for(Objective::sustained);
  use_sensors(R"([{"at_s": 0, "power_w": 50}])");
  EXPECT_NE(reason_of_refusal().find("neither its temperature nor its clock"), std::string::npos);
  options_.files.sensors.clear();  // the machine's own: no power reading
  tune_for(Objective::energy);
  const std::string bare = reason_of_refusal();
  EXPECT_NE(bare.find("does not report its power"), std::string::npos) << bare;
  EXPECT_EQ(bare.find("sustained"), std::string::npos) << "which it could not do either: " << bare;
  EXPECT_FALSE(std::filesystem::exists(database_));
}

}  // namespace
}  // namespace pascaline::testing
