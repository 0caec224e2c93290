#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/device/compile.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

TEST_F(CliTest, CompileForTheEmulator) {
  const std::string emitted = (folder_ / "objects").string();
  const nlohmann::json json = json_of(run(on_toy("compile", {"--arch", "emulator", "--json", "--emit", emitted})));
  EXPECT_EQ(json["variants"].size(), 6U);
  for (const auto& variant : json["variants"]) {
    EXPECT_EQ(variant["status"], "ok");
  }
  const std::vector<nlohmann::json> index = emitted_index();
  ASSERT_EQ(index.size(), 6U);
  for (const nlohmann::json& entry : index) {
    const auto same = [&](const nlohmann::json& variant) { return variant["config"] == entry["config"]; };
    EXPECT_TRUE(std::any_of(json["variants"].begin(), json["variants"].end(), same)) << entry;
    EXPECT_EQ(entry["architecture"], "emulator");
    EXPECT_EQ(entry["compiler"], json["compiler"]);
    EXPECT_GT(std::filesystem::file_size(folder_ / "objects" / entry["file"].get<std::string>()), 0U);
  }
}

TEST_F(CliTest, CompileEmitsTheCodeOfEveryLaunchOfAPipeline) {
  const std::string examples = std::string(PASCALINE_TEST_SOURCES) + "/examples/kernels";
  const std::string emitted = (folder_ / "objects").string();
  const ProgramResult result = run({"compile", "--kernel", "dot_product", "--kernels", examples, "--spaces", examples,
                                    "--arch", "emulator", "--limit", "1", "--emit", emitted});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::vector<nlohmann::json> index = emitted_index();
  ASSERT_EQ(index.size(), 1U);
  ASSERT_EQ(index[0]["then"].size(), 1U);
  for (const nlohmann::json& file : {index[0]["file"], index[0]["then"][0]}) {
    EXPECT_GT(std::filesystem::file_size(folder_ / "objects" / file.get<std::string>()), 0U) << file;
  }
}

TEST_F(CliTest, CompileEmitsConfigurationsOfAnyLength) {
  nlohmann::json json = toy_json({kRight});
  const std::string name(200, 'x');
  json["parameters"].push_back({{"name", name}, {"values", {1, 2}}, {"default", 1}});
  write_bytes(folder_ / "toy.json", json.dump());
  const std::string emitted = (folder_ / "objects").string();
  for (const char* value : {"=1", "=2", "=2"}) {
    const ProgramResult result =
        run(on_toy("compile", {"--arch", "emulator", "--set", "BLOCK=64," + name + value, "--emit", emitted}));
    EXPECT_EQ(result.exit_code, 0) << result.error;
  }
  const std::vector<nlohmann::json> index = emitted_index();
  ASSERT_EQ(index.size(), 2U) << "what an earlier run left stays, once";
  EXPECT_NE(index[0]["file"], index[1]["file"]);
  EXPECT_NE(index[0]["config"][name], index[1]["config"][name]);
}

TEST_F(CliTest, HostIsTheEmulatorsOtherName) {
  for (const std::string name : {"host", "emulator"}) {
    EXPECT_EQ(json_of(run(on_toy("compile", {"--arch", name, "--limit", "1", "--json"})))["architecture"], "emulator");
  }
}

TEST_F(CliTest, CompileSaysWhichSourceItCompiled) {
  const std::string hash = KernelSource::load(folder_ / "toy.cu").hash;
  const std::vector<std::string> all = on_toy("compile", {"--arch", "emulator", "--json"});
  std::vector<std::string> one = all;
  one.insert(one.end(), {"--set", "BLOCK=32"});
  EXPECT_EQ(json_of(run(all))["source"], hash);
  EXPECT_EQ(json_of(run(one))["source"], hash);
}

TEST_F(CliTest, CompileRefusesOptionsThatItWouldIgnore) {
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--limit", "1"}, {"--jobs", "1"}}) {
    std::vector<std::string> words = on_toy("compile", {"--arch", "emulator", "--set", "BLOCK=32"});
    words.insert(words.end(), option.begin(), option.end());
    expect_fault(run(words), 2, {option[0], "--set"});
  }
  expect_fault(run(on_toy("compile", {"--arch", "emulator", "--seed", "1"})), 2, {"--seed requires --limit"});
  expect_fault(run(on_toy("compile", {"--arch", "emulator", "--set", "BLOCK=32", "--seed", "1"})), 2, {"--seed"});
  expect_fault(run(on_toy("compile", {"--arch", "emulator", "--nvrtc", "11.8"})), 2, {"emulator", "--nvrtc"});
}

