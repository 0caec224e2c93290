#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/finals/objective.hpp"

// Simulated sweeps that decide by each objective.
namespace pascaline::testing {
namespace {

// At N=100 blocks of 128 threads are the fastest (10.8 us), then 64 (11.6 us, the default) and 32 (13.1 us).
class SimulatedObjectiveTest : public SimulatedSweepTest {
 protected:
  std::string fails_again_;  // a configuration that runs once

  void SetUp() override {
    SimulatedSweepTest::SetUp();
    space_ = make_space({kRight});
    write_file_atomically(folder_ / "trace.json", R"([{"at_s": 0, "power_w": 50, "temperature_c": 60}])");
    options_.files.sensors = folder_ / "trace.json";
    options_.finals.rounds = 10;
    options_.finals.energy_window_ms = 100;
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override {
    if (config.text() == fails_again_ && runs_++ > 0) {
      return {.status = TrialStatus::launch_failed, .reason = "an illegal address"};
    }
    return ToyWorld::measure(problem, config);
  }
  [[nodiscard]] std::optional<double> power_w(const Problem& /*problem*/, const Config& config) const override {
    const std::int64_t block = config.integer("BLOCK");
    return block == 32 ? 40.0 : block == 64 ? 60.0 : 55.0;
  }
  [[nodiscard]] double sustained_factor(const Problem& /*problem*/, const Config& config) const override {
    return config.integer("BLOCK") == 32 ? 1 : 1.4;
  }
  // The BLOCK of the only winner; 0: there is none.
  [[nodiscard]] std::int64_t winner_by(Objective objective) const {
    const auto winners = Store(database_, OpenMode::read_only).winners("toy", nullptr, objective);
    EXPECT_LE(winners.size(), 1U);
    return winners.empty() ? 0 : winners[0].trial.config.integer("BLOCK");
  }

 private:
  mutable int runs_ = 0;
};

TEST_F(SimulatedObjectiveTest, EachHasItsWinnerBesideThatByTime) {
  for (const auto& [objective, block] :
       {std::pair(Objective::energy, 32), std::pair(Objective::edp, 128), std::pair(Objective::sustained, 32)}) {
    std::filesystem::remove(database_);
    options_.finals.objective = objective_of(objective).defaults();
    options_.finals.objective.sustain_first_s = options_.finals.objective.sustain_again_s = 0.2;
    options_.finals.objective.sustain_window_s = 0.1;
    EXPECT_EQ(sweep({"100"}).problems.done, 1);
    EXPECT_EQ(winner_by(Objective::time), 128);
    EXPECT_EQ(winner_by(objective), block) << name_of(objective);
    for (const StoredTrial& finalist : stored(TrialStage::finals)) {
      EXPECT_EQ(finalist.trial.energy_mj.has_value() && !finalist.trial.sustained_us,
                objective != Objective::sustained);
    }
    expect_sound();
  }
}

TEST_F(SimulatedObjectiveTest, AFinalistThatFailsIsLeftOut) {
  fails_again_ = toy_config(128).text();
  EXPECT_EQ(sweep({"100"}).problems.done, 1);
  EXPECT_TRUE(noted("a finalist failed: launch_failed: an illegal address"));
  EXPECT_EQ(winner_by(Objective::time), 64) << "the default, which the last one does not beat";
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
