#include "tuner/bundle/bundle_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include <nlohmann/json.hpp>

#include "core/util/paths.hpp"
#include "core/workload.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

// Kernel `scale` with a macro that says whether there are many rows, whose number varies.
Space many_rows_space(const char* row = R"({"name": "ROWS", "description": "rows", "varies": true})") {
  nlohmann::json json = nlohmann::json::parse(scale_json());
  json["dimensions"][0] = nlohmann::json::parse(row);
  json["macros"] = {{{"name", "MANY"}, {"value", "ROWS >= 100"}}};
  return Space::parse(json.dump(), "scale.json");
}

TunedKernel tuned(const Space& space, std::vector<Winner> winners = {}) {
  KernelSource source;
  source.hash = "now";
  return make_tuned_kernel(space, source, std::move(winners), {old_toolkit()});
}

// The macros of every code.
std::set<std::string> macros(const TunedKernel& kernel, const PlannedCodes& planned) {
  std::set<std::string> result;
  for (const PlannedCode& code : planned.codes) {
    std::string text;
    for (const std::string& define : BoundSpace(kernel.space, code.problem, {}).defines(code.config)) {
      text += define + " ";
    }
    EXPECT_TRUE(result.insert(text).second) << text << "stands twice";
  }
  return result;
}

// Of one row, the only number that was seen, code for several is needed none the less.
TEST(BundlePlanTest, SizesSeenAtTheirLeastMayGrow) {
  nlohmann::json json = nlohmann::json::parse(scale_json());
  json["dimensions"][0] = nlohmann::json::parse(R"({"name": "ROWS", "description": "rows", "varies": true})");
  json["macros"] = {{{"name", "SEVERAL"}, {"value", "ROWS > 1"}}};
  const Space space = Space::parse(json.dump(), "scale.json");
  const TunedKernel kernel = tuned(space);
  const Problem one = scale_problem(1, 20);
  const auto planned = plan_codes(kernel, {old_toolkit()}, {}, {&one, 1}, true);
  EXPECT_EQ(macros(kernel, planned).size(), 2U);
  EXPECT_EQ(plan_codes(kernel, {old_toolkit()}, {}, {&one, 1}, false).codes.size(), 1U);
}

