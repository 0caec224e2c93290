#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "runtime/device/compile.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/static_model/measured_database.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

class CliRankTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  [[nodiscard]] ProgramResult rank(std::vector<std::string> more, const ProgramSetting& setting = {}) const {
    more.insert(more.begin(), "rank");
    return run_program(folder_.path(), more, setting);
  }
};

TEST_F(CliRankTest, RanksWithoutAGpu) {
  const std::vector<std::string> words{"--kernel", "transpose", "--problem", "ROWS=512,COLUMNS=100", "--top", "3"};
  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"--sm-count", "10", "--json"});
  const json out = json_of(rank(as_json));
  EXPECT_EQ(out["kernel"], "transpose");
  EXPECT_EQ(out["architecture"], "sm_61");
  EXPECT_EQ(out["sm_count"], 10);
  EXPECT_EQ(out["memory_gbps"], 192);
  const json& problem = out["problems"].at(0);
  EXPECT_EQ(problem["valid"], problem["ranked"]);
  ASSERT_EQ(problem["best"].size(), 3U);
  double before = 0;
  for (const json& entry : problem["best"]) {
    EXPECT_GE(entry["time_us"].get<double>(), before);
    before = entry["time_us"];
    EXPECT_TRUE(entry["config"].contains("TILE"));
    for (const char* key : {"compute_us", "shared_us", "global_us", "latency_us", "occupancy", "waves", "registers"}) {
      EXPECT_TRUE(entry[key].is_number()) << key;
    }
  }
  const ProgramResult table = rank(words);
  EXPECT_EQ(table.exit_code, 0) << table.error;
  EXPECT_NE(table.out.find("transpose ROWS=512 COLUMNS=100"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("TILE="), std::string::npos);
}

TEST_F(CliRankTest, SamplesLargeSpacesBySeed) {
  const std::vector<std::string> words{"--kernel", "softmax", "--sample", "40", "--top", "2", "--json", "--seed"};
  const auto with_seed = [&](const std::string& seed) {
    std::vector<std::string> all = words;
    all.push_back(seed);
    return json_of(rank(all))["problems"].at(0);
  };
  const json first = with_seed("3");
  EXPECT_EQ(first["ranked"], 40);
  EXPECT_GT(first["valid"], 40);
  EXPECT_EQ(first, with_seed("3"));
  EXPECT_NE(first, with_seed("4"));
}

TEST_F(CliRankTest, EstimatesOneConfiguration) {
  const json out = json_of(
      rank({"--kernel", "matmul", "--set", "BLOCK_M=128,BLOCK_N=128,THREAD_M=8,BLOCK_K=8,UNROLL_K=8", "--json"}));
  ASSERT_EQ(out["problems"].at(0)["best"].size(), 1U);
  EXPECT_EQ(out["problems"].at(0)["best"].at(0)["config"]["BLOCK_M"], 128);
  expect_fault(rank({"--kernel", "matmul", "--set", "MIN_BLOCKS=0"}), 1, {"not valid"});
  expect_fault(rank({"--kernel", "matmul", "--set", "BLOCK_M=255"}), 1, {"255", "BLOCK_M"});
}

TEST_F(CliRankTest, ASlowerCardTakesLonger) {
  const auto time = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--kernel", "transpose", "--top", "1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(rank(words))["problems"].at(0)["best"].at(0)["time_us"].get<double>();
  };
  EXPECT_GT(time({"--bandwidth", "20"}), 3 * time({"--bandwidth", "320"}));
  EXPECT_GT(time({"--clock", "200"}), time({"--clock", "1700"}));
  EXPECT_GT(time({"--sm-count", "3"}), time({"--sm-count", "20"}));
}

