#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "db/sweep_plan.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

// Sweeps over the problems of two kernels: one plan, one budget, one session.
namespace pascaline::testing {
namespace {

class SweepKernelsTest : public SimulatedSweepTest {
 protected:
  Space other_ = Space::parse(accumulate_json().dump(), "accumulate.json");

  [[nodiscard]] SweepProblem toy(const std::string& n, std::vector<PhaseCalls> phases = {}) const {
    return problem_of(space_, n, std::move(phases));
  }
  [[nodiscard]] SweepProblem accumulate(const std::string& n, std::vector<PhaseCalls> phases = {}) const {
    return problem_of(other_, n, std::move(phases));
  }
  [[nodiscard]] SweepSummary sweep_both(const std::vector<SweepProblem>& problems) {
    return run_sweep({space_, other_}, problems, options_, events_, stop_, services_);
  }
  [[nodiscard]] std::map<std::string, int> trials_by_problem() const {
    std::map<std::string, int> trials;
    for (const StoredTrial& trial : stored(TrialStage::search)) {
      ++trials[trial.trial.problem.text()];
    }
    return trials;
  }
  [[nodiscard]] std::vector<Winner> winners() const {
    return Store(database_, OpenMode::read_only).winners("", nullptr);
  }

 protected:
  // ProblemMemoryTest has the message of real workers.
  [[nodiscard]] std::string refusal(const Problem& problem) const override {
    return problem.dimension("N") > 1'000'000'000 ? "this shape needs 800 GB of memory, 1 GB are available" : "";
  }

 private:
  static SweepProblem problem_of(const Space& space, const std::string& n, std::vector<PhaseCalls> phases) {
    SweepProblem problem{space.problem({{"N", n}}), phases.empty() ? 1.0 : 0.0, ""};
    for (const PhaseCalls& phase : phases) {
      problem.count += phase.count;
    }
    problem.phases = std::move(phases);
    return problem;
  }
};

TEST_F(SweepKernelsTest, ProblemsOfTwoKernelsAreOnePlanAndOneSession) {
  const SweepSummary summary = sweep_both({toy("1000"), accumulate("1000"), accumulate("500")});
  EXPECT_EQ(summary.trials, 9 + 6 + 6);
  EXPECT_EQ(summary.ok, 3 + 3 + 3);
  EXPECT_EQ(summary.problems.done, 3);
  EXPECT_TRUE(summary.phases.empty()) << "no model was named";
  EXPECT_EQ(trials_by_problem(),
            (std::map<std::string, int>{{"toy N=1000", 9}, {"accumulate N=1000", 6}, {"accumulate N=500", 6}}));
  EXPECT_EQ(winners().size(), 3U);
  const Store store(database_, OpenMode::read_only);
  ASSERT_EQ(store.sessions().size(), 1U);
  const SweepPlan plan = store.plan(summary.run).value();
  ASSERT_EQ(plan.kernels.size(), 2U);
  EXPECT_EQ(plan.kernels[0].name, "accumulate") << "in the order of their names";
  EXPECT_EQ(plan.kernels[1].name, "toy");
  EXPECT_NE(plan.kernels[0].source_hash, plan.kernels[1].source_hash);
  EXPECT_EQ(plan.kernels[1].space_hash, space_.hash);
  expect_sound();
}

TEST_F(SweepKernelsTest, UnderAShortBudgetEveryProblemOfEveryKernelIsLookedAt) {
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 24;
  verify_seconds = 0.02;
  options_.measure.min_samples = options_.measure.max_samples = 1'000'000;
  options_.measure.budget_ms = 200;
  options_.measure.race_error = 0;
  options_.finals.rounds = options_.finals.min_rounds = 1'000'000;
  options_.finals.p_value = 1e-12;
  const SweepSummary summary = sweep_both(
      {toy("100000"), toy("100001"), toy("100002"), accumulate("100000"), accumulate("100001"), accumulate("100002")});
  EXPECT_TRUE(summary.problems.not_reached.empty()) << summary.problems.not_reached.size();
  EXPECT_EQ(trials_by_problem().size(), 6U);
  std::set<std::string> seen;
  std::vector<std::string> turns;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    const std::string problem = trial.trial.problem.text();
    const bool ran = trial.trial.status != TrialStatus::compile_failed;
    if (ran && seen.insert(problem).second) {
      EXPECT_TRUE(trial.trial.is_default) << problem << ": the default is the first that runs";
    }
    if (ran && (turns.empty() || turns.back() != problem)) {
      turns.push_back(problem);
    }
  }
  ASSERT_GE(turns.size(), 6U);
  EXPECT_EQ(std::set<std::string>(turns.begin(), turns.begin() + 6).size(), 6U) << "none had a second turn before";
}

TEST_F(SweepKernelsTest, ReferenceThatDoesNotCompileCostsItsKernelOnly) {
  broken_references.insert("accumulate_reference");
  std::vector<std::string> notes;
  events_.note = [&](const std::string& text) { notes.push_back(text); };
  const SweepSummary summary = sweep_both({accumulate("1000"), toy("1000"), accumulate("500")});
  EXPECT_EQ(trials_by_problem(), (std::map<std::string, int>{{"toy N=1000", 9}}));
  EXPECT_EQ(summary.problems.done, 1);
  ASSERT_EQ(summary.problems.left_out.size(), 2U);
  EXPECT_EQ(summary.problems.left_out[0].rfind("accumulate N=1000: ", 0), 0U) << summary.problems.left_out[0];
  EXPECT_NE(summary.problems.left_out[0].find("'accumulate_reference' cannot be used"), std::string::npos);
  EXPECT_NE(summary.problems.left_out[1].find("accumulate.cu"), std::string::npos) << summary.problems.left_out[1];
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.rfind("accumulate N=500 is left out: ", 0) == 0;
  }));
  EXPECT_FALSE(summary.interrupted);
  EXPECT_TRUE(summary.problems.not_reached.empty());
  EXPECT_EQ(last_state(), "finished");
  ASSERT_EQ(winners().size(), 1U);
  EXPECT_EQ(winners()[0].trial.problem.kernel, "toy");
  expect_sound();
}

