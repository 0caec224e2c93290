#include <gtest/gtest.h>

#include "runtime/bundle/bundle.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/cli/cli_fixture.hpp"
#include "tests/model/model_folder.hpp"
#include "tests/runtime/bundle/bundle_fixture.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::vector<std::pair<std::string, std::string>> kNoCompiler{{"PASCALINE_HOST_CXX", "/nonexistent"},
                                                                   {"PASCALINE_NVRTC", "/nonexistent"}};

// The program with kernel `scale` in a folder of its own.
class CliBundleTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string kernels_ = folder_.path().string();
  std::string database_ = (folder_ / "tuned.db").string();
  std::string bundle_ = (folder_ / "x.pasc").string();

  CliBundleTest() { write_scale_kernel(folder_.path()); }

  [[nodiscard]] ProgramResult run(const std::vector<std::string>& words, const ProgramSetting& setting = {}) const {
    return run_program(folder_.path(), words, setting);
  }
  [[nodiscard]] ProgramResult make(const std::vector<std::string>& more,
                                   const std::string& architecture = "emulator") const {
    std::vector<std::string> words{"bundle", "--arch", architecture, "--kernels", kernels_, "--spaces",
                                   kernels_, "-o",     bundle_,      "--jobs",    "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  [[nodiscard]] Winner winner_here(std::int64_t rows, const Config& config) const {
    Winner winner = scale_winner(scale_problem(rows, 20), config);
    winner.device = device_row(open_device("emulator")->info());
    winner.kernel.source_hash = KernelSource::load(folder_ / "scale.cu").hash;
    return winner;
  }
  void store(const std::vector<Winner>& winners) const {
    Store store(database_, OpenMode::create);
    for (const Winner& winner : winners) {
      add_winner(store, winner);
    }
  }
};

TEST_F(CliBundleTest, HoldsWinnersAndTheirCode) {
  store({winner_here(8, scale_config(32, 2))});
  const ProgramResult result = make({"--db", database_});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_NE(result.out.find("1 winner, 2 binaries of 1 kernel for 1 problem"), std::string::npos) << result.out;
  const Bundle bundle = load_bundle(bundle_);
  EXPECT_EQ(bundle.architecture, "host");
  EXPECT_TRUE(same_identity(*bundle.device, device_row(open_device("emulator")->info())));
  EXPECT_EQ(bundle.kernels.at(0).winners.at(0).config, scale_config(32, 2));
  EXPECT_EQ(bundle.kernels[0].codes.size(), 2U);
  for (const BundleCode& code : bundle.kernels[0].codes) {
    EXPECT_EQ(code.code.substr(1, 3), "ELF");
  }
}

TEST_F(CliBundleTest, NamesFromTheDatabaseHoldNoCommandsForTheTerminal) {
  Winner named = winner_here(8, scale_config(32, 2));
  named.device.name = "a \033[31mred\033]0;title\a card";
  Winner outdated = named;
  outdated.trial.problem = scale_problem(9, 20);
  outdated.kernel.source_hash = "\033[2J";
  store({named, outdated});
  const ProgramResult result = make({"--db", database_});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("for emulator on a  [31mred ]0;title  card, by "), std::string::npos) << result.out;
  EXPECT_NE(result.error.find("is left out"), std::string::npos) << result.error;
  EXPECT_EQ((result.out + result.error).find_first_of("\033\a"), std::string::npos);
}

TEST_F(CliBundleTest, OutdatedWinnersAreLeftOutWithAWarning) {
  Winner outdated = winner_here(9, scale_config(32, 4));
  outdated.kernel.source_hash = "then";
  store({winner_here(8, scale_config(32, 2)), outdated, winner_here(10, scale_config(4096)),
         winner_here(11, scale_config(64, 1, 1))});
  const ProgramResult result = make({"--db", database_});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("warning: the winner of scale ROWS=9 WIDTH=20 T=float32 is left out: it was tuned for "
                              "another version"),
            std::string::npos)
      << result.error;
  EXPECT_NE(result.error.find("4096 is not among the values"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("code for scale ROWS=11 WIDTH=20 T=float32 is left out"), std::string::npos)
      << result.error;
  EXPECT_EQ(load_bundle(bundle_).kernels.at(0).winners.size(), 2U);
}

