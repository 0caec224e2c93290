#include "runtime/dispatch/planner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runtime/dispatch/closest_valid.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

Plan plan_with(const std::vector<Winner>& winners, const Problem& problem, const ToolkitRow& today = old_toolkit()) {
  KernelSource source;
  source.hash = "now";
  const TunedKernel kernel = make_tuned_kernel(Space::parse(scale_json(), "scale.json"), source, winners, {today});
  return make_plan(kernel, {today}, BoundSpace(kernel.space, problem, DeviceLimits{}));
}

TEST(PlannerTest, TheWinnerOfTheProblemItselfIsExact) {
  const Problem problem = scale_problem(8, 16);
  const Plan plan = plan_with(
      {scale_winner(scale_problem(9, 16), scale_config(32)), scale_winner(problem, scale_config(128, 2), 7)}, problem);
  EXPECT_EQ(plan.provenance, Provenance::exact);
  EXPECT_EQ(plan.config, scale_config(128, 2));
  EXPECT_EQ(plan.problem, problem);
  EXPECT_EQ(plan.tuned_for, problem);
  EXPECT_EQ(plan.distance, 0);
  ASSERT_TRUE(plan.expected);
  EXPECT_EQ(plan.expected->median_us, 7);
  EXPECT_EQ(plan.confidence, 0.9);
  EXPECT_EQ(plan.reason, "tuned on this kind of device");
}

TEST(PlannerTest, AnotherToolkitIsUsedAndSaid) {
  const Problem problem = scale_problem(8, 16);
  ToolkitRow today = old_toolkit();
  today.version = "2.0";
  const Plan plan = plan_with({scale_winner(problem, scale_config(128))}, problem, today);
  EXPECT_EQ(plan.provenance, Provenance::exact);
  EXPECT_TRUE(contains(plan.reason, "g++ 1.0 for emulator")) << plan.reason;
  EXPECT_TRUE(contains(plan.reason, "g++ 2.0 for emulator")) << plan.reason;
}

TEST(PlannerTest, TodaysToolkitComesBeforeAFasterOldOne) {
  const Problem problem = scale_problem(8, 16);
  ToolkitRow today = old_toolkit();
  today.version = "2.0";
  Winner ours = scale_winner(problem, scale_config(32), 9);
  ours.toolkit = today;
  const Plan plan = plan_with({scale_winner(problem, scale_config(128), 3), ours}, problem, today);
  EXPECT_EQ(plan.config, scale_config(32));
}

ToolkitRow version(const std::string& version) {
  ToolkitRow row = old_toolkit();
  row.compiler = "nvrtc";
  row.version = version;
  return row;
}

Winner built_by(const ToolkitRow& toolkit, const Config& config, double median_us) {
  Winner winner = scale_winner(scale_problem(8, 16), config, median_us);
  winner.trial.time = TimeSummary{median_us, 0.99 * median_us, 1.01 * median_us, 20};
  winner.toolkit = toolkit;
  return winner;
}

Plan plan_here(const std::vector<Winner>& winners, const std::vector<ToolkitRow>& here) {
  KernelSource source;
  source.hash = "now";
  const TunedKernel kernel = make_tuned_kernel(Space::parse(scale_json(), "scale.json"), source, winners, here);
  return make_plan(kernel, here, BoundSpace(kernel.space, scale_problem(8, 16), DeviceLimits{}));
}

TEST(PlannerTest, TheFastestWinnerIsTakenWhicheverCompilerThatIsHereBuiltIt) {
  const std::vector<Winner> winners{built_by(version("12.9"), scale_config(32), 9),
                                    built_by(version("11.8"), scale_config(128), 7)};
  for (const auto& here : {std::vector{version("12.9"), version("11.8")}, {version("11.8"), version("12.9")}}) {
    const Plan plan = plan_here(winners, here);
    EXPECT_EQ(plan.config, scale_config(128));
    EXPECT_EQ(plan.toolkit, version("11.8"));
    EXPECT_EQ(plan.reason, "tuned on this kind of device");
  }
}