TEST_F(CliRankTest, BadInputIsToldApart) {
  expect_fault(rank({"--kernel", "nothing"}), 1, {"nothing"});
  expect_fault(rank({"--arch", "sm_999"}), 2, {"sm_999", "sm_61"});
  expect_fault(rank({"--arch", "emulator"}), 2, {"emulator"});
  expect_fault(rank({"--problem", "M=0,N=1,K=1"}), 1, {"M"});
  expect_fault(rank({"--problem", "M"}), 2, {"NAME=value"});
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--top", "0"},
                                                                                     {"--top", "many"},
                                                                                     {"--sm-count", "0"},
                                                                                     {"--clock", "nan"},
                                                                                     {"--bandwidth", "-1"},
                                                                                     {"--sample", "0"},
                                                                                     {"--compile", "-1"},
                                                                                     {"--min-trials", "1"},
                                                                                     {"--unknown"}}) {
    EXPECT_EQ(rank(words).exit_code, 2) << words.front();
  }
  expect_fault(rank({"--against", (folder_ / "none.db").string()}), 1, {"none.db"});
  write_bytes(folder_ / "text.db", "no database");
  expect_fault(rank({"--against", (folder_ / "text.db").string()}), 1, {"text.db"});
}

TEST_F(CliRankTest, OptionsThatWouldBeIgnoredAreRefused) {
  for (const char* option : {"--arch=sm_61", "--sm-count=3", "--device-name=x", "--problem=M=1", "--set=TILE=1",
                             "--top=3", "--sample=3", "--seed=3"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    expect_fault(rank({"--against", "x.db", option}), 2, {"--against", name});
  }
  expect_fault(rank({"--min-trials", "3"}), 2, {"--min-trials", "--against"});
  expect_fault(rank({"--db", "x.db"}), 2, {"--db", "--device-name"});
  expect_fault(rank({"--set", "TILE=1", "--seed", "3"}), 2, {"--set", "--seed"});
  for (const char* option : {"--jobs=1", "--nvrtc=11.8", "--cache=x"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    expect_fault(rank({option}), 2, {name, "--compile"});
  }
}

TEST_F(CliRankTest, ComparesWithMeasurements) {
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  const Problem problem = space.problem({{"ROWS", "4096"}, {"COLUMNS", "2048"}});
  std::vector<Trial> trials;
  for (const std::int64_t threads : {64, 128, 256, 512}) {
    for (const std::int64_t vector : {1, 2, 4}) {
      trials.push_back(timed_trial(problem,
                                   Config({{"TILE", std::int64_t{32}},
                                           {"BLOCK_THREADS", threads},
                                           {"VECTOR", vector},
                                           {"PADDING", std::int64_t{1}},
                                           {"MIN_BLOCKS", std::int64_t{1}}}),
                                   static_cast<double>(10 + vector)));
    }
  }
  const std::string file = (folder_ / "measured.db").string();
  store_trials(file, space, trials);
  const json out = json_of(rank({"--against", file, "--json"}));
  ASSERT_EQ(out["problems"].size(), 1U);
  EXPECT_EQ(out["problems"].at(0)["trials"], 12);
  EXPECT_EQ(out["kernels"]["transpose"]["problems"], 1);
  EXPECT_LE(std::abs(out["kernels"]["transpose"]["correlation"].get<double>()), 1);
  const ProgramResult table = rank({"--against", file, "--kernel", "transpose"});
  EXPECT_NE(table.out.find("Test card with 132 SMs, code for compute_61"), std::string::npos)
      << table.out << table.error;
  expect_fault(rank({"--against", file, "--kernel", "matmul"}), 1, {"matmul", "--min-trials"});
  expect_fault(rank({"--against", file, "--min-trials", "13"}), 1, {"13"});
  expect_fault(rank({"--against", file, "--kernel", "nothing"}), 1, {"nothing"});
}

// A probe of a card of compute capability 6.1, or of the card of `store_trials`.
void store_probe(const std::string& file, const DeviceRow& device, std::vector<ProbeValue> values) {
  Store store(file, OpenMode::create);
  Probe probe;
  probe.started_unix_ms = 1000;
  probe.values = std::move(values);
  store.add_probe(probe, store.device_id(device), store.toolkit_id({"nvrtc", "11.8", "sm_61", ""}));
}

bool compiles_for_sm_61() {
  bool found = false;
  for (const NvrtcInfo& nvrtc : find_nvrtc()) {
    const auto& known = nvrtc.architectures;
    found = found || std::find(known.begin(), known.end(), "sm_61") != known.end();
  }
  return found;
}

TEST_F(CliRankTest, CompilesTheBestAndRanksThemAgain) {
  const std::vector<std::string> words{"--kernel", "transpose",          "--compile", "2",
                                       "--cache",  PASCALINE_TEST_CACHE, "--json"};
  if (!compiles_for_sm_61()) {
    expect_fault(rank(words), 1, {"sm_61", "install"});
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  const json best = json_of(rank(words))["problems"].at(0)["best"];
  ASSERT_EQ(best.size(), 2U);
  EXPECT_LE(best.at(0)["code"]["time_us"], best.at(1)["code"]["time_us"]);
  for (const json& entry : best) {
    EXPECT_GT(entry["instructions"], 0);
    EXPECT_GT(entry["registers"], 0);
    const json& code = entry["code"];
    EXPECT_LE(code["least"]["time_us"], code["time_us"]);
    EXPECT_LE(code["time_us"], code["most"]["time_us"]);
    EXPECT_GT(code["least"]["time_us"], code["memory_us"]) << "device memory bounds it";
    EXPECT_TRUE(code["most"]["limit"].is_string());
  }
  const ProgramResult table =
      rank({"--kernel", "transpose", "--compile", "2", "--cache", PASCALINE_TEST_CACHE, "--arch", "sm_61"});
  EXPECT_NE(table.out.find("estimated from the machine code"), std::string::npos) << table.out << table.error;
}

// Three configurations of transpose, as measured.
std::vector<Trial> transposes(const Space& space) {
  std::vector<Trial> trials;
  for (const std::int64_t vector : {1, 2, 4}) {
    trials.push_back(timed_trial(space.problem({{"ROWS", "4096"}, {"COLUMNS", "2048"}}),
                                 Config({{"TILE", std::int64_t{32}},
                                         {"BLOCK_THREADS", std::int64_t{128}},
                                         {"VECTOR", vector},
                                         {"PADDING", std::int64_t{1}},
                                         {"MIN_BLOCKS", std::int64_t{1}}}),
                                 static_cast<double>(10 + vector)));
  }
  return trials;
}

TEST_F(CliRankTest, WithoutACompilerTheRestIsComparedAndALineSaysSo) {
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  const std::string file = (folder_ / "measured.db").string();
  store_trials(file, space, transposes(space), "cuda", "12.9");
  const ProgramResult table = rank({"--against", file, "--min-trials", "3", "--compile", "2"},
                                   {{{"PASCALINE_NVRTC", "/nonexistent/libnvrtc.so"}}});
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_NE(table.out.find("code for compute_61 by nvrtc 12.9"), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("Estimates from code"), std::string::npos);
  EXPECT_NE(table.error.find("estimates from code for compute_61 are left out (1 problem): "), std::string::npos)
      << table.error;
  EXPECT_EQ(std::count(table.error.begin(), table.error.end(), '\n'), 1) << table.error;
}

TEST_F(CliRankTest, EstimatesFromCodeAreComparedWithMeasurements) {
  if (!compiles_for_sm_61()) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  const Space space = Space::load(data_folder("search_spaces") / "transpose.json");
  const std::string file = (folder_ / "measured.db").string();
  store_trials(file, space, transposes(space), "cuda", "1.0");
  const std::vector<std::string> words{"--against", file, "--min-trials", "3",
                                       "--compile", "2",  "--cache",      PASCALINE_TEST_CACHE};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const json code = json_of(rank(as_json))["problems"].at(0)["code"];
  EXPECT_EQ(code["trials"], 2);
  for (const char* key : {"correlation", "least_correlation", "most_correlation", "compiled_correlation"}) {
    EXPECT_LE(std::abs(code[key].get<double>()), 1) << key;
  }
  EXPECT_TRUE(code["measured_conflict"].is_null());
  const ProgramResult assumed = rank(words);
  EXPECT_NE(assumed.out.find("Estimates from code"), std::string::npos);
  EXPECT_NE(assumed.error.find(", in place of nvrtc 1.0, which measured"), std::string::npos) << assumed.error;
  store_probe(file, {"cuda", "Test card", "9.0", 132, 1, R"({"sm_count":132})"},
              {{ProbeQuantity::conflict_slots, 0.25, 0.2, 0.3, 0, 9, true}});
  const json measured = json_of(rank(as_json))["problems"].at(0)["code"];
  EXPECT_EQ(measured["measured_conflict"], 0.25);
  EXPECT_EQ(measured["least_correlation"], measured["most_correlation"]);
  const ProgramResult table = rank(words);
  EXPECT_NE(table.out.find("Test card with 132 SMs: least and most take the 0.25 issue slots"), std::string::npos)
      << table.out;
}

TEST_F(CliRankTest, AMeasuredConflictReplacesTheRange) {
  if (!compiles_for_sm_61()) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
  const DeviceRow card{"cuda", "Probed card", "6.1", 20, 1, R"({"sm_count":20})"};
  const auto ranked = [&](std::optional<double> conflict, bool as_json) {
    const std::string file = (folder_ / (conflict ? fmt::format("{}.db", *conflict) : "without.db")).string();
    std::vector<ProbeValue> values{{ProbeQuantity::read_gbps, 300, 299, 301, 0.01, 9, true}};
    if (conflict) {
      values.push_back({ProbeQuantity::conflict_slots, *conflict, *conflict, *conflict, 0, 9, true});
    }
    store_probe(file, card, values);
    return rank({"--kernel", "matmul", "--problem", "M=512,N=2048,K=2048", "--set",
                 "ORDER=2,SWAP=0,SPLIT_K=1,BLOCK_N=128,THREAD_M=8", "--compile", "1", "--cache", PASCALINE_TEST_CACHE,
                 "--db", file, "--device-name", "Probed card", as_json ? "--json" : "--top=1"});
  };
  const auto code = [&](std::optional<double> conflict) {
    return json_of(ranked(conflict, true))["problems"].at(0)["best"].at(0)["code"];
  };
  const json assumed = code({});
  EXPECT_TRUE(assumed["measured_conflict"].is_null());
  EXPECT_LT(1.2 * assumed["least"]["time_us"].get<double>(), assumed["most"]["time_us"].get<double>());
  const json none = code(0.0);
  EXPECT_EQ(none["measured_conflict"], 0);
  EXPECT_EQ(none["least"], none["most"]) << "the space tells what lanes share";
  EXPECT_EQ(none["least"], assumed["least"]);
  EXPECT_EQ(code(1.0)["most"], assumed["most"]);
  const ProgramResult table = ranked(0.97, false);
  EXPECT_NE(table.out.find("conflict costs 0.97 issue slots there, as measured"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find(" measured "), std::string::npos) << table.out;
  EXPECT_EQ(ranked({}, false).out.find("as measured"), std::string::npos);
}

TEST_F(CliRankTest, RanksForAGpuThatWasProbed) {
  const std::string file = (folder_ / "probed.db").string();
  store_probe(file, {"cuda", "Small card", "6.1", 3, 1, R"({"sm_count":3})"},
              {{ProbeQuantity::sm_clock_mhz, 1240, 1239, 1241, 0.01, 9, true},
               {ProbeQuantity::read_gbps, 41, 40, 42, 0.01, 9, true}});
  const std::vector<std::string> words{"--kernel", "transpose", "--top", "1", "--db", file, "--device-name"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return rank(all);
  };
  const json out = json_of(with({"Small card", "--json"}));
  EXPECT_EQ(out["architecture"], "sm_61");
  EXPECT_EQ(out["sm_count"], 3);
  EXPECT_EQ(out["clock_mhz"], 1240);
  EXPECT_EQ(out["memory_gbps"], 41);
  EXPECT_NE(with({"Small card"}).out.find("measured by pascaline probe"), std::string::npos);
  EXPECT_EQ(json_of(with({"Small card", "--clock", "900", "--json"}))["clock_mhz"], 900);
  expect_fault(with({"Smal card"}), 1, {"no GPU called 'Smal card'", "did you mean 'Small card'"});
  expect_fault(with({"Small card", "--arch", "sm_70"}), 2, {"--arch"});
}

}  // namespace
}  // namespace pascaline::testing
