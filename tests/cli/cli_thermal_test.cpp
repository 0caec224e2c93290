#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/cli/cli_model_fixture.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

// A model on the emulated device, with a script for the card's sensors: hot from the beginning.
class CliThermalTest : public CliModelFixture {
 protected:
  std::string database_ = (folder_ / "tuned.db").string();

  // Winners of a kernel that every pass launches; its shapes take them as the nearest ones.
  void store_winners() const {
    const auto device = open_device("emulator");
    const Dispatcher dispatcher(*device, {});
    const Problem problem{"gather",
                          {{"TOKENS", 4}, {"WIDTH", 64}, {"VOCABULARY", 512}},
                          {{"STORAGE", ElementType::float32}, {"TABLE", ElementType::float32}}};
    Store store(database_, OpenMode::create);
    for (const Objective objective : {Objective::time, Objective::sustained}) {
      std::vector<Config::Setting> settings = dispatcher.plan(problem).config.settings();
      for (Config::Setting& setting : settings) {
        setting.second =
            setting.first == "MIN_BLOCKS" ? Value(std::int64_t{objective == Objective::time ? 4 : 2}) : setting.second;
      }
      Winner winner = scale_winner(problem, Config(std::move(settings)));
      winner.objective = objective;
      winner.device = device_row(device->info());
      winner.toolkit = dispatcher.toolkit();
      winner.kernel = {"gather", KernelSource::load(dispatcher.kernels_folder() / "gather.cu").hash};
      add_winner(store, winner);
    }
  }
  [[nodiscard]] ProgramResult with_database(const std::string& command, const std::vector<std::string>& more,
                                            const std::string& input = "") const {
    write_bytes(folder_ / "trace.json", R"([{"at_s": 0, "temperature_c": 82, "temperature_limit_c": 83}])");
    std::vector<std::string> words{
        command,    "--model",   model_, "--db",      database_,   "--device",
        "emulator", "--context", "64",   "--weights", "float32",   "--kv-cache",
        "float32",  "--greedy",  "-n",   "4",         "--sensors", (folder_ / "trace.json").string()};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.input = input;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    return run_program(folder_.path(), words, setting);
  }
  [[nodiscard]] std::string policy(const std::string& text) const {
    write_bytes(folder_ / "policy.json", text);
    return (folder_ / "policy.json").string();
  }
};

TEST_F(CliThermalTest, TheStateIsToldWithItsLaunches) {
  store_winners();
  const std::string quick =
      policy(R"({"states": {"hot": ["sustained", "energy"]}, "rise_s": 0, "dwell_s": 0, "period_s": 0.05})");
  const ProgramResult answered = with_database("generate", {"--prompt", "x", "--json", "--thermal", quick});
  ASSERT_EQ(answered.exit_code, 0) << answered.error;
  EXPECT_NE(answered.error.find("no winner by energy is known for this device"), std::string::npos) << answered.error;
  const nlohmann::json thermal = nlohmann::json::parse(answered.out)["thermal"];
  EXPECT_EQ(thermal["state"], "hot");
  EXPECT_EQ(thermal["switches"], 1);
  EXPECT_EQ(thermal["reason"], "the card is at 82 C, its limit is 83 C");
  EXPECT_GT(thermal["launches"]["hot"].get<int>(), 0);
  EXPECT_EQ(thermal["launches"]["throttled"], 0);
  EXPECT_EQ(thermal["winners_by"]["hot"], (nlohmann::json{"sustained", "energy"}));
  EXPECT_GT(thermal["problems_with_variants"].get<int>(), 0);
  EXPECT_EQ(thermal["temperature_c"], 82);
  EXPECT_TRUE(thermal["power_w"].is_null());

  const ProgramResult chat = with_database("chat", {"--thermal", quick}, "one\n/stats\n");
  ASSERT_EQ(chat.exit_code, 0) << chat.error;
  EXPECT_NE(chat.out.find("card: hot, 82 C; 1 change (the last: the card is at 82 C, its limit is 83 C); launches: "),
            std::string::npos)
      << chat.out;

  const std::string told =
      "pascaline: emulator: hot (the card is at 82 C, its limit is 83 C): winners by sustained time or energy run\n";
  EXPECT_EQ(chat.error.find(told), chat.error.rfind(told)) << "once: " << chat.error;
  EXPECT_NE(chat.error.find(told), std::string::npos) << chat.error;
  EXPECT_EQ(chat.out.find("winners by"), std::string::npos) << chat.out;
  EXPECT_EQ(answered.error.find(told), std::string::npos) << "the JSON tells it: " << answered.error;
  const ProgramResult text = with_database("generate", {"--prompt", "x", "--thermal", quick});
  EXPECT_NE(text.error.find(told), std::string::npos) << text.error;
  EXPECT_EQ(text.out, nlohmann::json::parse(answered.out)["text"].get<std::string>() + "\n");

  const ProgramResult off = with_database("generate", {"--prompt", "x", "--json", "--thermal", "off"});
  ASSERT_EQ(off.exit_code, 0) << off.error;
  EXPECT_EQ(off.error, "");
  EXPECT_TRUE(nlohmann::json::parse(off.out)["thermal"].is_null());
  EXPECT_EQ(nlohmann::json::parse(off.out)["text"], nlohmann::json::parse(answered.out)["text"]);
}

