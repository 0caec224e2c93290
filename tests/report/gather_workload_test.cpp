#include <nlohmann/json.hpp>

#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

constexpr std::string_view kSpace = R"json({
  "schema": 1, "kernel": "KERNEL", "dimensions": [{"name": "N", "example": 4}], "types": TYPES,
  "parameters": [{"name": "TILE", "values": [1, 2, 4], "default": 1}],
  "launch": {"function": "KERNEL", "block": [128], "grid": ["N"]},
  "arguments": [{"name": "y", "buffer": "float32", "access": "out", "extent": "N"}],
  "reference": {"default": true}, "tolerance": {"float32": 1e-6, "float16": 1e-3},
  "work": {"flops": "N", "bytes": "N"}})json";

constexpr std::string_view kWorkload = R"json({
  "schema": 1, "name": "small", "description": "d", "source": "s",
  "types": {"STORAGE": ["float32", "float16"]},
  "phases": [{"name": "prompt", "per": "prompt of S tokens", "symbols": {"S": [8, 16]}}],
  "entries": [
    {"kernel": "typed", "name": "x", "phase": "prompt", "dimensions": {"N": "S"}, "count": 10},
    {"kernel": "typed", "name": "y", "phase": "prompt", "dimensions": {"N": "2 * S"}, "count": 3},
    {"kernel": "plain", "name": "z", "phase": "prompt", "dimensions": {"N": "S"}, "count": 1},
    {"kernel": "unknown", "name": "w", "phase": "prompt", "dimensions": {"N": "S"}, "count": 1}]})json";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// As `tune` of the fixture below makes all problems.
void expect_twice_as_fast(const ReportModelTimes& times, double best_us) {
  EXPECT_EQ(times.best_us, best_us);
  EXPECT_EQ(times.baseline_us, 2 * times.best_us);
  ASSERT_TRUE(times.speedup);
  EXPECT_EQ(times.speedup->value, 2);
  const double of_one = std::exp(std::hypot(0.1, 0.1));  // several problems are rarely all wrong to the same side
  EXPECT_GE(times.speedup->low, 2 / of_one - 1e-9);
  EXPECT_LT(times.speedup->low, 2);
  EXPECT_GT(times.speedup->high, 2);
  EXPECT_LE(times.speedup->high, 2 * of_one + 1e-9);
}

/// A model of two kernels whose spaces are known and one whose is not.
class GatherWorkloadTest : public ReportFixture {
 protected:
  void SetUp() override {
    const std::string typed = R"([{"name": "STORAGE", "values": ["float32", "float16"]}])";
    write_space("typed", typed);
    write_space("plain", "[]");
    write_bytes(folder_ / "small.json", std::string(kWorkload));
    options_.workload = (folder_ / "small.json").string();
    options_.spaces_folder = folder_.path();
  }
  void write_space(const std::string& kernel, const std::string& types) const {
    write_bytes(folder_ / (kernel + ".json"),
                replaced(replaced(std::string(kSpace), "KERNEL", kernel), "TYPES", types));
  }
  // The default takes twice as long as its best, with 10 % to both sides; `confidence` 0 leaves it undecided.
  void tune(const std::string& kernel, std::int64_t n, std::optional<ElementType> type, double best_us,
            double confidence, const std::string& source = "a") {
    Problem problem{kernel, {{"N", n}}, {}};
    if (type) {
      problem.types.emplace_back("STORAGE", *type);
    }
    ContextIds context = context_;
    context.kernel = store_.kernel_id({kernel, source});
    context.problem = store_.problem_id(problem, 1, 1);
    Trial baseline = timed(1, 2 * best_us);
    baseline.problem = problem;
    store_.add_trial(session_, context, baseline);
    Trial best = finalist(4, best_us);
    best.problem = problem;
    const std::int64_t winner = store_.add_trial(session_, context, best);
    if (confidence > 0) {
      store_.set_winner(context, winner, baseline.time, confidence);
    }
  }
  // The default wins.
  void tune_in_vain(const std::string& kernel, std::int64_t n, double best_us) {
    ContextIds context = context_;
    context.kernel = store_.kernel_id({kernel, "a"});
    Trial baseline = finalist(1, best_us);
    baseline.problem = {kernel, {{"N", n}}, {}};
    baseline.is_default = true;
    context.problem = store_.problem_id(baseline.problem, 1, 1);
    const std::int64_t winner = store_.add_trial(session_, context, baseline);
    store_.set_winner(context, winner, baseline.time, 0.5);
  }
  // As the session's run set it out.
  void save_plan(std::int64_t session, std::vector<PlannedProblem> problems) {
    SweepPlan plan = example_plan();
    plan.problems = std::move(problems);
    for (const SessionRow& row : store_.sessions()) {
      if (row.id == session) {
        store_.save_plan(row.run_uuid, plan);
      }
    }
  }
  ReportOptions options_;
};