TEST(PlannerTest, AFasterWinnerWhoseCompilerIsMissingIsNamed) {
  const std::vector<Winner> winners{built_by(version("12.9"), scale_config(32), 9),
                                    built_by(version("11.8"), scale_config(128), 6)};
  const Plan plan = plan_here(winners, {version("12.9")});
  EXPECT_EQ(plan.config, scale_config(32));
  EXPECT_EQ(plan.toolkit, version("12.9"));
  EXPECT_TRUE(contains(plan.reason, "nvrtc 11.8 was 1.50 times as fast")) << plan.reason;
  EXPECT_TRUE(contains(plan.reason, "setup.sh --nvrtc-11.8")) << plan.reason;
  EXPECT_EQ(missing_compilers(winners, {version("12.9")}),
            std::vector<std::string>{"nvrtc 11.8 is not here; it built the fastest winners of 1 problem, up to 1.50 "
                                     "times as fast as what is used: ./scripts/setup.sh --nvrtc-11.8 installs it"});
  EXPECT_TRUE(missing_compilers(winners, {version("12.9"), version("11.8")}).empty());
  EXPECT_TRUE(missing_compilers(winners, {version("11.8")}).empty()) << "what is missing was slower";
  EXPECT_EQ(plan_here(winners, {version("11.8")}).reason, "tuned on this kind of device");
}

TEST(PlannerTest, ADifferenceWithinBothIntervalsIsNoReasonToGetACompiler) {
  const std::vector<Winner> winners{built_by(version("12.9"), scale_config(32), 9),
                                    built_by(version("11.8"), scale_config(128), 8.9)};
  EXPECT_EQ(plan_here(winners, {version("12.9")}).reason, "tuned on this kind of device");
  EXPECT_TRUE(missing_compilers(winners, {version("12.9")}).empty());
}

TEST(PlannerTest, AWinnerOfAMissingCompilerAloneIsBuiltByTheOneThatIsHereAndSaid) {
  const std::vector<Winner> winners{built_by(version("11.8"), scale_config(128), 6)};
  const Plan plan = plan_here(winners, {version("12.9")});
  EXPECT_EQ(plan.config, scale_config(128));
  EXPECT_EQ(plan.toolkit, version("12.9"));
  EXPECT_TRUE(contains(plan.reason, "nvrtc 11.8 is not here: ./scripts/setup.sh --nvrtc-11.8")) << plan.reason;
  EXPECT_TRUE(contains(missing_compilers(winners, {version("12.9")}).at(0), "1 of which have no other"));
}

TEST(PlannerTest, UnderAnotherDriverAWinnersOwnCompilerIsUsed) {
  ToolkitRow before = version("11.8");
  before.driver_version = "11.8";
  const Plan plan = plan_here({built_by(before, scale_config(128), 6)}, {version("12.9"), version("11.8")});
  EXPECT_EQ(plan.toolkit, version("11.8"));
  EXPECT_TRUE(contains(plan.reason, "with driver 11.8")) << plan.reason;
  const Plan mixed = plan_here({built_by(before, scale_config(128), 6), built_by(version("12.9"), scale_config(32), 9)},
                               {version("12.9"), version("11.8")});
  EXPECT_EQ(mixed.config, scale_config(32)) << "what was measured with the driver in use counts more";
}

TEST(PlannerTest, WhatIsNotTunedIsBuiltByTheFirst) {
  EXPECT_EQ(plan_here({}, {version("12.9"), version("11.8")}).toolkit, version("12.9"));
}