TEST_F(CliThermalTest, AProfileSaysWhatTheCardToldAndWhichWinnersRan) {
  store_winners();
  const std::string quick =
      policy(R"({"states": {"hot": ["sustained", "energy"]}, "rise_s": 0, "dwell_s": 0, "period_s": 0.05})");
  write_bytes(
      folder_ / "trace.json",
      R"([{"at_s": 0, "temperature_c": 82, "temperature_limit_c": 83, "sm_clock_mhz": 1480, "throttle_reasons": 4}])");
  const auto profile = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"profile",
                                   "--model",
                                   model_,
                                   "--db",
                                   database_,
                                   "--device",
                                   "emulator",
                                   "--context",
                                   "64",
                                   "--weights",
                                   "float32",
                                   "--kv-cache",
                                   "float32",
                                   "--prompt-tokens",
                                   "8",
                                   "--sensors",
                                   (folder_ / "trace.json").string()};
    words.insert(words.end(), more.begin(), more.end());
    ProgramSetting setting;
    setting.environment = {{"PASCALINE_CACHE_DIR", PASCALINE_TEST_CACHE}};
    return run_program(folder_.path(), words, setting);
  };
  const ProgramResult text = profile({"--thermal", quick});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  const std::string line =
      "card while it ran: 82 C (limit 83 C), 1480 MHz, slowed down for its power; winners by sustained time or energy "
      "(throttled: ";
  const auto first = text.out.find(line);
  ASSERT_NE(first, std::string::npos) << text.out;
  EXPECT_NE(text.out.find(line, first + 1), std::string::npos) << "of each pass: " << text.out;

  const ProgramResult as_json = profile({"--thermal", quick, "--json"});
  ASSERT_EQ(as_json.exit_code, 0) << as_json.error;
  const nlohmann::json passes = nlohmann::json::parse(as_json.out)["passes"];
  ASSERT_EQ(passes.size(), 2U);
  for (const nlohmann::json& pass : passes) {
    const nlohmann::json& card = pass["card"];
    EXPECT_EQ(card["temperature_c"], (nlohmann::json{82, 82}));
    EXPECT_EQ(card["temperature_limit_c"], 83);
    EXPECT_EQ(card["sm_clock_mhz"], (nlohmann::json{1480, 1480}));
    EXPECT_TRUE(card["power_w"].is_null());
    EXPECT_EQ(card["throttle_reasons"], 4);
    EXPECT_EQ(card["slowed_down_for"], nlohmann::json{"power"});
    int launches = 0;
    for (const nlohmann::json& launch : pass["launches"]) {
      launches += launch["count"].get<int>();
    }
    EXPECT_EQ(card["launches"]["throttled"], launches) << "of the pass that is timed alone";
    EXPECT_EQ(card["launches"]["cool"], 0);
  }
  const ProgramResult off = profile({"--thermal", "off"});
  ASSERT_EQ(off.exit_code, 0) << off.error;
  EXPECT_NE(off.out.find("card while it ran: it reports neither temperature nor clock; winners by time\n"),
            std::string::npos)
      << off.out;
}

TEST_F(CliThermalTest, AWrongPolicyIsWarnedOfInALineAndTheDefaultHolds) {
  store_winners();
  const ProgramResult result =
      with_database("generate", {"--prompt", "x", "--json", "--thermal", policy(R"({"states": {"hot": "enrgy"}})")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find("policy.json:/states/hot: there is no objective 'enrgy' (did you mean 'energy'?)"),
            std::string::npos)
      << result.error;
  EXPECT_NE(result.error.find("; the default policy is used\n"), std::string::npos) << result.error;
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_EQ(nlohmann::json::parse(result.out)["thermal"]["winners_by"]["hot"], (nlohmann::json{"sustained", "energy"}));
}

TEST_F(CliThermalTest, WhatIsNeitherAWordNorAFileIsRefused) {
  expect_fault(on_cpu("generate", {"--prompt", "x", "--thermal", "hot"}), 2, {"--thermal", "'hot' is neither auto"});
  expect_fault(on_cpu("generate", {"--prompt", "x", "--sensors", "none.json"}), 2, {"--sensors", "none.json"});
  const ProgramResult cpu = on_cpu("generate", {"--prompt", "x", "-n", "1", "--greedy", "--thermal", "off"});
  EXPECT_EQ(cpu.exit_code, 0) << cpu.error;
  EXPECT_NE(cpu.error.find("without kernels: --thermal is ignored"), std::string::npos) << cpu.error;
}

}  // namespace
}  // namespace pascaline::testing
