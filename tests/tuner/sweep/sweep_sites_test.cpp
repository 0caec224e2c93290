// When a sweep with a limit of time turns to the sites of a model.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "model/fusion/site_space.hpp"
#include "tests/tuner/sweep/sweep_fixture.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline::testing {
namespace {

constexpr double kLimit = 100;

// Sites that are taken to launch toys.
class SweepSitesTest : public SweepTest {
 protected:
  SweepSummary summary_;
  std::vector<Space> spaces_;
  std::vector<SweepProblem> problems_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SweepRecorder> recorder_;
  std::unique_ptr<DevicePlan> plan_;

  void SetUp() override {
    SweepTest::SetUp();
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
  [[nodiscard]] Problem toy(const std::string& n) const { return space_.problem({{"N", n}}); }
  void make_plan() {
    store_ = std::make_unique<Store>(database_, OpenMode::create);
    recorder_ = std::make_unique<SweepRecorder>(*store_, summary_, events_, stop_, 0.1);
    plan_ = std::make_unique<DevicePlan>(spaces_, options_, real_services(), open_device("emulator")->info(), 1);
    plan_->plan(*recorder_, problems_, "", [] {});
  }
  [[nodiscard]] static std::string name_of_task(const SweepTask& task) {
    const Problem& problem = task.search.wanted().problem;
    return task.kernel.is_site ? problem.kernel : problem.text();
  }
  // What a device that is free then turns to; it stays taken.
  [[nodiscard]] SweepTask& next(double left_s) {
    SweepTask* const task = plan_->next_task(left_s);
    EXPECT_NE(task, nullptr);
    return *task;
  }
  // The same, which has its look and makes way again.
  std::string look(double left_s) {
    SweepTask& task = next(left_s);
    task.looked_at = true;
    task.compared = true;
    task.state.release();
    return name_of_task(task);
  }
};

TEST_F(SweepSitesTest, ComeAsSoonAsWhatTheyLaunchWasLookedAt) {
  make_plan();
  const std::vector<std::string> turns{look(100), look(99), look(98), look(97), look(96)};
  const std::vector<std::string> wanted{"toy N=3000", "toy N=2000", "site_decode_mlp", "toy N=1000", "site_head"};
  EXPECT_EQ(turns, wanted);
}

// Without their launches, as a plan that is resumed has them, all of the kernels that such sites launch count.
TEST_F(SweepSitesTest, WithoutLaunchesWaitForTheirKernels) {
  for (SweepProblem& problem : problems_) {
    problem.launches.clear();
  }
  spaces_.push_back(Space::load(data_folder("search_spaces") / "rmsnorm.json"));
  problems_.insert(problems_.begin() + 1, SweepProblem{spaces_.back().example_problem(), 1, ""});
  make_plan();
  std::vector<std::string> turns;
  for (int i = 0; i < 6; ++i) {
    turns.push_back(look(kLimit - i));
  }
  const auto place_of = [&](const std::string& name) {
    return std::ranges::find_if(turns, [&](const std::string& turn) { return turn.starts_with(name); }) - turns.begin();
  };
  EXPECT_LT(place_of("rmsnorm"), place_of("site_head"));
  EXPECT_EQ(place_of("site_decode_mlp"), place_of("site_head") + 1) << "no toy is launched by it";
}

TEST_F(SweepSitesTest, ComeWithTheTimeThatIsKeptForThem) {
  make_plan();
  SweepTask& kernel = next(kLimit);  // for all of the time, and nothing ran
  EXPECT_FALSE(kernel.kernel.is_site);
  kernel.put_off_s = 1;
  kernel.state.release();
  const DevicePlan::KeptForSites kept = plan_->kept_for_sites(kLimit);
  EXPECT_EQ(kept.sites, 2);
  EXPECT_GT(kept.seconds, 0);
  EXPECT_LE(kept.seconds, 0.3 * kLimit);
  SweepTask& site = next(kept.seconds - 0.1);
  EXPECT_TRUE(site.kernel.is_site) << name_of_task(site) << ", with kernels that nobody looked at";
  EXPECT_EQ(name_of_task(site), "site_head") << "less is to be compiled for it";
  site.looked_at = site.compared = true;
  site.first_look_s = 1000;
  site.state.release();
  const DevicePlan::KeptForSites rest = plan_->kept_for_sites(kept.seconds - 1);
  EXPECT_EQ(rest.sites, 1);
  EXPECT_DOUBLE_EQ(rest.seconds, 0.3 * kLimit) << "as slow as the first, but no more than that of the limit";
  EXPECT_EQ(look(kept.seconds - 1), "site_decode_mlp");
  EXPECT_EQ(plan_->kept_for_sites(kept.seconds - 2).sites, 0);
  EXPECT_EQ(plan_->kept_for_sites(kept.seconds - 2).seconds, 0);
  EXPECT_GT(plan_->kept_for_sites(kept.seconds - 2).each_s, 1) << "for finals at the end";
  EXPECT_FALSE(next(kept.seconds - 2).kernel.is_site) << "they had their look, and nothing has changed since";
}

TEST_F(SweepSitesTest, AreComparedAgainAtTheEndIfTheirKernelsChanged) {
  make_plan();
  EXPECT_EQ(look(100), "toy N=3000");
  EXPECT_EQ(look(99), "toy N=2000");
  EXPECT_EQ(look(98), "site_decode_mlp");
  EXPECT_EQ(look(0.5), "site_head") << "its time has come";
  const auto toys = [](const auto& task) { return task->search.wanted().problem.text() == "toy N=3000"; };
  SweepTask& changed = **std::ranges::find_if(plan_->tasks(), toys);
  SweepTask& other = next(0.4);
  EXPECT_FALSE(other.kernel.is_site) << "a problem had no look yet";
  other.state.release();
  changed.winner = toy_config(128);
  EXPECT_EQ(look(0.4), "site_decode_mlp");
  EXPECT_FALSE(next(0.3).kernel.is_site) << "once is enough";
}

TEST_F(SweepSitesTest, AllAreComparedAgainAtTheEndWhenAllKernelsHadALook) {
  make_plan();
  for (double left_s = 100; left_s > 95; --left_s) {
    (void)look(left_s);
  }
  std::vector<std::string> turns{look(5), look(4)};
  std::ranges::sort(turns);
  EXPECT_EQ(turns, (std::vector<std::string>{"site_decode_mlp", "site_head"}));
}

// A device, and real kernels: what a site needs for its winner does not wait for problems that it does not launch.
TEST_F(SweepSitesTest, ASiteHasItsWinnerBeforeKernelsThatItDoesNotLaunch) {
  problems_.erase(problems_.begin() + 4);
  const std::vector<std::pair<std::string, std::string>> small{
      {"ROWS", "1"}, {"HIDDEN", "64"}, {"VOCABULARY", "128"}, {"HEAD", "float32"}};
  problems_[3] = {spaces_[1].problem(small), 1, ""};
  options_.kernels = folder_.path();
  options_.spaces = data_folder("search_spaces");
  options_.measure.cold_cache = false;
  std::vector<std::string> decided;
  events_.winner = [&](const std::string&, const SweepProblem& problem, const FinalsResult&, int) {
    decided.push_back(problem.problem.kernel);
    stop_ = true;
  };
  const SweepSummary summary = run_sweep(spaces_, problems_, options_, events_, stop_);
  EXPECT_EQ(decided, std::vector<std::string>{"site_head"});
  EXPECT_EQ(summary.not_reached.size(), 3U) << "the toys, which are told";
  EXPECT_EQ(tried().size(), alternatives_of("site_head").size());
}

}  // namespace
}  // namespace pascaline::testing