TEST_F(GatherWorkloadTest, PhasesAreWeighedByCalls) {
  tune("typed", 8, ElementType::float32, 100, 0.998);
  tune("typed", 16, ElementType::float32, 1000, 0.996);
  tune("plain", 8, std::nullopt, 7, 1);
  const ReportDocument document = gather_report(store_, options_);
  const auto& workload = document.contexts.at(0).workload;
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->name, "small");
  // S=8 in both types, since 'plain' is in both; S=16 in float32, whose N = 16 is the same problem as 2 * 8.
  ASSERT_EQ(workload->phases.size(), 3U);
  const ReportPhase& phase = workload->phases[0];
  EXPECT_EQ(phase.phase, "prompt");
  EXPECT_EQ(phase.per, "prompt of S tokens");
  EXPECT_EQ(phase.symbols, (std::vector<std::pair<std::string, std::int64_t>>{{"S", 8}}));
  EXPECT_EQ(phase.types, (std::vector<std::pair<std::string, ElementType>>{{"STORAGE", ElementType::float32}}));
  expect_twice_as_fast(phase, 10 * 100 + 3 * 1000 + 7);
  EXPECT_EQ(phase.confidence, 0.996);
  EXPECT_EQ(phase.tuned, 3U);
  EXPECT_EQ(phase.problems, 3U);
  EXPECT_TRUE(phase.untuned.empty());
  EXPECT_EQ(workload->phases[1].best_us, 10 * 1000);
  ASSERT_EQ(workload->phases[1].untuned.size(), 2U);
  EXPECT_EQ(workload->phases[2].types[0].second, ElementType::float16);
  EXPECT_EQ(workload->phases[2].tuned, 1U);
  EXPECT_EQ(workload->phases[2].untuned.at(0).problem, "typed N=8 STORAGE=float16");
}

TEST_F(GatherWorkloadTest, TotalsAreOfAllPhasesOfAChoiceOfTypes) {
  tune("typed", 8, ElementType::float32, 100, 0.998);
  tune("typed", 16, ElementType::float32, 1000, 0.996);
  tune("plain", 8, std::nullopt, 7, 1);
  const ReportDocument document = gather_report(store_, options_);
  const ReportWorkload& workload = *document.contexts.at(0).workload;
  ASSERT_EQ(workload.totals.size(), 2U);
  const ReportModelTimes& total = workload.totals[0];
  EXPECT_EQ(total.types, workload.phases[0].types);
  expect_twice_as_fast(total, 10 * 100 + 3 * 1000 + 7 + 10 * 1000);
  EXPECT_EQ(total.confidence, 0.996);
  // "typed" of N = 16 is called at both values of S, so there are five problems, not six.
  EXPECT_EQ(total.tuned, 3U);
  EXPECT_EQ(total.problems, 5U);
  EXPECT_EQ(workload.totals[1].types, workload.phases[2].types);
  EXPECT_EQ(workload.totals[1].best_us, 7);
  EXPECT_EQ(workload.totals[1].problems, 5U) << "those of the phase of which nothing is tuned, too";
}

TEST_F(GatherWorkloadTest, ADefaultThatWonTakesNothingFromTheConfidence) {
  tune("typed", 8, ElementType::float32, 100, 0.998);
  tune_in_vain("plain", 8, 7);
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  EXPECT_EQ(workload->phases.at(0).confidence, 0.998);
  EXPECT_EQ(workload->phases.at(0).tuned, 2U);
  EXPECT_EQ(workload->totals.at(0).confidence, 0.998);
  // In float16 only 'plain' is tuned.
  EXPECT_EQ(workload->phases.at(1).confidence, 0.5);
  EXPECT_EQ(workload->totals.at(1).confidence, 0.5);
  EXPECT_EQ(workload->totals.at(1).speedup->value, 1);
}

