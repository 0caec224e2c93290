// When a sweep with a limit of time turns to the sites of a model.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "model/fusion/site_space.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline::testing {
namespace {

constexpr double kLimit = 100;

// Sites that are taken to launch toys.
class SweepSitesTest : public SimulatedSweepTest {
 protected:
  SweepSummary summary_;
  std::vector<Space> spaces_;
  std::vector<SweepProblem> problems_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SweepRecorder> recorder_;
  std::unique_ptr<DevicePlan> plan_;

  void SetUp() override {
    SimulatedSweepTest::SetUp();
    std::filesystem::copy(data_folder("kernel_templates"), folder_.path(),
                          std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_existing);
    space_ = make_space({kRight});
    options_.trials = kUnlimitedTrials;
    options_.budget_s = kLimit;
    spaces_ = {space_, site_space("site_head"), site_space("site_decode_mlp")};
    for (const char* const size : {"1000", "2000", "3000"}) {
      problems_.push_back({toy(size), 1, ""});
    }
    problems_.push_back({spaces_[1].example_problem(), 1, ""});
    problems_.back().launches = {toy("1000")};
    problems_.push_back({spaces_[2].example_problem(), 1, ""});
    problems_.back().launches = {toy("2000"), toy("3000")};
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override {
    return problem.kernel == "toy" ? SimulatedSweepTest::measure(problem, config) : SimulatedResult{.time_us = 50};
  }
  [[nodiscard]] Problem toy(const std::string& n) const { return space_.problem({{"N", n}}); }
  void make_plan() {
    store_ = std::make_unique<Store>(database_, OpenMode::create);
    recorder_ = std::make_unique<SweepRecorder>(*store_, summary_, events_, stop_, 0.1);
    plan_ = std::make_unique<DevicePlan>(spaces_, options_, services_, open_device("emulator")->info(), 1);
    plan_->plan(*recorder_, problems_, "", [] {});
  }
  [[nodiscard]] static std::string name_of_task(const SweepTask& task) {
    const Problem& problem = task.search.wanted().problem;
    return problem.kernel == "toy" ? problem.text() : problem.kernel;
  }
  // By its next trials, in microseconds of the model.
  [[nodiscard]] double saved_by(const std::string& name) const {
    for (const Action& action : plan_->agenda().searches()) {
      if (name_of_task(*action.task) == name) {
        return action.saved_us;
      }
    }
    ADD_FAILURE() << name;
    return 0;
  }
};

TEST_F(SweepSitesTest, AreWorthMoreOnceWhatTheyLaunchWasLookedAt) {
  make_plan();
  const double before = saved_by("site_decode_mlp");
  EXPECT_GT(before, 0);
  const double of_other = saved_by("site_head");
  const auto is_last_toy = [](const auto& task) { return name_of_task(*task) == "toy N=3000"; };
  (*std::ranges::find_if(plan_->tasks(), is_last_toy))->look.had = true;
  EXPECT_GT(saved_by("site_decode_mlp"), before);
  EXPECT_DOUBLE_EQ(saved_by("site_head"), of_other) << "it launches another toy";
}

// Without their launches, as a plan that is resumed has them, all of the kernels that such sites launch count.
TEST_F(SweepSitesTest, WithoutLaunchesWaitForTheirKernels) {
  for (SweepProblem& problem : problems_) {
    problem.launches.clear();
  }
  spaces_.push_back(Space::load(data_folder("search_spaces") / "rmsnorm.json"));
  problems_.insert(problems_.begin() + 1, SweepProblem{spaces_.back().example_problem(), 1, ""});
  make_plan();
  const auto launched_by = [&](const std::string& kernel) {
    const auto site =
        std::ranges::find(plan_->tasks(), kernel, [](const auto& task) { return task->tunable.space->kernel; });
    return (*site)->launches.tasks;
  };
  ASSERT_EQ(launched_by("site_head").size(), 1U);
  EXPECT_EQ(launched_by("site_head")[0]->tunable.space->kernel, "rmsnorm");
  EXPECT_TRUE(launched_by("toy").empty());
}

// A device, and real kernels.
TEST_F(SweepSitesTest, AllWaysToComputeASiteAreCompared) {
  const std::vector<std::pair<std::string, std::string>> small{
      {"ROWS", "1"}, {"HIDDEN", "64"}, {"VOCABULARY", "128"}, {"HEAD", "float32"}};
  problems_ = {{spaces_[1].problem(small), 1, ""}};
  options_.budget_s.reset();
  options_.trials = 1;
  options_.files.kernels = folder_.path();
  options_.files.spaces = data_folder("search_spaces");
  options_.measure.cold_cache = false;
  std::vector<std::string> decided;
  events_.winner = [&](const std::string&, const SweepProblem& problem, const FinalsResult& result, int) {
    decided.push_back(problem.problem.kernel);
    EXPECT_EQ(result.trials.size(), alternatives_of("site_head").size());
  };
  const SweepSummary summary = run_sweep(spaces_, problems_, options_, events_, stop_, services_);
  EXPECT_EQ(decided, std::vector<std::string>{"site_head"});
  EXPECT_TRUE(summary.problems.not_reached.empty());
  EXPECT_EQ(tried().size(), alternatives_of("site_head").size());
}

// A winner among some would be taken for the best of all.
TEST_F(SweepSitesTest, NothingIsDecidedBeforeAllWaysWereTried) {
  spaces_ = {site_space("site_decode_attention")};
  problems_ = {{spaces_[0].example_problem(), 1, ""}};
  options_.files.spaces = data_folder("search_spaces");
  std::set<bool> seen;
  for (const double budget_s : {2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 20.0}) {
    options_.budget_s = budget_s;
    options_.database = database_ = folder_ / (std::to_string(budget_s) + ".db");
    std::ignore = run_sweep(spaces_, problems_, options_, events_, stop_, services_);
    const bool decided = !Store(database_, OpenMode::read_only).winners("site_decode_attention", nullptr).empty();
    const std::size_t count = tried().size();
    EXPECT_EQ(decided, count == alternatives_of("site_decode_attention").size()) << budget_s << " s: " << count;
    if (count > 0) {
      seen.insert(decided);
    }
  }
  EXPECT_EQ(seen.size(), 2U) << "some were too short and some were not";
}

}  // namespace
}  // namespace pascaline::testing