TEST_F(CliBundleTest, DevicesMustBeTold) {
  Winner other = winner_here(8, scale_config(128));
  other.device.name = "another processor";
  store({winner_here(8, scale_config(32, 2)), other});
  expect_fault(make({"--db", database_}), 1, {"several devices", "another processor with", "--device-name"});
  EXPECT_FALSE(fs::exists(bundle_));
  const ProgramResult result = make({"--db", database_, "--device-name", "another processor"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(load_bundle(bundle_).device->name, "another processor");
  expect_fault(make({"--db", database_, "--device-name", "a third"}), 1, {"has no winners for emulator on a third"});
}

TEST_F(CliBundleTest, WrongInputIsAFault) {
  expect_fault(make({"--db", database_}), 1, {database_, "no such file"});
  store({winner_here(8, scale_config(32, 2))});
  expect_fault(make({"--db", database_}, "sm_61"), 1, {"no winners for sm_61", "it has winners for emulator on"});
  expect_fault(make({"--untuned"}, "sm_12"), 2, {"unknown architecture 'sm_12'"});
  expect_fault(make({"--untuned", "--ptx"}), 1, {"--ptx"});
  expect_fault(make({"--untuned", "--db", database_}), 2, {"--db"});
  expect_fault(make({"--untuned", "--workload", "nosuch.json"}), 1, {"nosuch.json"});
  expect_fault(make({"--untuned", "--listed-only"}), 1, {"there is nothing to bundle"});
  const std::string right = bundle_;
  bundle_ = (folder_ / "nosuch" / "x.pasc").string();
  expect_fault(make({"--untuned"}), 1, {"cannot write " + bundle_});
  bundle_ = folder_.path().string();
  expect_fault(make({"--untuned"}), 1, {"it is a folder"});
  bundle_ = right;
  kernels_ = (folder_ / "nosuch").string();
  expect_fault(make({"--untuned"}), 1, {"no search spaces", "--spaces"});
  write_bytes(folder_ / "w.json", R"({"schema": 1, "name": "w", "phases": [{"name": "p"}], "entries": [
    {"kernel": "nosuch", "name": "e", "phase": "p", "count": 1, "dimensions": {}}]})");
  kernels_ = folder_.path().string();
  fs::create_directory(folder_ / "spaces");
  fs::rename(folder_ / "scale.json", folder_ / "spaces" / "scale.json");
  expect_fault(run({"bundle", "--arch", "emulator", "--kernels", kernels_, "--spaces", (folder_ / "spaces").string(),
                    "-o", bundle_, "--untuned", "--workload", (folder_ / "w.json").string()}),
               1, {"names kernel 'nosuch'"});
}

TEST_F(CliBundleTest, AFullDiskLeavesTheOldBundle) {
  store({winner_here(8, scale_config(32, 2)), winner_here(9, scale_config(64, 2)),
         winner_here(10, scale_config(128, 2))});
  ASSERT_EQ(make({"--db", database_}).exit_code, 0);
  const std::string before = bytes_of(bundle_);
  ProgramSetting setting;
  setting.file_size_limit = before.size() - 1;  // more than the database needs
  const ProgramResult result = run(
      {"bundle", "--arch", "emulator", "--kernels", kernels_, "--spaces", kernels_, "-o", bundle_, "--db", database_},
      setting);
  expect_fault(result, 1, {bundle_});
  EXPECT_EQ(bytes_of(bundle_), before);
}