TEST(PlannerTest, AnotherSourceIsNotUsedAndSaid) {
  const Problem problem = scale_problem(8, 16);
  Winner stale = scale_winner(problem, scale_config(128));
  stale.kernel.source_hash = "before";
  const Plan plan = plan_with({stale}, problem);
  EXPECT_EQ(plan.provenance, Provenance::default_config);
  EXPECT_EQ(plan.config, scale_config(64));
  EXPECT_TRUE(contains(plan.reason, "another version of the kernel's source")) << plan.reason;
  EXPECT_FALSE(plan.expected);

  const Plan nearest = plan_with({stale, scale_winner(scale_problem(16, 16), scale_config(32))}, problem);
  EXPECT_EQ(nearest.provenance, Provenance::nearest);
  EXPECT_TRUE(contains(nearest.reason, "another version of the kernel's source")) << nearest.reason;
}

TEST(PlannerTest, WithoutAnyUsableWinnerTheReasonIsSaid) {
  EXPECT_EQ(plan_with({}, scale_problem(8, 16)).reason, "kernel 'scale' is not tuned for this device");
  Winner stale = scale_winner(scale_problem(9, 16), scale_config(128));
  stale.kernel.source_hash = "before";
  const Plan plan = plan_with({stale}, scale_problem(8, 16));
  EXPECT_TRUE(contains(plan.reason, "such as that of scale ROWS=9 WIDTH=16")) << plan.reason;
  EXPECT_TRUE(contains(plan.reason, "tune it again")) << plan.reason;
}

TEST(PlannerTest, AnotherTargetIsNotUsedAndSaid) {
  const Problem problem = scale_problem(8, 16);
  Winner other = scale_winner(problem, scale_config(128));
  other.toolkit.target = "compute_61";
  const Plan plan = plan_with({other}, problem);
  EXPECT_EQ(plan.provenance, Provenance::default_config);
  EXPECT_TRUE(contains(plan.reason, "target compute_61")) << plan.reason;
}

TEST(PlannerTest, ADamagedConfigurationIsSkippedAndSaid) {
  const Problem problem = scale_problem(8, 16);
  const auto reason = [&](const Config& config) {
    const Plan plan = plan_with({scale_winner(problem, config)}, problem);
    EXPECT_EQ(plan.provenance, Provenance::default_config) << config.text();
    return plan.reason;
  };
  EXPECT_TRUE(contains(reason(scale_config(96)), "96 is not among the values")) << reason(scale_config(96));
  EXPECT_TRUE(contains(reason(Config()), "gives no value"));
  EXPECT_TRUE(contains(
      reason(Config({{"BLOCK", std::string("64; rm")}, {"STEPS", std::int64_t{1}}, {"BROKEN", std::int64_t{0}}})),
      "is not among the values"));
  EXPECT_TRUE(
      contains(plan_with({scale_winner(scale_problem(1, 16), scale_config(64, 4))}, scale_problem(1, 16)).reason,
               "every step needs a row"));
}

TEST(PlannerTest, ASecondWinnerOfTheProblemTakesOverFromADamagedOne) {
  const Problem problem = scale_problem(8, 16);
  const Plan plan =
      plan_with({scale_winner(problem, scale_config(96), 1), scale_winner(problem, scale_config(128), 2)}, problem);
  EXPECT_EQ(plan.provenance, Provenance::exact);
  EXPECT_EQ(plan.config, scale_config(128));
  EXPECT_TRUE(contains(plan.reason, "is not used")) << plan.reason;
}

TEST(PlannerTest, AWinnerOfAnotherShapeOfSpaceIsRefused) {
  Winner odd = scale_winner(scale_problem(8, 16), scale_config(128));
  odd.trial.problem.dimensions.pop_back();
  EXPECT_EQ(plan_with({odd}, scale_problem(8, 16)).provenance, Provenance::default_config);
}

TEST(PlannerTest, NearestIsByLogRatios) {
  const Plan plan = plan_with(
      {scale_winner(scale_problem(1000, 16), scale_config(32)), scale_winner(scale_problem(10, 16), scale_config(128))},
      scale_problem(80, 16));
  EXPECT_EQ(plan.provenance, Provenance::nearest);
  EXPECT_EQ(plan.config, scale_config(128)) << "80 is 3 octaves from 10 and 3.6 from 1000";
  EXPECT_EQ(plan.tuned_for, scale_problem(10, 16));
  EXPECT_DOUBLE_EQ(plan.distance, 3);
  EXPECT_FALSE(plan.expected);
  EXPECT_TRUE(contains(plan.reason, "scale ROWS=10 WIDTH=16")) << plan.reason;
}