TEST_F(SweepKernelsTest, AShapeThatTheMemoryIsTooSmallForCostsItselfOnly) {
  const SweepSummary summary = sweep_both({toy("1000"), accumulate("100000000000")});
  EXPECT_EQ(trials_by_problem(), (std::map<std::string, int>{{"toy N=1000", 9}}));
  ASSERT_EQ(summary.problems.left_out.size(), 1U);
  EXPECT_NE(summary.problems.left_out[0].find("this shape needs "), std::string::npos) << summary.problems.left_out[0];
  EXPECT_NE(summary.problems.left_out[0].find(" are available"), std::string::npos) << summary.problems.left_out[0];
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

TEST_F(SweepKernelsTest, SpaceWithoutAValidConfigurationCostsItsKernelOnly) {
  nlohmann::json json = accumulate_json();
  json["constraints"].push_back({{"require", "N > 5000 + BLOCK"}, {"because", "small problems are for others"}});
  other_ = Space::parse(json.dump(), "accumulate.json");
  const SweepSummary summary = sweep_both({accumulate("1000"), toy("1000"), accumulate("10000")});
  EXPECT_EQ(trials_by_problem(), (std::map<std::string, int>{{"toy N=1000", 9}, {"accumulate N=10000", 6}}));
  ASSERT_EQ(summary.problems.left_out.size(), 1U);
  EXPECT_NE(summary.problems.left_out[0].find("small problems are for others"), std::string::npos)
      << summary.problems.left_out[0];
  EXPECT_EQ(summary.problems.done, 2);
  EXPECT_EQ(last_state(), "finished");
}

TEST_F(SweepKernelsTest, WhenEveryKernelIsAtFaultTheSweepFails) {
  broken_references = {"toy_reference", "accumulate_reference"};
  EXPECT_THROW(std::ignore = sweep_both({accumulate("1000"), toy("1000")}), Error);
  EXPECT_EQ(last_state(), "failed");
  expect_sound();
}

TEST_F(SweepKernelsTest, InterruptedSweepGoesOnWithWhatIsLeftOfEachKernel) {
  const std::vector<SweepProblem> problems{toy("1000", {{"prompt", 2}}), accumulate("1000", {{"prompt", 3}})};
  events_.winner = [&](const std::string&, const SweepProblem&, const FinalsResult&, int) { stop_ = true; };
  const SweepSummary first = sweep_both(problems);
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.problems.done, 1);
  stop_ = false;
  events_ = {};
  options_.record.resume_run = first.run;
  const SweepSummary second = sweep_both(problems);
  EXPECT_FALSE(second.interrupted);
  EXPECT_EQ(second.problems.done, 2);
  EXPECT_EQ(second.trials, 9 + 6) << "counted over both processes";
  EXPECT_EQ(trials_by_problem(), (std::map<std::string, int>{{"toy N=1000", 9}, {"accumulate N=1000", 6}}));
  ASSERT_EQ(second.phases.size(), 1U);
  EXPECT_EQ(second.phases[0].problems, 2) << "also the one that the first process decided";
  expect_sound();
}

