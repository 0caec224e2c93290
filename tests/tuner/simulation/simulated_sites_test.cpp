#include <gtest/gtest.h>

#include <algorithm>

#include "core/util/paths.hpp"
#include "model/fusion/site_space.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

// Simulated sweeps with sites of a model.
namespace pascaline::testing {
namespace {

class SimulatedSitesTest : public SimulatedSweepTest {
 protected:
  std::vector<std::string> notes_;

  SimulatedSitesTest() {
    std::filesystem::copy(data_folder("kernel_templates"), folder_.path(),
                          std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_existing);
    options_.trials = kUnlimitedTrials;
    options_.budget_s = 600;
    events_.note = [this](const std::string& note) { notes_.push_back(note); };
  }
  // One that launches the larger toy, beside two toys.
  SweepSummary sweep_with_site() {
    const std::vector<Space> spaces{space_, site_space("site_head")};
    std::vector<SweepProblem> problems{{space_.problem({{"N", "1000000"}}), 1, ""},
                                       {space_.problem({{"N", "2000000"}}), 1, ""},
                                       {spaces[1].example_problem(), 1, ""}};
    problems[2].launches = {problems[1].problem};
    return run_sweep(spaces, problems, options_, events_, stop_, services_);
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override {
    if (problem.kernel == "site_head") {
      return {.time_us = alternative_of(config) == "single" ? 5000.0 : 4000.0};
    }
    return SimulatedSweepTest::measure(problem, config);
  }
};

TEST_F(SimulatedSitesTest, AreDecidedAndComparedAgainWhenTheirKernelsHaveOtherWinners) {
  const SweepSummary summary = sweep_with_site();
  EXPECT_LE(summary.times.wall_s, 601);
  EXPECT_TRUE(summary.problems.not_reached.empty());
  const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners("site_head", nullptr);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_NE(alternative_of(winners[0].trial.config), "single");
  const auto again = std::ranges::count_if(
      notes_, [](const std::string& note) { return note.find("compared again") != std::string::npos; });
  std::size_t finals = 0;
  for (const StoredTrial& stored : stored(TrialStage::finals)) {
    finals += stored.trial.problem.kernel == "site_head" ? 1 : 0;
  }
  EXPECT_EQ(finals, alternatives_of("site_head").size() * (1 + static_cast<std::size_t>(again)));
  expect_sound();
}

TEST_F(SimulatedSitesTest, WithoutALimitOnce) {
  options_.trials = 4;
  options_.budget_s.reset();
  const SweepSummary summary = sweep_with_site();
  EXPECT_EQ(summary.problems.done, 3);
  EXPECT_TRUE(std::ranges::none_of(
      notes_, [](const std::string& note) { return note.find("compared again") != std::string::npos; }));
}

}  // namespace
}  // namespace pascaline::testing