TEST(PlannerTest, NearestNeedsEqualTypesAndFixedDimensions) {
  const Problem asked = scale_problem(80, 16);
  EXPECT_EQ(plan_with({scale_winner(scale_problem(80, 17), scale_config(128))}, asked).provenance,
            Provenance::default_config);
  EXPECT_EQ(plan_with({scale_winner(scale_problem(81, 16, ElementType::int32), scale_config(128))}, asked).provenance,
            Provenance::default_config);
  EXPECT_EQ(plan_with({scale_winner(scale_problem(80, 16, ElementType::int32), scale_config(128))}, asked).provenance,
            Provenance::default_config);
}

TEST(PlannerTest, NearestMustBeValidForTheShapeAsked) {
  const Plan plan = plan_with(
      {scale_winner(scale_problem(4, 16), scale_config(128, 4)), scale_winner(scale_problem(64, 16), scale_config(32))},
      scale_problem(2, 16));
  EXPECT_EQ(plan.provenance, Provenance::nearest);
  EXPECT_EQ(plan.config, scale_config(32));
  EXPECT_TRUE(contains(plan.reason, "1 nearer winner cannot be used")) << plan.reason;
  EXPECT_TRUE(contains(plan.reason, "every step needs a row")) << plan.reason;
}

TEST(PlannerTest, TiesGoToTheSmallerDimensionsWhateverTheOrder) {
  std::vector<Winner> winners{scale_winner(scale_problem(40, 16), scale_config(32)),
                              scale_winner(scale_problem(160, 16), scale_config(128)),
                              scale_winner(scale_problem(40, 16), scale_config(64), 3),
                              scale_winner(scale_problem(40, 16), scale_config(128), 3)};
  for (int i = 0; i < 4; ++i) {
    const Plan plan = plan_with(winners, scale_problem(80, 16));
    EXPECT_EQ(plan.tuned_for, scale_problem(40, 16));
    EXPECT_EQ(plan.config, scale_config(128)) << "of equal times the first by text";
    std::rotate(winners.begin(), winners.begin() + 1, winners.end());
  }
}

TEST(PlannerTest, AnInvalidDefaultFallsBackToTheFewestChanges) {
  const Plan plan = plan_with({}, scale_problem(8, 100));
  EXPECT_EQ(plan.provenance, Provenance::fallback);
  EXPECT_EQ(plan.config, scale_config(128));
  EXPECT_TRUE(contains(plan.reason, "a block holds a row")) << plan.reason;
}

TEST(PlannerTest, NothingValidIsAnError) {
  EXPECT_THROW((void)plan_with({}, scale_problem(8, 200)), Error);
  EXPECT_THROW((void)plan_with({}, scale_problem(0, 16)), Error) << "below its minimum";
}

TEST(PlannerTest, FailedConfigurationsAreNotPlannedAgain) {
  const Space space = Space::parse(scale_json(), "scale.json");
  const BoundSpace bound(space, scale_problem(8, 16), DeviceLimits{});
  const std::vector<Config> failed{scale_config(64), scale_config(32)};
  const Plan plan = plan_untuned(bound, failed, "they do not build");
  EXPECT_EQ(plan.provenance, Provenance::fallback);
  EXPECT_EQ(plan.config, scale_config(128));
  EXPECT_EQ(plan.reason, "they do not build");
}