TEST_F(GatherWorkloadTest, AKernelIsNotPartOfAChoiceItIsNotThereFor) {
  write_bytes(folder_ / "small.json",
              replaced(std::string(kWorkload), R"("float32", "float16"])", R"("float32", "float16", "bfloat16"])"));
  write_space("plain", R"([{"name": "STORAGE", "values": ["float32"]}])");
  tune("typed", 8, ElementType::float32, 100, 0.998);
  tune("plain", 8, ElementType::float32, 7, 1);
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  ASSERT_EQ(workload->totals.size(), 3U);
  EXPECT_EQ(workload->totals[0].best_us, 10 * 100 + 7);
  // Where a kernel is there for one type only, every choice has it.
  EXPECT_EQ(workload->totals[2].types[0].second, ElementType::bfloat16);
  EXPECT_EQ(workload->totals[2].best_us, 7);
  EXPECT_EQ(workload->totals[2].problems, 2U);
}

TEST_F(GatherWorkloadTest, AnEntryWithTypesOfItsOwnIsPartOfEveryChoice) {
  std::string workload = replaced(std::string(kWorkload), R"("float32", "float16"])", R"("float32", "bfloat16"])");
  workload = replaced(workload, R"("name": "x", )", R"("name": "x", "types": {"STORAGE": "float32"}, )");
  write_bytes(folder_ / "small.json", workload);
  tune("typed", 8, ElementType::float32, 100, 0.998);
  const auto totals = gather_report(store_, options_).contexts.at(0).workload->totals;
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].best_us, 10 * 100);
  EXPECT_EQ(totals[1].types[0].second, ElementType::bfloat16);
  EXPECT_EQ(totals[1].best_us, 10 * 100);
}

TEST_F(GatherWorkloadTest, WithoutAFileTheCallsAreThoseOfTheLatestSweepOfAModel) {
  tune("typed", 8, ElementType::float32, 100, 0.998);
  tune("plain", 8, std::nullopt, 7, 1);
  const Problem typed{"typed", {{"N", 8}}, {{"STORAGE", ElementType::float32}}};
  const Problem plain{"plain", {{"N", 9}}, {}};
  std::ignore = store_.problem_id(plain, 1, 1);
  save_plan(session_, {{typed, 1, "", {{"prompt", 1}}}});
  save_plan(begin_example_session(store_, context_),
            {{typed, 16, "", {{"image", 4}, {"prompt", 10}, {"token", 2}}}, {plain, 3, "", {{"token", 3}}}});
  save_plan(begin_example_session(store_, context_), {{typed, 100, "", {}}});
  options_.workload.clear();
  const ReportDocument document = gather_report(store_, options_);
  const auto& workload = document.contexts.at(0).workload;
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->name, "the latest sweep of a model or workload");
  ASSERT_EQ(workload->phases.size(), 3U);
  EXPECT_EQ(workload->phases[0].phase, "prompt");
  EXPECT_EQ(workload->phases[0].best_us, 10 * 100);
  EXPECT_EQ(workload->phases[1].phase, "token");
  EXPECT_EQ(workload->phases[1].best_us, 2 * 100);
  ASSERT_EQ(workload->phases[1].untuned.size(), 1U);
  EXPECT_EQ(workload->phases[1].untuned[0].problem, "plain N=9");
  EXPECT_EQ(workload->phases[2].phase, "image");
  ASSERT_EQ(workload->totals.size(), 1U);
  expect_twice_as_fast(workload->totals[0], 16 * 100);
  EXPECT_EQ(workload->totals[0].problems, 2U);

  ReportOptions other = options_;
  other.kernel = "plain";
  EXPECT_TRUE(gather_report(store_, other).contexts.at(0).workload->phases.empty()) << "nothing of it is tuned";
  other = options_;
  other.sessions = {session_};
  EXPECT_EQ(gather_report(store_, other).contexts.at(0).workload->totals.at(0).best_us, 100);
  other = options_;
  other.workload = (folder_ / "small.json").string();
  EXPECT_EQ(gather_report(store_, other).contexts.at(0).workload->name, "small");
  other.workload = kNoWorkload;
  EXPECT_FALSE(gather_report(store_, other).contexts.at(0).workload);
}