// One line, of what could not be written, where and why.
TEST_F(CliTest, FoldersThatCannotBeMadeAreNamed) {
  const std::string file = (folder_ / "a file").string();
  write_bytes(file, "x");
  for (const std::string& place : {std::string("/proc/x"), file, file + "/below"}) {
    const ProgramResult result = run(on_toy("compile", {"--arch", "emulator", "--limit", "1", "--emit", place}));
    expect_fault(result, 1, {"cannot make the folder " + place + ": ", "; give another folder with --emit"});
    EXPECT_EQ(result.out, "") << "before anything is compiled";
    EXPECT_EQ(result.error.find("filesystem error"), std::string::npos) << result.error;
  }
  tune();
  const std::string place = folder_.path().string();
  expect_fault(run({"export", "--format", "rows", "--db", database_, "-o", place}), 1,
               {"cannot write " + place + ": it is a folder"});
  expect_fault(run({"export", "--format", "rows", "--db", database_, "-o", "/proc/x/y"}), 1,
               {"cannot write /proc/x/y: "});
}

TEST_F(CliTest, CompileOfSeveralProblemsEmitsAllIntoOneFolder) {
  const std::string emitted = (folder_ / "objects").string();
  const std::vector<std::string> command =
      on_toy("compile", {"--arch", "emulator", "--emit", emitted, "--problem", "N=100", "--problem", "N=200"});
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--set", "BLOCK=32"}}) {
    std::filesystem::remove_all(emitted);
    std::vector<std::string> words = command;
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words).exit_code, 0);
    std::multiset<std::string> problems;
    std::set<std::string> files;
    for (const nlohmann::json& entry : emitted_index()) {
      problems.insert(entry["problem"]);
      files.insert(entry["file"]);
    }
    EXPECT_EQ(files.size(), problems.size());
    EXPECT_EQ(problems.count("toy N=100"), more.empty() ? 6U : 1U);
    EXPECT_EQ(problems.count("toy N=200"), more.empty() ? 6U : 1U);
  }
}

bool compiles_for_sm_61(const NvrtcInfo& nvrtc) {
  const auto& known = nvrtc.architectures;
  return std::find(known.begin(), known.end(), "sm_61") != known.end();
}

TEST_F(CliTest, CompileForPascalWithEveryNvrtc) {
  int used = 0;
  for (const NvrtcInfo& nvrtc : find_nvrtc()) {
    const std::vector<std::string> command{"compile", "--arch", "sm_61",   "--limit",  "3",
                                           "--jobs",  "2",      "--nvrtc", nvrtc.path, "--json"};
    const ProgramResult result = run(command);
    if (!compiles_for_sm_61(nvrtc)) {
      expect_fault(result, 1, {nvrtc.path, "sm_61", "install"});
      continue;
    }
    ++used;
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const nlohmann::json json = json_of(result);
    EXPECT_EQ(json["version"], nvrtc.version);
    EXPECT_EQ(json["variants"].size(), 3U);
    for (const auto& variant : json["variants"]) {
      if (variant["status"] == "ok") {
        EXPECT_GT(variant["registers"], 0);
        EXPECT_GT(variant["ffma"], 0);
        const nlohmann::json& loop = variant.at("hottest_loop");
        EXPECT_FALSE(variant.at("loops").empty());
        for (const nlohmann::json& each : variant.at("loops")) {
          EXPECT_EQ(each.at("parent").is_null(), each.at("depth") == 1);
          EXPECT_LE(each.at("ffma"), each.at("instructions"));
        }
        EXPECT_GT(loop["ffma"], 0);
        EXPECT_GT(loop["arithmetic_share"], 0.3);
        EXPECT_LT(loop["arithmetic_per_slot"], 1.0);
        EXPECT_GT(loop["bytes_per_thread"]["shared"]["loaded"], 0);
      }
    }
  }
  if (used == 0) {
    GTEST_SKIP() << "no NVRTC here compiles for sm_61";
  }
}

TEST_F(CliTest, CompileForACardWithMoreMultiprocessors) {
  const std::vector<std::string> command{
      "compile", "--arch", "sm_61", "--problem", "M=1024,N=2048,K=2048,STORAGE=float32", "--set", "SPLIT_K=4"};
  expect_fault(run(command), 1, {"SPLIT_K=4", "not valid", "enough tiles to fill the device"});
  std::vector<std::string> larger = command;
  larger.insert(larger.end(), {"--sm-count", "132"});
  const std::vector<NvrtcInfo> found = find_nvrtc();
  if (std::any_of(found.begin(), found.end(), compiles_for_sm_61)) {
    EXPECT_EQ(run(larger).exit_code, 0);
  } else {
    expect_fault(run(larger), 1, {"sm_61", "install"});
  }
  larger.back() = "0";
  EXPECT_EQ(run(larger).exit_code, 2);
}

TEST_F(CliTest, MissingNvrtcNamesWhatToInstall) {
  const std::vector<std::string> compile{"compile", "--arch", "sm_61", "--limit", "1"};
  expect_fault(run(compile, {{{"PASCALINE_NVRTC", "/nonexistent/libnvrtc.so"}}}), 1,
               {"/nonexistent/libnvrtc.so", "sm_61", "install"});
}

}  // namespace
}  // namespace pascaline::testing