TEST(BundlePlanTest, SizesAreAllOrAreSpread) {
  EXPECT_EQ(sizes_up_to(3, 5), (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(sizes_up_to(3, 3), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(sizes_up_to(1, 8192).size(), 8192U);
  const std::int64_t most = 8 << 20U;
  const std::vector<std::int64_t> many = sizes_up_to(1, most);
  EXPECT_LT(many.size(), 20'000U);
  EXPECT_EQ(many.back(), most);
  EXPECT_TRUE(std::is_sorted(many.begin(), many.end()));
  EXPECT_EQ(std::adjacent_find(many.begin(), many.end()), many.end());
  for (std::int64_t from = 1024; 2 * from <= most; from *= 2) {
    std::set<std::int64_t> residues;
    for (const std::int64_t size : many) {
      if (size >= from && size < 2 * from) {
        residues.insert(size % 16);
      }
    }
    EXPECT_EQ(residues.size(), 16U) << "from " << from;
  }
  EXPECT_EQ(sizes_up_to(100'000, 200'000).front(), 100'000);
  EXPECT_EQ(sizes_up_to(100'000, 200'000).back(), 200'000);
}

TEST(BundlePlanTest, SizesBetweenHaveTheirCodeToo) {
  const TunedKernel kernel = tuned(many_rows_space());
  const std::vector<Problem> problems{scale_problem(500, 20)};
  EXPECT_EQ(macros(kernel, plan_codes(kernel, {old_toolkit()}, {}, problems, false)),
            (std::set<std::string>{"BLOCK=64 STEPS=1 BROKEN=0 MANY=1 T=float32 "}));
  const PlannedCodes all = plan_codes(kernel, {old_toolkit()}, {}, problems, true);
  EXPECT_EQ(all.problems, 2000U) << "up to four times as many rows";
  EXPECT_EQ(macros(kernel, all), (std::set<std::string>{"BLOCK=64 STEPS=1 BROKEN=0 MANY=0 T=float32 ",
                                                        "BLOCK=64 STEPS=1 BROKEN=0 MANY=1 T=float32 "}));
}

TEST(BundlePlanTest, ASmallMaximumIsReachedInAnyCase) {
  const Space space =
      many_rows_space(R"({"name": "ROWS", "description": "rows", "varies": true, "maximum": 8, "example": 1})");
  const TunedKernel kernel = tuned(space);
  EXPECT_EQ(plan_codes(kernel, {old_toolkit()}, {}, std::vector<Problem>{scale_problem(1, 20)}, true).problems, 8U);
}

TEST(BundlePlanTest, WinnersHaveTheirCodeAndTheDefaultBesides) {
  const TunedKernel kernel = tuned(many_rows_space(), {scale_winner(scale_problem(8, 20), scale_config(32, 4))});
  const std::vector<Problem> problems{scale_problem(8, 20)};
  EXPECT_EQ(macros(kernel, plan_codes(kernel, {old_toolkit()}, {}, problems, true)),
            (std::set<std::string>{"BLOCK=32 STEPS=4 BROKEN=0 MANY=0 T=float32 ",
                                   "BLOCK=64 STEPS=1 BROKEN=0 MANY=0 T=float32 "}))
      << "below 4 rows the winner is not valid and the default takes over";
}

TEST(BundlePlanTest, WhatCannotRunIsSaid) {
  const TunedKernel kernel = tuned(many_rows_space());
  const std::vector<Problem> problems{scale_problem(3, 500), scale_problem(3, 20)};
  const PlannedCodes planned = plan_codes(kernel, {old_toolkit()}, {}, problems, true);
  EXPECT_EQ(planned.codes.size(), 1U);
  ASSERT_EQ(planned.unplanned.size(), 1U);
  EXPECT_TRUE(contains(planned.unplanned[0], "scale ROWS=3 WIDTH=500")) << planned.unplanned[0];
}

TEST(BundlePlanTest, DimensionsThatAreEqualVaryTogether) {
  const auto spaces = data_folder("search_spaces");
  const Space space = Space::load(spaces / "attention_prefill.json");
  const TunedKernel kernel = tuned(space);
  const Problem images = space.problem({{"HEADS", "16"},
                                        {"KV_HEADS", "16"},
                                        {"HEAD_DIM", "64"},
                                        {"QUERIES", "256"},
                                        {"CAUSAL", "0"},
                                        {"SEGMENTS", "2"}});
  const PlannedCodes planned = plan_codes(kernel, {old_toolkit()}, {}, std::vector<Problem>{images}, true);
  EXPECT_TRUE(planned.unplanned.empty());
  std::set<std::string> all;
  for (const std::string& text : macros(kernel, planned)) {
    all.insert(text.substr(text.find("SEGMENTED=")).substr(0, 11));
  }
  EXPECT_EQ(all, (std::set<std::string>{"SEGMENTED=0", "SEGMENTED=1"}));
}

TEST(BundlePlanTest, MatmulAndMatvecTakeEachOthersProblemsWithOtherRows) {
  const auto spaces = data_folder("search_spaces");
  const Space matmul = Space::load(spaces / "matmul.json");
  const Space matvec = Space::load(spaces / "matvec.json");
  std::vector<Problem> many{matmul.problem({{"M", "512"}, {"N", "64"}, {"K", "32"}}),
                            matmul.problem({{"M", "100"}, {"N", "96"}, {"K", "32"}})};
  std::vector<Problem> few{matvec.problem({{"M", "1"}, {"N", "752"}, {"K", "64"}})};
  share_products(many, few, matvec);
  ASSERT_EQ(many.size(), 3U);
  EXPECT_EQ(many[2], matmul.problem({{"M", "512"}, {"N", "752"}, {"K", "64"}}));
  ASSERT_EQ(few.size(), 3U);
  EXPECT_EQ(few[1], matvec.problem({{"M", "8"}, {"N", "64"}, {"K", "32"}}));
  EXPECT_EQ(few[2], matvec.problem({{"M", "8"}, {"N", "96"}, {"K", "32"}}));
  std::vector<Problem> none;
  few.resize(1);
  share_products(none, few, matvec);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(few.size(), 1U);
}

TEST(BundlePlanTest, EveryShapeOfAModelIsPlannedInSeconds) {
  const auto spaces = data_folder("search_spaces");
  const Workload workload = Workload::load(spaces / "workloads" / "qwen3-vl-2b-float16.json");
  for (const char* name : {"matmul", "matvec", "attention_decode_qkv", "rmsnorm"}) {
    const Space space = Space::load(spaces / (std::string(name) + ".json"));
    std::vector<Problem> problems;
    for (const WorkloadProblem& known : expand(workload, space, {{}, true})) {
      problems.push_back(known.problem);
    }
    problems.resize(std::min<std::size_t>(problems.size(), 12));
    // Each a winner of its own: planning weighs a problem against all of them.
    std::vector<Winner> winners;
    for (const Problem& problem : problems) {
      Winner winner = scale_winner(problem, space.general_default());
      winner.kernel.name = name;
      winners.push_back(winner);
    }
    const TunedKernel kernel = tuned(space, winners);
    const auto begin = std::chrono::steady_clock::now();
    const PlannedCodes planned = plan_codes(kernel, {old_toolkit()}, {}, problems, true);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%s: %zu problems, %zu codes, %.2f s\n", name, planned.problems, planned.codes.size(), seconds);
    EXPECT_GT(planned.problems, problems.size());
    EXPECT_LT(planned.codes.size(), 200U);
  }
}

}  // namespace
}  // namespace pascaline::testing
