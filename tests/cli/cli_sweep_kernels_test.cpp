#include <SQLiteCpp/Database.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "db/sweep_plan.hpp"
#include "tests/cli/cli_fixture.hpp"

// `pascaline sweep --workload` over two kernels.
namespace pascaline::testing {
namespace {

class CliSweepKernelsTest : public CliTest {
 protected:
  std::string workload_ = (folder_ / "work.json").string();

  void SetUp() override {
    write_toys(folder_.path(), {toy_json({kRight, kNotANumber}), accumulate_json()});
    write_bytes(workload_, R"({"schema": 1, "name": "work", "description": "-", "source": "-",
      "phases": [{"name": "prompt", "per": "prompt"}, {"name": "token", "per": "token"}],
      "entries": [
        {"kernel": "toy", "name": "a", "phase": "prompt", "dimensions": {"N": 500}, "count": 4},
        {"kernel": "toy", "name": "b", "phase": "token", "dimensions": {"N": 500}, "count": 2},
        {"kernel": "accumulate", "name": "c", "phase": "token", "dimensions": {"N": 300}, "count": 7},
        {"kernel": "unknown", "name": "d", "phase": "token", "dimensions": {"N": 300}, "count": 1}]})");
  }
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"sweep",    "--kernels",     kernels_,   "--spaces", kernels_,
                                 "--device", "host",          "--db",     database_,  "--jobs",
                                 "2",        "--warm-cache",  "--rounds", "2",        "--min-samples",
                                 "3",        "--max-samples", "5"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::vector<std::string> winners() const {
    std::vector<std::string> problems;
    for (const Winner& winner : Store(database_, OpenMode::read_only).winners("", nullptr)) {
      problems.push_back(winner.trial.problem.text());
    }
    std::sort(problems.begin(), problems.end());
    return problems;
  }
};

TEST_F(CliSweepKernelsTest, WorkloadIsTunedWholeAndEndsWithATableOfItsPhases) {
  const ProgramResult result = run(words({"--workload", workload_}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(winners(), (std::vector<std::string>{"accumulate N=300", "toy N=500"}));
  EXPECT_NE(result.out.find("kernel 'unknown' of " + workload_ + " has no search space"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("plan: 2 problems of 2 kernels, "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("(prompt: a; token: b)"), std::string::npos) << result.out;
  const std::size_t table = result.out.find("model time, before (defaults) and after (winners)");
  ASSERT_NE(table, std::string::npos) << result.out;
  EXPECT_LT(result.out.find("\nprompt ", table), result.out.find("\ntoken ", table)) << result.out;
  EXPECT_NE(result.out.find("\nall ", table), std::string::npos) << result.out;
}

TEST_F(CliSweepKernelsTest, SummaryAsJsonHasThePhases) {
  const nlohmann::json summary = json_of(simulate(words({"--workload", workload_, "--json"})));
  EXPECT_EQ(summary["problems_done"], 2);
  EXPECT_EQ(summary["left_out"], nlohmann::json::array());
  ASSERT_EQ(summary["phases"].size(), 2U);
  EXPECT_EQ(summary["phases"][0]["phase"], "prompt");
  EXPECT_EQ(summary["phases"][0]["calls"], 4);
  EXPECT_EQ(summary["phases"][1]["calls"], 9);
  EXPECT_EQ(summary["phases"][1]["problems"], 2);
  for (const nlohmann::json& phase : summary["phases"]) {
    EXPECT_GE(phase["speedup"].get<double>(), 1) << "a tuned result never loses to the default";
    EXPECT_DOUBLE_EQ(phase["speedup"].get<double>(),
                     phase["before_us"].get<double>() / phase["after_us"].get<double>());
  }
}

TEST_F(CliSweepKernelsTest, KernelsAndShapesGivenTwiceAreTunedOnce) {
  const nlohmann::json kernels =
      json_of(simulate(words({"--workload", workload_, "-k", "toy", "-k", "toy", "--trials", "1", "--json"})));
  EXPECT_EQ(kernels["problems_done"], 1);
  const nlohmann::json shapes =
      json_of(simulate(words({"-k", "toy", "-p", "N=400", "-p", "N=400", "--trials", "1", "--json"})));
  EXPECT_EQ(shapes["problems_done"], 1);
}

TEST_F(CliSweepKernelsTest, KernelsNarrowAWorkload) {
  const nlohmann::json one = json_of(simulate(words({"--workload", workload_, "--kernel", "accumulate", "--json"})));
  EXPECT_EQ(one["problems_done"], 1);
  EXPECT_EQ(winners(), (std::vector<std::string>{"accumulate N=300"}));
  const nlohmann::json both = json_of(
      simulate(words({"--workload", workload_, "-k", "accumulate", "-k", "toy", "--phase", "token", "--json"})));
  EXPECT_EQ(both["problems_done"], 2);
  ASSERT_EQ(both["phases"].size(), 1U);
  EXPECT_EQ(both["phases"][0]["calls"], 9);
}

TEST_F(CliSweepKernelsTest, KernelsThatAreNotThereAreFaults) {
  expect_fault(run(words({"--workload", workload_, "--kernel", "nosuch"})), 1, {"nosuch.json"});
  write_bytes(folder_ / "more.json", [] {
    nlohmann::json json = toy_json({kRight});
    json["kernel"] = "more";
    return json.dump();
  }());
  expect_fault(run(words({"--workload", workload_, "--kernel", "more"})), 1,
               {"no problem of kernel 'more'", "(it has: toy, accumulate, unknown)"});
  expect_fault(run(words({"--workload", workload_, "--kernel", "accumulate", "--phase", "prompt"})), 1,
               {"no problem of kernel 'accumulate' that fits --phase"});
  expect_fault(run(words({"--workload", workload_, "--type", "STORAGE=float32"})), 1, {"element type 'STORAGE'"});
  expect_fault(run(words({"--problem", "N=1", "--kernel", "toy", "--kernel", "accumulate"})), 2, {"--kernel once"});
  expect_fault(run(words({"--workload", workload_, "--model", kernels_})), 2, {"--model or --workload"});
  expect_fault(run(words({"--weights", "float32"})), 2, {"--weights is about a model", "--model"});
  EXPECT_FALSE(std::filesystem::exists(database_));
}

TEST_F(CliSweepKernelsTest, KernelsWithoutAWorkloadAreTunedForTheirExamples) {
  ASSERT_EQ(simulate(words({"-k", "toy", "-k", "accumulate", "--trials", "1"})).exit_code, 0);
  EXPECT_EQ(winners(), (std::vector<std::string>{"accumulate N=1000", "toy N=1000"}));
}

TEST_F(CliSweepKernelsTest, InterruptedSweepIsGoneOnWithWhole) {
  ASSERT_EQ(simulate(words({"--workload", workload_, "--trials", "1"})).exit_code, 0);
  SQLite::Database(database_, SQLite::OPEN_READWRITE)
      .exec("UPDATE sessions SET state = 'interrupted'; UPDATE plans SET trials = 3; DELETE FROM winners");
  const ProgramResult result =
      simulate({"sweep", "--resume", "--db", database_, "--kernels", kernels_, "--spaces", kernels_, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const nlohmann::json summary = json_of(result);
  EXPECT_EQ(summary["problems_done"], 2);
  EXPECT_EQ(summary["trials"], 6);
  ASSERT_EQ(summary["phases"].size(), 2U) << "they are part of the plan";
  EXPECT_EQ(summary["phases"][0]["phase"], "prompt");
  EXPECT_EQ(summary["phases"][1]["calls"], 9);
}

TEST_F(CliSweepKernelsTest, ResumingCanBeNarrowedToKernelsOfThePlan) {
  ASSERT_EQ(simulate(words({"--workload", workload_, "--trials", "1"})).exit_code, 0);
  const auto interrupt = [&] {
    SQLite::Database(database_, SQLite::OPEN_READWRITE)
        .exec("UPDATE sessions SET state = 'interrupted'; UPDATE plans SET trials = 2; DELETE FROM winners");
  };
  const auto resume = [&](const std::string& kernel) {
    return simulate(
        {"sweep", "--resume", "--db", database_, "--kernels", kernels_, "--spaces", kernels_, "--kernel", kernel});
  };
  interrupt();
  expect_fault(resume("other"), 1, {"its problems are of kernel 'accumulate, toy', not of 'other'"});
  ASSERT_EQ(resume("toy").exit_code, 0);
  EXPECT_EQ(winners(), (std::vector<std::string>{"toy N=500"}));
}

TEST_F(CliSweepKernelsTest, KernelAtFaultIsNamedAtTheEnd) {
  ToyWorld world;
  world.broken_references = {"accumulate_reference"};
  const ProgramResult result = simulate(words({"--workload", workload_, "--trials", "2"}), world);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(winners(), (std::vector<std::string>{"toy N=500"}));
  EXPECT_NE(result.out.find("left out, as they cannot be tuned here (1):\n  accumulate N=300: "), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("\ntoken       9"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("1 of 2\n"), std::string::npos) << result.out;
}

// The symbols of a workload say what varies: with time left, a shape between its two is tuned.
TEST_F(CliTest, AWorkloadsSymbolsSayWhatVaries) {
  nlohmann::json json = toy_json({kRight});
  json["dimensions"][0]["varies"] = true;
  write_toys(folder_.path(), {json});
  const std::string workload = (folder_ / "sizes.json").string();
  write_bytes(workload, R"({"schema": 1, "name": "sizes", "description": "two sizes", "source": "a test",
    "phases": [{"name": "prompt", "per": "prompt of S tokens", "symbols": {"S": [10, 20]}}],
    "entries": [{"kernel": "toy", "name": "first", "phase": "prompt", "dimensions": {"N": "100 * S"}, "count": 2}]})");
  const auto sweep_sizes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"sweep",    "--workload", workload, "--kernels", kernels_,
                                   "--spaces", kernels_,     "--db",   database_,   "--device",
                                   "emulator", "--jobs",     "1",      "--rounds",  "4"};
    words.insert(words.end(), more.begin(), more.end());
    return simulate(words);
  };
  const auto plan = [&] {
    const Store store(database_, OpenMode::read_only);
    return store.plan(store.sessions().at(0).run_uuid).value();
  };
  const nlohmann::json summary = json_of(sweep_sizes({"--budget", "300s", "--min-gain", "0", "--json"}));
  EXPECT_EQ(summary["deepening"]["shapes"], 1);
  EXPECT_EQ(summary["problems_done"], 2);
  EXPECT_EQ(summary["phases"].at(0)["problems"], 2) << "the shape in between is in no phase";
  ASSERT_EQ(plan().problems.size(), 3U);
  EXPECT_EQ(plan().problems[2].problem.text(), "toy N=1400");
  EXPECT_EQ(plan().problems[2].label, "between S=10 and S=20; prompt: first");
  const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  EXPECT_TRUE(
      std::ranges::any_of(winners, [](const Winner& winner) { return winner.trial.problem.text() == "toy N=1400"; }));
  const ProgramResult trials = sweep_sizes({"--trials", "5"});
  EXPECT_EQ(trials.exit_code, 0);
  EXPECT_EQ(trials.out.find("time left"), std::string::npos) << trials.out;
  EXPECT_EQ(plan().problems.size(), 2U) << "without a limit of time there is nothing in between";
  const ProgramResult off = sweep_sizes({"--budget", "300s", "--time-left", "search"});
  EXPECT_EQ(off.out.find("time left"), std::string::npos) << off.out;
  EXPECT_FALSE(plan().deepen);
}

}  // namespace
}  // namespace pascaline::testing
