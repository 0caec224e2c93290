#include "core/workload.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tests/core/small_workload.hpp"
#include "tests/core/space/small_space.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::small_space;
using testing::small_workload;

class WorkloadTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<WorkloadProblem> expanded(const json& text, const WorkloadSelection& selection = {}) const {
    return expand(Workload::parse(text.dump(), "small.json"), space_, selection);
  }
  // The pointer of the complaint.
  [[nodiscard]] std::string complaint(const json& text) const {
    try {
      (void)expanded(text);
    } catch (const SpaceError& error) {
      EXPECT_EQ(error.file(), "small.json");
      return error.pointer();
    }
    return "accepted";
  }
  const Space space_ = Space::parse(small_space().dump(), "scale.json");
};

std::string line(const WorkloadProblem& problem) {
  std::string symbols;
  for (const auto& [name, value] : problem.symbols) {
    symbols += " " + name + "=" + std::to_string(value);
  }
  return problem.problem.text() + " x" + std::to_string(static_cast<int>(problem.count)) + " " + problem.phase +
         symbols + ": " + problem.names;
}

std::vector<std::string> lines(const std::vector<WorkloadProblem>& problems) {
  std::vector<std::string> out;
  for (const WorkloadProblem& problem : problems) {
    out.push_back(line(problem));
  }
  return out;
}

TEST_F(WorkloadTest, ExpandsSymbolsAndTypesAndMergesEqualProblems) {
  const std::vector<std::string> expected{
      "scale N=8 WIDTH=4 STORAGE=float32 x5 prompt S=4: first, second",
      "scale N=8 WIDTH=4 STORAGE=float16 x5 prompt S=4: first, second",
      "scale N=1 WIDTH=4 STORAGE=float32 x1 prompt S=4: last",
      "scale N=1 WIDTH=4 STORAGE=float16 x1 prompt S=4: last",
      "scale N=16 WIDTH=4 STORAGE=float32 x5 prompt S=8: first, second",
      "scale N=16 WIDTH=4 STORAGE=float16 x5 prompt S=8: first, second",
      "scale N=1 WIDTH=4 STORAGE=float32 x1 prompt S=8: last",
      "scale N=1 WIDTH=4 STORAGE=float16 x1 prompt S=8: last",
      "scale N=1 WIDTH=4 STORAGE=float32 x7 token: first",
      "scale N=1 WIDTH=4 STORAGE=float16 x7 token: first",
  };
  EXPECT_EQ(lines(expanded(small_workload())), expected);
}

TEST_F(WorkloadTest, PhasesAreSelectedByName) {
  EXPECT_EQ(expanded(small_workload(), {{"token"}, false}).size(), 2U);
  EXPECT_EQ(expanded(small_workload(), {{"token", "prompt"}, false}).size(), 10U);
  try {
    (void)expanded(small_workload(), {{"image"}, false});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "workload 'small' has no phase 'image'; it has prompt, token");
  }
}

TEST_F(WorkloadTest, AlternativesComeOnRequest) {
  const auto with = expanded(small_workload(), {{"prompt"}, true});
  EXPECT_EQ(with.size(), 12U);
  EXPECT_EQ(line(with[4]), "scale N=8 WIDTH=8 STORAGE=float32 x2 prompt S=4: both");
}

TEST_F(WorkloadTest, TypesAreThoseBothNameOrTheSpacesFirst) {
  json text = small_workload();
  text["types"]["STORAGE"] = {"int8", "float16"};
  EXPECT_EQ(expanded(text, {{"token"}, false}).front().problem.type("STORAGE"), ElementType::float16);
  EXPECT_EQ(expanded(text, {{"token"}, false}).size(), 1U);
  text.erase("types");
  EXPECT_EQ(expanded(text, {{"token"}, false}).front().problem.type("STORAGE"), ElementType::float32);
  text["types"] = {{"STORAGE", {"int8"}}};
  EXPECT_EQ(complaint(text), "/types/STORAGE");
}

TEST_F(WorkloadTest, EntriesMayHaveTypesOfTheirOwn) {
  json text = small_workload();
  text["entries"][5]["types"] = {{"STORAGE", "float16"}};
  const auto problems = expanded(text, {{"token"}, false});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().problem.type("STORAGE"), ElementType::float16);
  EXPECT_EQ(expanded(text, {{"prompt"}, false}).size(), 8U) << "the others have those of the workload";
  text["entries"][5]["types"] = json::object();
  EXPECT_EQ(expanded(text, {{"token"}, false}).size(), 2U);
  text["entries"][5]["types"] = {{"STORAGE", "int8"}};
  EXPECT_EQ(complaint(text), "/entries/5/types/STORAGE");
  text["entries"][5]["types"] = {{"OTHER", "float16"}};
  EXPECT_EQ(complaint(text), "/entries/5/types/OTHER");
  text["entries"][5]["types"] = {{"STORAGE", {"float16"}}};
  EXPECT_EQ(complaint(text), "/entries/5/types/STORAGE");
  text["entries"][5]["types"] = "float16";
  EXPECT_EQ(complaint(text), "/entries/5/types");
}