TEST_F(CliBundleTest, ForSm61WithNvrtc) {
  for (const char* name : {"elementwise", "advance"}) {
    fs::copy_file(data_folder("search_spaces") / (std::string(name) + ".json"),
                  folder_ / (std::string(name) + ".json"));
    fs::copy_file(data_folder("kernel_templates") / (std::string(name) + ".cu"), folder_ / (std::string(name) + ".cu"));
  }
  fs::copy(data_folder("kernel_templates") / "common", folder_ / "common");
  fs::remove(folder_ / "scale.json");
  const std::vector<NvrtcInfo> all = find_nvrtc();
  const bool known = std::any_of(all.begin(), all.end(), [](const NvrtcInfo& info) {
    return std::find(info.architectures.begin(), info.architectures.end(), "sm_61") != info.architectures.end();
  });
  if (!known) {
    GTEST_SKIP() << "no NVRTC that compiles for sm_61; run ./scripts/setup.sh";
  }
  const ProgramResult result = make({"--untuned"}, "sm_61");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Bundle bundle = load_bundle(bundle_);
  EXPECT_EQ(bundle.kind, BinaryKind::cubin);
  EXPECT_EQ(bundle.toolkits.at(0).compiler, "nvrtc");
  EXPECT_EQ(bundle.toolkits.at(0).target, "sm_61");
  EXPECT_FALSE(bundle.device);
  EXPECT_EQ(bundle.limits.sm_count, 20);
  ASSERT_EQ(bundle.kernels.size(), 2U);
  for (const BundleKernel& kernel : bundle.kernels) {
    ASSERT_FALSE(kernel.codes.empty());
    for (const BundleCode& code : kernel.codes) {
      EXPECT_EQ(cubin_architecture(code.code), 61);
      EXPECT_EQ(cubin_kernels(code.code).at(0), kernel.function);
      EXPECT_GT(code.resources.instructions, 0);
    }
  }
  const auto refusal_of = [&](const std::function<void(json&)>& change) {
    return message_of([&] { (void)parse_bundle(with_manifest(bytes_of(bundle_), change), "x.pasc"); });
  };
  EXPECT_NE(refusal_of([](json& m) {
              m["architecture"] = m["toolkits"][0]["target"] = "sm_60";
            }).find("is code for sm_61, not for sm_60"),
            std::string::npos);
  EXPECT_NE(refusal_of([](json& m) {
              m["kernels"][0]["codes"][0]["resources"]["registers"] = 255;
            }).find("/registers: is 255, the code itself says"),
            std::string::npos);
  EXPECT_NE(refusal_of([](json& m) { m["kernels"][0]["function"] = "other"; }).find("other"), std::string::npos);
  ASSERT_EQ(make({"--untuned", "--ptx", "--sm-count", "28"}, "sm_61").exit_code, 0);
  const Bundle ptx = load_bundle(bundle_);
  EXPECT_EQ(ptx.limits.sm_count, 28);
  EXPECT_EQ(ptx.toolkits.at(0).target, "compute_61");
  EXPECT_NE(ptx.kernels.at(0).codes.at(0).code.find(".target sm_61"), std::string::npos);
}

TEST_F(CliBundleTest, CodeOfTemplatesHasTheCompilersNames) {
  const auto replace = [&](const char* name, const std::string& from, const std::string& to) {
    std::string text = bytes_of(folder_ / name);
    ASSERT_NE(text.find(from), std::string::npos);
    write_bytes(folder_ / name, text.replace(text.find(from), from.size(), to));
  };
  replace("scale.json", R"("function": "scale")", R"("function": "app::scale<T>")");
  replace("scale.json", R"("description": "width")", R"("description": "width", "example": 20)");
  replace("scale.cu", "extern \"C\" __global__ void scale(const T* x, T* y",
          "namespace app { template <typename E> __global__ void scale(const E* x, E* y");
  write_bytes(folder_ / "scale.cu", bytes_of(folder_ / "scale.cu") + "}\n");
  const ProgramResult on_host = make({"--untuned"});
  ASSERT_EQ(on_host.exit_code, 0) << on_host.error;
  EXPECT_EQ(load_bundle(bundle_).kernels.at(0).codes.at(0).function, "");
  const ProgramResult result = make({"--untuned"}, "sm_61");
  if (result.exit_code != 0 && find_nvrtc().empty()) {
    GTEST_SKIP() << "no NVRTC; run ./scripts/setup.sh";
  }
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const BundleKernel kernel = load_bundle(bundle_).kernels.at(0);
  EXPECT_EQ(kernel.function, "app::scale<T>");
  EXPECT_EQ(kernel.codes.at(0).function, "_ZN3app5scaleIfEEvPKT_PS1_PfPii");
  EXPECT_EQ(cubin_kernels(kernel.codes.at(0).code), std::vector<std::string>{kernel.codes.at(0).function});
  const std::string message = message_of([&] {
    (void)parse_bundle(
        with_manifest(bytes_of(bundle_), [](json& m) { m["kernels"][0]["codes"][0]["function"] = "other"; }), "x.pasc");
  });
  EXPECT_NE(message.find("other"), std::string::npos) << message;
}

