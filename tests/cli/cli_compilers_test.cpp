#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "runtime/bundle/bundle.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/device/emulator/emulated_device.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

/// The program with two C++ compilers for the emulated device: the machine's own, and the same without optimisation,
/// which tells another version.
class CliCompilersTest : public CliTest {
 protected:
  HostCompiler usual_ = HostCompiler::find();
  std::string slow_ = (folder_ / "slow-c++").string();

  void SetUp() override {
    write_toys(folder_.path(), {toy_json({kRight})});
    std::ofstream(slow_) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" << usual_.name
                         << " (made for a test) 0.1.0'; else exec " << usual_.program << " \"$@\" -O0; fi\n";
    std::filesystem::permissions(slow_, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] ProgramSetting with(const std::string& compilers) const {
    return {{{"PASCALINE_HOST_CXX", compilers}}};
  }
  [[nodiscard]] ProgramSetting both() const { return with(usual_.program + "," + slow_); }
  // A sweep on simulated workers by these compilers.
  [[nodiscard]] ProgramResult simulate_with(const std::string& compilers, const std::vector<std::string>& words) const {
    const char* const chosen = std::getenv("PASCALINE_HOST_CXX");
    const std::string before = chosen != nullptr ? chosen : "";
    ::setenv("PASCALINE_HOST_CXX", compilers.c_str(), 1);
    ProgramResult result = simulate(words);
    ::setenv("PASCALINE_HOST_CXX", before.c_str(), 1);
    return result;
  }
};

TEST_F(CliCompilersTest, ASweepIsShownExplainedAndReportedByCompiler) {
  const ProgramResult swept = run(sweep({"--nvrtc", "all"}), both());
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  EXPECT_NE(swept.out.find("  compiler "), std::string::npos) << swept.out;
  const nlohmann::json winners = json_of(run({"show", "winners", "--db", database_, "--json"}));
  std::set<std::string> compilers;
  for (const auto& winner : winners) {
    compilers.insert(winner["compiler"]);
  }
  EXPECT_EQ(compilers, (std::set<std::string>{usual_.name + " 0.1.0", usual_.name + " " + usual_.version}));
  for (const auto& trial : json_of(run({"show", "trials", "--db", database_, "--json"}))) {
    EXPECT_TRUE(compilers.contains(trial["compiler"])) << trial;
  }
  const nlohmann::json plan =
      json_of(run(on_toy("explain", {"--db", database_, "--device", "emulator", "--json"}), both()));
  EXPECT_EQ(plan[0]["provenance"], "exact");
  EXPECT_TRUE(compilers.contains(plan[0]["compiler"].get<std::string>() + " " +
                                 plan[0]["compiler_version"].get<std::string>()));
  const ProgramResult report = run({"report", "--db", database_, "--format", "md"});
  EXPECT_EQ(report.exit_code, 0) << report.error;
  EXPECT_NE(report.out.find("## Compilers on "), std::string::npos) << report.out;
}

TEST_F(CliCompilersTest, ABundleHoldsCodeOfBothCompilersAndRunsWithoutEither) {
  ASSERT_EQ(simulate_with(usual_.program, sweep({"--problem", "N=1000"})).exit_code, 0);
  ASSERT_EQ(simulate_with(slow_, sweep({"--problem", "N=77"})).exit_code, 0);
  const std::string file = (folder_ / "x.pasc").string();
  const ProgramResult made = run({"bundle", "--arch", "emulator", "--db", database_, "--kernels", kernels_, "--spaces",
                                  kernels_, "--listed-only", "--jobs", "1", "-o", file},
                                 both());
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_NE(made.out.find(usual_.name + " 0.1.0"), std::string::npos) << made.out;
  const Bundle bundle = load_bundle(file);
  ASSERT_EQ(bundle.toolkits.size(), 2U);
  EXPECT_EQ(bundle.toolkits[0].version, usual_.version);
  EXPECT_EQ(bundle.toolkits[1].version, "0.1.0");
  std::set<std::size_t> used;
  for (const BundleCode& code : bundle.kernels.at(0).codes) {
    used.insert(code.toolkit);
  }
  EXPECT_EQ(used, (std::set<std::size_t>{0, 1}));
  EXPECT_EQ(encode_bundle(bundle), bytes_of(file));
}

TEST_F(CliCompilersTest, CompileOfSeveralProblemsTellsThemApartAndWhatHoldsForAllOnce) {
  const ProgramResult result = run(
      on_toy("compile", {"--arch", "emulator", "--nvrtc", "all", "--json", "--problem", "N=100", "--problem", "N=200"}),
      with(usual_.program));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::size_t second = result.out.find("\n{") + 1;
  ASSERT_NE(second, 0U) << result.out;
  const auto problem = [](const std::string& document) {
    return nlohmann::json::parse(document).at("problem").get<std::string>();
  };
  EXPECT_EQ(problem(result.out.substr(0, second)), "toy N=100");
  EXPECT_EQ(problem(result.out.substr(second)), "toy N=200");
  const std::string note = "there is one compiler to use here";
  EXPECT_NE(result.error.find(note), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find(note), result.error.rfind(note)) << result.error;
}

TEST_F(CliCompilersTest, CompileShowsBothResultsAndWhichCompilerGaveThem) {
  const nlohmann::json json =
      json_of(run(on_toy("compile", {"--arch", "emulator", "--nvrtc", "all", "--json"}), both()));
  EXPECT_EQ(json["compilers"].size(), 2U);
  EXPECT_EQ(json["planned"], 6);
  EXPECT_EQ(json["variants"].size(), 6U);
  std::multiset<std::string> versions;
  for (const auto& variant : json["variants"]) {
    EXPECT_EQ(variant["status"], "ok");
    versions.insert(variant["version"]);
  }
  EXPECT_EQ(versions.count("0.1.0"), 3U);
  const std::string emitted = (folder_ / "objects").string();
  const ProgramResult one =
      run(on_toy("compile", {"--arch", "emulator", "--nvrtc", "all", "--set", "BLOCK=64", "--emit", emitted}), both());
  EXPECT_EQ(one.exit_code, 0) << one.error;
  EXPECT_NE(one.out.find("compiler "), std::string::npos) << one.out;
  std::set<std::string> emitting;
  for (const nlohmann::json& entry : emitted_index()) {
    emitting.insert(entry["version"]);
  }
  EXPECT_EQ(emitting.size(), 2U);
  EXPECT_TRUE(emitting.contains("0.1.0"));
}

TEST_F(CliCompilersTest, ListsOfCompilersAreCheckedAsTheyAreGiven) {
  expect_fault(run(sweep({"--nvrtc", "11.8,"})), 2, {"'11.8,'", "an entry is empty"});
  expect_fault(run(sweep({"--nvrtc", ",12.9"})), 2, {"',12.9'", "an entry is empty"});
  expect_fault(run(sweep({"--nvrtc", "all,12.9"})), 2, {"'all,12.9'", "'all' is no version"});
  expect_fault(run(on_toy("compile", {"--arch", "emulator", "--nvrtc", "11.8,,12.9"})), 2, {"an entry is empty"});
  const nlohmann::json json =
      json_of(run(on_toy("compile", {"--arch", "emulator", "--nvrtc", "ALL", "--json"}), both()));
  EXPECT_EQ(json["compilers"].size(), 2U);
}

TEST_F(CliCompilersTest, OneCompilerIsSaidAndTheSweepGoesOn) {
  const ProgramResult result = simulate_with(usual_.program, sweep({"--nvrtc", "all"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("there is one compiler to use here: " + usual_.name), std::string::npos) << result.out;
}

TEST_F(CliCompilersTest, AllStaysInForceWhenASweepIsResumed) {
  ASSERT_EQ(simulate_with(usual_.program + "," + slow_, sweep({"--nvrtc", "all"})).exit_code, 0);
  { SQLite::Database(database_, SQLite::OPEN_READWRITE).exec("UPDATE sessions SET state = 'interrupted'"); }
  const ProgramResult result = simulate_with(
      usual_.program, {"sweep", "--resume", "--db", database_, "--kernels", kernels_, "--spaces", kernels_});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find(" --nvrtc all"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("0.1.0, which is not used now"), std::string::npos) << result.out;
}

// Both NVRTC libraries compile for sm_61; without them there is nothing to compare.
TEST_F(CliTest, CompileAndRankForPascalWithAllNvrtc) {
  std::set<std::string> versions;
  for (const NvrtcInfo& info : find_nvrtc()) {
    if (compiles_for(info, "sm_61")) {
      versions.insert(info.version);
    }
  }
  if (versions.size() < 2) {
    GTEST_SKIP() << "one NVRTC or none here compiles for sm_61; ./scripts/setup.sh --nvrtc-all brings two";
  }
  const nlohmann::json compiled =
      json_of(run({"compile", "--arch", "sm_61", "--limit", "2", "--jobs", "2", "--nvrtc", "all", "--json"}));
  EXPECT_EQ(compiled["variants"].size(), 2 * versions.size());
  const nlohmann::json ranked =
      json_of(run({"rank", "--arch", "sm_61", "--compile", "2", "--jobs", "2", "--nvrtc", "all", "--json"}));
  std::set<std::string> seen;
  for (const auto& one : ranked["problems"][0]["best"]) {
    seen.insert(one["compiler"].get<std::string>().substr(6));
  }
  EXPECT_EQ(seen, versions);
  const nlohmann::json devices = json_of(run({"devices", "--json"}));
  EXPECT_EQ(std::count_if(devices["nvrtc"].begin(), devices["nvrtc"].end(),
                          [](const auto& one) { return one["compiles_for_sm_61"] == true; }),
            std::ptrdiff_t(versions.size()));
  expect_fault(run({"compile", "--arch", "sm_61", "--limit", "1", "--nvrtc", "11.8,9.9"}), 1, {"'9.9'", "sm_61"});
  const ProgramResult twice = run({"compile", "--arch", "sm_61", "--limit", "1", "--nvrtc", "11.8,11.8"});
  EXPECT_EQ(twice.exit_code, versions.contains("11.8") ? 0 : 1) << twice.error;
}

}  // namespace
}  // namespace pascaline::testing