// A problem without a winner counts with its default on both sides: measured, or as the sweep estimated it.
TEST_F(GatherWorkloadTest, WhatHasNoWinnerStaysAtItsDefault) {
  tune("typed", 8, ElementType::float32, 100, 0.999);
  tune("plain", 8, std::nullopt, 7, 0);
  const Problem typed{"typed", {{"N", 8}}, {{"STORAGE", ElementType::float32}}};
  const Problem plain{"plain", {{"N", 8}}, {}};
  const Problem unseen{"plain", {{"N", 9}}, {}};
  Trial standard = timed(1, 14);
  standard.problem = plain;
  standard.is_default = true;
  ContextIds context = context_;
  context.kernel = store_.kernel_id({"plain", "a"});
  context.problem = store_.problem_id(plain, 1, 1);
  store_.add_trial(session_, context, standard);
  std::ignore = store_.problem_id(unseen, 1, 1);
  save_plan(session_,
            {{typed, 2, "", {{"token", 2}}}, {plain, 10, "", {{"token", 10}}}, {unseen, 4, "", {{"token", 4}}}});
  store_.note_progress(session_, 9000,
                       R"({"device": {"estimated": {"us": {"plain N=9": 25, "odd": -1}, "factor": 8}}})", {});
  options_.workload.clear();
  const ReportDocument document = gather_report(store_, options_);
  const ReportWorkload& workload = document.contexts.at(0).workload.value();
  const ReportModelTimes& total = workload.totals.at(0);
  EXPECT_DOUBLE_EQ(total.baseline_us, 2 * 200 + 10 * 14 + 4 * 25);
  EXPECT_DOUBLE_EQ(total.best_us, 2 * 100 + 10 * 14 + 4 * 25);
  EXPECT_EQ(total.tuned, 1U);
  EXPECT_EQ(total.problems, 3U);
  EXPECT_DOUBLE_EQ(total.decided_share.value(), 400.0 / 640);
  EXPECT_GT(total.speedup->low, 1) << "its winner is surely faster";
  EXPECT_LT(total.speedup->high, 2) << "most of the time could be that of the winner, not more";
  const std::vector<ReportUntuned>& untuned = workload.phases.at(0).untuned;
  ASSERT_EQ(untuned.size(), 2U);
  EXPECT_EQ(untuned[0].default_us, 14);
  EXPECT_EQ(untuned[1].default_us, 25);

  const std::vector<ModelPoint>& curve = workload.curve;
  ASSERT_GE(curve.size(), 2U);
  EXPECT_DOUBLE_EQ(curve.front().default_us, total.baseline_us);
  EXPECT_DOUBLE_EQ(curve.back().model_us, total.best_us);
  EXPECT_GE(curve.back().elapsed_s, 9);
  const auto json = document_json(document)["contexts"][0]["workload"]["curve"];
  EXPECT_EQ(json.size(), curve.size());
  EXPECT_DOUBLE_EQ(json.back()["model_us"].get<double>(), total.best_us);
  options_.workload = (folder_ / "small.json").string();
  EXPECT_TRUE(gather_report(store_, options_).contexts.at(0).workload->curve.empty()) << "a file is not a sweep";
}

// What problems of a model somebody else called them is no model that this sweep was of.
TEST_F(GatherWorkloadTest, ASweepWithoutAModelIsReportedAgainstNone) {
  const Problem known{"elementwise", {{"COUNT", 1048576}, {"OPERATION", 0}}, {}};  // of a workload of the program
  std::ignore = store_.problem_id(known, 1, 1);
  tune("typed", 8, ElementType::float32, 100, 0.998);
  save_plan(session_, {{known, 1, "", {}}});
  options_ = {};
  const ReportDocument document = gather_report(store_, options_);
  EXPECT_FALSE(document.contexts.at(0).workload);
  EXPECT_FALSE(document.contexts.at(0).kernels.at(0).problems.at(0).count);
  EXPECT_TRUE(document_json(document)["contexts"][0]["workload"].is_null());
}