// A whole model, with the code of the shapes that it launches.
TEST_F(CliBundleTest, AModelRunsFromItWithoutACompiler) {
  const std::string model = (folder_ / "model").string();
  fs::create_directory(model);
  write_model_folder(model);
  const auto on_host = [&](const std::string& command, const std::vector<std::string>& more,
                           const ProgramSetting& setting = {}) {
    std::vector<std::string> words{command,    "--model",   model,     "--context",  "64",     "--device",
                                   "emulator", "--weights", "float32", "--kv-cache", "float32"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, setting);
  };
  const std::vector<std::string> hello{"--prompt", "hello", "--greedy", "-n", "3", "--json"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), hello.begin(), hello.end());
    return words;
  };
  const ProgramResult plain = on_host("generate", with({"--untuned"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.error;
  const auto workload = (folder_ / "mine.json").string();
  const std::string length = json_of(plain)["prompt_tokens"].dump();
  ASSERT_EQ(on_host("workload", {"--untuned", "--prompt-tokens", length, "-o", workload}).exit_code, 0);
  const ProgramResult made = run({"bundle", "--arch", "emulator", "--untuned", "--listed-only", "--workload", workload,
                                  "-o", bundle_, "--jobs", "2"});
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_EQ(made.error, "");

  ProgramSetting bare;
  bare.environment = kNoCompiler;
  bare.environment.emplace_back("PASCALINE_CACHE_DIR", (folder_ / "no_cache").string());
  const ProgramResult result = on_host("generate", with({"--bundle", bundle_}), bare);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "") << "no operation falls back to the processor";
  EXPECT_EQ(json_of(result)["tokens"], json_of(plain)["tokens"]);
  EXPECT_FALSE(fs::exists(folder_ / "no_cache"));
  expect_fault(on_host("generate", with({"--untuned"}), bare), 1, {"PASCALINE_HOST_CXX"});
  const ProgramResult other =
      on_host("generate", {"--prompt", std::string(30, 'x'), "-n", "1", "--bundle", bundle_}, bare);
  EXPECT_EQ(other.exit_code, 0) << other.error;
  std::vector<std::string> words{"generate",  "--model", model,        "--context", "64",       "--device", "emulator",
                                 "--weights", "q8_0",    "--kv-cache", "float32",   "--bundle", bundle_};
  words.insert(words.end(), hello.begin(), hello.end());
  const ProgramResult rounded = run(words, bare);
  EXPECT_EQ(rounded.exit_code, 0) << rounded.error;
  std::size_t lacking = 0;
  for (std::size_t at = 0; (at = rounded.error.find("has no code for it", at)) != std::string::npos; ++at) {
    ++lacking;
  }
  EXPECT_EQ(lacking, 1U) << "one line for all that it lacks: " << rounded.error;
  EXPECT_NE(rounded.error.find("as does all else that the bundle lacks"), std::string::npos) << rounded.error;

  expect_fault(on_host("generate", with({"--bundle", bundle_, "--db", database_})), 2, {"--bundle"});
  expect_fault(on_host("generate", with({"--any-device"})), 2, {"--bundle"});
  expect_fault(on_host("profile", {"--bundle", workload, "--prompt-tokens", "8"}), 1,
               {"cannot use bundle " + workload, "not a bundle"});
  std::string damaged = bytes_of(bundle_);
  damaged[damaged.size() / 2] ^= 1;
  write_bytes(bundle_, damaged);
  expect_fault(on_host("generate", with({"--bundle", bundle_})), 1, {"cannot use bundle " + bundle_, "damaged"});
}

}  // namespace
}  // namespace pascaline::testing