TEST_F(SweepKernelsTest, PhasesAreSumsOfCallsTimesTimes) {
  const SweepSummary summary =
      sweep_both({toy("1000", {{"image", 2}, {"token", 10}}), accumulate("1000", {{"prompt", 3}, {"token", 5}})});
  std::map<std::string, Winner> of;
  for (Winner& winner : winners()) {
    ASSERT_TRUE(winner.baseline);
    of.emplace(winner.trial.problem.kernel, std::move(winner));
  }
  ASSERT_EQ(of.size(), 2U);
  ASSERT_EQ(summary.phases.size(), 3U);
  EXPECT_EQ(summary.phases[0].phase, "prompt");
  EXPECT_EQ(summary.phases[1].phase, "token");
  EXPECT_EQ(summary.phases[2].phase, "image");
  const PhaseTime& token = summary.phases[1];
  EXPECT_EQ(token.calls, 15);
  EXPECT_EQ(token.problems, 2);
  EXPECT_EQ(token.at_default, 0);
  EXPECT_DOUBLE_EQ(token.before_us, 10 * of["toy"].baseline->median_us + 5 * of["accumulate"].baseline->median_us);
  EXPECT_DOUBLE_EQ(token.after_us, 10 * of["toy"].trial.time->median_us + 5 * of["accumulate"].trial.time->median_us);
  EXPECT_DOUBLE_EQ(summary.phases[2].after_us, 2 * of["toy"].trial.time->median_us);
  EXPECT_EQ(summary.phases[0].problems, 1);
  const SweepPlan plan = Store(database_, OpenMode::read_only).plan(summary.run).value();
  ASSERT_EQ(plan.problems.size(), 2U);
  EXPECT_EQ(plan.problems[0].phases, (std::vector<PhaseCalls>{{"image", 2}, {"token", 10}}));
}

TEST_F(SweepKernelsTest, ProblemsWithoutAUsableResultStayAtTheirDefaults) {
  other_ = Space::parse(
      [] {
        nlohmann::json json = accumulate_json();
        json["parameters"][1]["values"] = {2};
        json["parameters"][1]["default"] = 2;
        return json.dump();
      }(),
      "accumulate.json");
  const SweepSummary summary = sweep_both({toy("1000", {{"token", 10}}), accumulate("1000", {{"token", 5}})});
  ASSERT_EQ(summary.phases.size(), 1U);
  EXPECT_EQ(summary.phases[0].problems, 1);
  EXPECT_EQ(summary.phases[0].at_default, 1);
  EXPECT_GT(summary.phases[0].at_default_us, 0);
  EXPECT_EQ(summary.problems.decided, 1);
  EXPECT_EQ(summary.problems.planned, 2);
  EXPECT_EQ(summary.phases[0].calls, 15);
}

}  // namespace
}  // namespace pascaline::testing