TEST_F(WorkloadTest, SeveralSymbolsGiveEveryCombination) {
  json text = small_workload();
  text["phases"][0]["symbols"]["B"] = {1, 2, 3};
  EXPECT_EQ(expanded(text, {{"prompt"}, false}).size(), 2U * 3 * 2 * 2);
}

TEST_F(WorkloadTest, MoreProblemsThanAnyoneHasAreRefusedBeforeTheyAreMade) {
  json values(200, 0);
  std::iota(values.begin(), values.end(), 1);
  json text = small_workload();
  for (const char* symbol : {"S", "A", "B", "C", "D", "E", "F", "G", "H", "I"}) {  // 200^10 would wrap around
    text["phases"][0]["symbols"][symbol] = values;
  }
  try {
    (void)expanded(text);
    FAIL() << "accepted";
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.file(), "small.json");
    EXPECT_EQ(error.pointer(), "/phases/0");
    EXPECT_NE(std::string(error.what()).find("phase 'prompt'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("100000 problems"), std::string::npos) << error.what();
  }
  EXPECT_EQ(expanded(text, {{"token"}, false}).size(), 2U) << "the other phase is small";
  for (std::size_t i = 0; i < 5; ++i) {
    text["entries"][i]["kernel"] = "norm";
  }
  EXPECT_EQ(expanded(text).size(), 2U) << "another kernel's phase is passed over";
}

TEST_F(WorkloadTest, MoreCombinationsOfTypesThanAnyoneHasAreRefusedBeforeTheyAreMade) {
  const json four{"float32", "float16", "float64", "int32"};
  json space = small_space();
  json text = small_workload();
  json own = {{"STORAGE", "float32"}};
  for (int i = 0; i < 40; ++i) {  // 4^40 would wrap around
    const std::string name = "TYPE_" + std::string(1, static_cast<char>('A' + i / 10)) + std::to_string(i % 10);
    space["types"].push_back({{"name", name}, {"values", four}});
    text["types"][name] = four;
    own[name] = "int32";
  }
  const Space many = Space::parse(space.dump(), "scale.json");
  try {
    (void)expand(Workload::parse(text.dump(), "small.json"), many);
    FAIL() << "accepted";
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.file(), "small.json");
    EXPECT_EQ(error.pointer(), "/types");
    EXPECT_NE(std::string(error.what()).find("100000 problems of kernel 'scale'"), std::string::npos) << error.what();
  }
  for (json& entry : text["entries"]) {
    if (entry["kernel"] == "scale") {
      entry["types"] = own;
    }
  }
  EXPECT_EQ(expand(Workload::parse(text.dump(), "small.json"), many).size(), 5U) << "each entry has its own";
}

// Two by two they are compared in minutes.
TEST_F(WorkloadTest, ManyEntriesAreMergedSoon) {
  constexpr std::size_t kSizes = 250;
  json text = small_workload();
  text["types"]["STORAGE"] = {"float32"};
  text["entries"] = json::array();
  for (std::size_t i = 0; i < kSizes; ++i) {
    text["entries"].push_back({{"kernel", "scale"},
                               {"name", "e" + std::to_string(i)},
                               {"phase", "token"},
                               {"dimensions", {{"N", i + 1}, {"WIDTH", i + 2}}},
                               {"count", 1}});
  }
  Workload workload = Workload::parse(text.dump(), "small.json");
  const std::vector<WorkloadEntry> sizes = workload.entries;
  workload.entries.clear();
  for (const WorkloadEntry& width : sizes) {
    for (WorkloadEntry entry : sizes) {
      entry.dimensions[1] = width.dimensions[1];
      workload.entries.push_back(std::move(entry));
    }
  }
  workload.entries.push_back(sizes[0]);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<WorkloadProblem> problems = expand(workload, space_);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  ASSERT_EQ(problems.size(), kSizes * kSizes);
  EXPECT_EQ(line(problems[0]), "scale N=1 WIDTH=2 STORAGE=float32 x2 token: e0, e0");
  EXPECT_EQ(line(problems[1]), "scale N=2 WIDTH=2 STORAGE=float32 x1 token: e1");
  EXPECT_EQ(line(problems[kSizes]), "scale N=1 WIDTH=3 STORAGE=float32 x1 token: e0");
}

TEST_F(WorkloadTest, OtherKernelsAreSkipped) {
  json text = small_workload();
  for (json& entry : text["entries"]) {
    entry["kernel"] = "other";
  }
  text["types"] = {{"STORAGE", {"int8"}}};
  EXPECT_TRUE(expanded(text).empty());
}

TEST_F(WorkloadTest, DimensionsMustFitTheSpace) {
  json text = small_workload();
  text["entries"][1]["dimensions"]["DEPTH"] = 1;
  EXPECT_EQ(complaint(text), "/entries/1/dimensions/DEPTH");
  text = small_workload();
  text["entries"][1]["dimensions"].erase("WIDTH");
  EXPECT_EQ(complaint(text), "/entries/1/dimensions");
  text = small_workload();
  text["entries"][2]["dimensions"]["WIDTH"] = 1;  // below its minimum
  EXPECT_EQ(complaint(text), "/entries/2/dimensions/WIDTH");
  text = small_workload();
  text["entries"][0]["dimensions"]["N"] = "S / (S - 4)";
  EXPECT_EQ(complaint(text), "/entries/0/dimensions/N");
}