// Of 5^12 times as many configurations, those with all twelve more parameters at their last value are valid.
Space sparse_scale_space() {
  nlohmann::json json = nlohmann::json::parse(scale_json());
  std::string sum;
  for (int i = 0; i < 12; ++i) {
    json["parameters"].push_back({{"name", fmt::format("Q{}", i)}, {"values", {0, 1, 2, 3, 4}}, {"default", 0}});
    sum += fmt::format("{}Q{}", i == 0 ? "" : " + ", i);
  }
  json["constraints"].push_back(
      {{"require", fmt::format("{} == (WIDTH > 16 ? 48 : 0)", sum)}, {"because", "the space is to be sparse"}});
  return Space::parse(json.dump(), "scale.json");
}

TEST(PlannerTest, TheSearchForAConfigurationIsStoppedByItsCheck) {
  const Space space = sparse_scale_space();
  const BoundSpace bound(space, scale_problem(8, 32), DeviceLimits{});
  int asked = 0;
  const StopCheck third = [&asked] {
    if (++asked == 3) {
      throw StoppedError("now");
    }
  };
  EXPECT_THROW((void)plan_untuned(bound, {}, {}, third), StoppedError);
  EXPECT_EQ(asked, 3);
  EXPECT_THROW((void)untuned_config(bound, [] { throw StoppedError("at once"); }), StoppedError);
}

TEST(PlannerTest, TheSearchForAConfigurationIsStoppedByAnInterruption) {
  const Space space = sparse_scale_space();
  const BoundSpace bound(space, scale_problem(8, 32), DeviceLimits{});
  interruption() = true;
  EXPECT_THROW((void)plan_untuned(bound, {}, {}), StoppedError);
  EXPECT_THROW((void)make_plan(make_tuned_kernel(space, {}, {}, {old_toolkit()}), {old_toolkit()}, bound),
               StoppedError);
  interruption() = false;
}

TEST(ClosestValidTest, ChangesNothingWhereTheDefaultIsValid) {
  const Space space = Space::parse(scale_json(), "scale.json");
  EXPECT_EQ(closest_valid(BoundSpace(space, scale_problem(8, 16), DeviceLimits{}), {}), scale_config(64));
}

TEST(ClosestValidTest, FindsTwoChangesAndKnowsWhenNoneAreLeft) {
  std::string json = scale_json();
  const std::string before = R"("require": "WIDTH <= BLOCK")";
  json.replace(json.find(before), before.size(), R"x("require": "WIDTH <= BLOCK && (WIDTH < 100 || STEPS == 4)")x");
  const Space space = Space::parse(json, "scale.json");
  const BoundSpace bound(space, scale_problem(8, 100), DeviceLimits{});
  EXPECT_EQ(closest_valid(bound, {}), scale_config(128, 4));
  const std::vector<Config> all{scale_config(128, 4), scale_config(128, 4, 1)};
  EXPECT_EQ(closest_valid(bound, all), std::nullopt);
}

TEST(NearestValidTest, TakesTheFewestChangesAndOfTheseTheFewestSteps) {
  std::string json = scale_json();
  const std::string before = R"("require": "WIDTH <= BLOCK")";
  json.replace(json.find(before), before.size(), R"x("require": "WIDTH <= BLOCK && (WIDTH < 100 || STEPS == 4)")x");
  const Space space = Space::parse(json, "scale.json");
  const BoundSpace narrow(space, scale_problem(8, 16), DeviceLimits{});
  EXPECT_EQ(nearest_valid(narrow, scale_config(32)), scale_config(32)) << "valid as it is";
  const BoundSpace bound(space, scale_problem(8, 64), DeviceLimits{});
  EXPECT_EQ(nearest_valid(bound, scale_config(32, 4)), scale_config(64, 4)) << "one step, not two";
  const BoundSpace wide(space, scale_problem(8, 100), DeviceLimits{});
  EXPECT_EQ(nearest_valid(wide, scale_config(32)), scale_config(128, 4));
  const BoundSpace too_wide(space, scale_problem(8, 1000), DeviceLimits{});
  EXPECT_EQ(nearest_valid(too_wide, scale_config(32)), std::nullopt);
}

}  // namespace
}  // namespace pascaline::testing