TEST_F(GatherWorkloadTest, AModelIsReportedOfTheDevicesThatWereTunedForIt) {
  tune("typed", 8, ElementType::float32, 100, 0.998);
  save_plan(session_, {{{"typed", {{"N", 8}}, {{"STORAGE", ElementType::float32}}}, 16, "", {{"prompt", 16}}}});
  DeviceRow card = example_device();
  card.name = "another card";
  context_.device = store_.device_id(card);
  session_ = begin_example_session(store_, context_);
  tune("typed", 8, ElementType::float32, 100, 0.998);
  options_ = {};
  const ReportDocument document = gather_report(store_, options_);
  ASSERT_EQ(document.contexts.size(), 2U);
  EXPECT_TRUE(document.contexts[0].workload);
  EXPECT_FALSE(document.contexts[1].workload);
}

TEST_F(GatherWorkloadTest, SumsThatAreNotFiniteGiveNoSpeedup) {
  tune("typed", 8, ElementType::float32, 1e307, 0.998);
  tune("typed", 16, ElementType::float32, 1e307, 0.998);
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  EXPECT_FALSE(workload->phases.at(0).speedup);
  EXPECT_FALSE(workload->totals.at(0).speedup);
}

TEST_F(GatherWorkloadTest, CallsOfAProblemAreThoseOfAllPhases) {
  tune("typed", 16, ElementType::float32, 1000, 0.996);
  tune("typed", 17, ElementType::float32, 1000, 0.996);
  tune("plain", 8, std::nullopt, 7, 1);
  const ReportDocument document = gather_report(store_, options_);
  const auto& kernels = document.contexts.at(0).kernels;
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].problems[0].count, 1);
  EXPECT_EQ(kernels[1].problems[0].count, 13);
  EXPECT_FALSE(kernels[1].problems[1].count);
}

TEST_F(GatherWorkloadTest, AnUndecidedProblemStaysAtItsDefault) {
  tune("typed", 8, ElementType::float32, 100, 0);
  tune("typed", 16, ElementType::float32, 1000, 0.996);
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  EXPECT_EQ(workload->phases.at(0).confidence, 0.996);
  EXPECT_EQ(workload->phases.at(0).tuned, 1U);
  EXPECT_EQ(workload->phases.at(0).baseline_us, 10 * 200 + 3 * 2000);
  EXPECT_EQ(workload->phases.at(0).best_us, 10 * 200 + 3 * 1000);
  EXPECT_EQ(workload->phases.at(1).confidence, 0.996);
}

TEST_F(GatherWorkloadTest, OnlyTheLatestSourceOfAKernelCounts) {
  tune("typed", 8, ElementType::float32, 100, 0.996, "old");
  tune("typed", 16, ElementType::float32, 1000, 0.996, "new");
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  EXPECT_EQ(workload->phases.at(0).best_us, 3 * 1000);
  EXPECT_EQ(workload->phases.at(0).untuned.at(0).problem, "plain N=8");
}

TEST_F(GatherWorkloadTest, NothingTunedHasNoPhases) {
  store_.add_trial(session_, context_, timed(1, 100));
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  ASSERT_TRUE(workload);
  EXPECT_TRUE(workload->phases.empty());
}

TEST_F(GatherWorkloadTest, NoneAndFilesThatCannotBeRead) {
  tune("typed", 8, ElementType::float32, 100, 0.996);
  options_.workload = "none";
  const ReportDocument document = gather_report(store_, options_);
  EXPECT_FALSE(document.contexts.at(0).workload);
  EXPECT_FALSE(document.contexts.at(0).kernels.at(0).problems.at(0).count);
  options_.workload = (folder_ / "missing.json").string();
  EXPECT_THROW(std::ignore = gather_report(store_, options_), Error);
  write_bytes(folder_ / "bad.json", "{");
  options_.workload = (folder_ / "bad.json").string();
  EXPECT_THROW(std::ignore = gather_report(store_, options_), SpaceError);
}

TEST_F(GatherWorkloadTest, AKernelAskedForIsTheOnlyOneOfTheModel) {
  tune("typed", 8, ElementType::float32, 100, 0.996);
  tune("plain", 8, std::nullopt, 7, 1);
  options_.kernel = "plain";
  const auto workload = gather_report(store_, options_).contexts.at(0).workload;
  EXPECT_EQ(workload->phases.at(0).problems, 1U);
  EXPECT_EQ(workload->phases.at(0).best_us, 7);
}

}  // namespace
}  // namespace pascaline::testing