TEST_F(WorkloadTest, DimensionsWithADefaultMayBeLeftOut) {
  json space = small_space();
  space["dimensions"][1]["default"] = "N / 2";
  space["dimensions"][1]["maximum"] = 6;
  const Space with_default = Space::parse(space.dump(), "scale.json");
  json text = small_workload();
  text["entries"][0]["dimensions"].erase("WIDTH");
  const auto expand_it = [&] {
    return expand(Workload::parse(text.dump(), "small.json"), with_default, {{"prompt"}, false});
  };
  text["phases"][0]["symbols"]["S"] = {4};
  EXPECT_EQ(line(expand_it().front()), "scale N=8 WIDTH=4 STORAGE=float32 x5 prompt S=4: first, second")
      << "the same problem, whether it is spelled out or not";
  text["entries"][1]["dimensions"]["WIDTH"] = 7;
  try {
    (void)expand_it();
    FAIL() << "accepted";
  } catch (const SpaceError& error) {
    EXPECT_EQ(error.pointer(), "/entries/1/dimensions/WIDTH");
    EXPECT_NE(std::string(error.what()).find("range of 2 to 6"), std::string::npos) << error.what();
  }
}

TEST_F(WorkloadTest, ADefaultOutsideOfItsDimensionIsTold) {
  json space = small_space();
  space["dimensions"][1]["default"] = "N / 2";
  space["dimensions"][1]["maximum"] = 6;
  const Space with_default = Space::parse(space.dump(), "scale.json");
  json text = small_workload();
  text["entries"][0]["dimensions"].erase("WIDTH");  // N is 8 and 16
  const auto complaint = [&](const Space& used) -> std::string {
    try {
      (void)expand(Workload::parse(text.dump(), "small.json"), used, {{"prompt"}, false});
    } catch (const SpaceError& error) {
      EXPECT_EQ(error.pointer(), "/entries/0/dimensions");
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(complaint(with_default).find("WIDTH of kernel 'scale' is 8, outside its range of 2 to 6"),
            std::string::npos);
  space["dimensions"][1]["default"] = "N / (N - 8)";
  EXPECT_NE(complaint(Space::parse(space.dump(), "scale.json")).find("WIDTH of kernel 'scale' has no value"),
            std::string::npos);
}

TEST_F(WorkloadTest, TypesFollowOthersUnlessNamed) {
  json space = small_space();
  space["types"].push_back({{"name", "OUT"}, {"values", {"float32", "float16"}}, {"like", "STORAGE"}});
  const Space with_like = Space::parse(space.dump(), "scale.json");
  const auto types = [&](const json& text) {
    std::vector<std::pair<ElementType, ElementType>> pairs;
    for (const auto& problem : expand(Workload::parse(text.dump(), "small.json"), with_like, {{"token"}, false})) {
      pairs.emplace_back(problem.problem.type("STORAGE"), problem.problem.type("OUT"));
    }
    return pairs;
  };
  constexpr ElementType kFloat = ElementType::float32;
  constexpr ElementType kHalf = ElementType::float16;
  using Pairs = std::vector<std::pair<ElementType, ElementType>>;
  json text = small_workload();
  EXPECT_EQ(types(text), (Pairs{{kFloat, kFloat}, {kHalf, kHalf}}));
  text["types"]["OUT"] = {"float16"};
  EXPECT_EQ(types(text), (Pairs{{kFloat, kHalf}, {kHalf, kHalf}}));
}

TEST_F(WorkloadTest, EveryProblemFitsItsSpace) {
  for (const WorkloadProblem& problem : expanded(small_workload(), {{}, true})) {
    EXPECT_NO_THROW(space_.check(problem.problem));
    EXPECT_GT(problem.count, 0);
  }
}

// Holds every workload that is delivered against every search space that is.
TEST(DeliveredWorkloadsTest, FitTheSearchSpaces) {
  const std::filesystem::path folder = data_folder("search_spaces");
  if (!std::filesystem::is_directory(folder / "workloads")) {
    GTEST_SKIP() << "no workloads in " << folder;
  }
  for (const auto& workload_file : std::filesystem::directory_iterator(folder / "workloads")) {
    const Workload workload = Workload::load(workload_file.path());
    for (const auto& space_file : std::filesystem::directory_iterator(folder)) {
      if (space_file.path().extension() != ".json") {
        continue;
      }
      const Space space = Space::load(space_file.path());
      for (const WorkloadProblem& problem : expand(workload, space, {{}, true})) {
        EXPECT_NO_THROW(space.check(problem.problem)) << problem.problem.text();
        const BoundSpace bound(space, problem.problem, *limits_of_architecture("sm_61"));
        EXPECT_GT(bound.bytes(), 0) << problem.problem.text();
      }
    }
  }
}

}  // namespace
}  // namespace pascaline
