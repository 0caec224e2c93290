#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/util/process.hpp"
#include "runtime/device/device.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

const std::vector<std::string> kCommands{"devices", "compile", "sweep", "show",     "status",
                                         "explain", "report",  "check", "tokenize", "completion"};

TEST_F(CliTest, HelpOfEveryCommandHasAnExample) {
  const ProgramResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.error, "");
  EXPECT_EQ(help.out.find("worker"), std::string::npos) << "workers are no commands for people";
  for (const std::string& command : kCommands) {
    EXPECT_NE(help.out.find("\n  " + command + " "), std::string::npos) << command << " in\n" << help.out;
    const ProgramResult own = run({command, "--help"});
    EXPECT_EQ(own.exit_code, 0) << command;
    EXPECT_EQ(own.error, "") << command;
    EXPECT_NE(own.out.find("Example"), std::string::npos) << own.out;
    EXPECT_NE(own.out.find("pascaline " + command), std::string::npos) << own.out;
  }
  const ProgramResult version = run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.rfind("pascaline ", 0), 0U) << version.out;
}

TEST_F(CliTest, WrongCommandLinesAreOneLineThatNamesTheWord) {
  expect_fault(run({}), 2, {"subcommand"});
  expect_fault(run({"frobnicate"}), 2, {"'frobnicate'"});
  expect_fault(run({"--frobnicate"}), 2, {"--help"});
  expect_fault(run({"sweep", "--frobnicate"}), 2, {"--frobnicate"});
  expect_fault(run({"sweep", "--trials", "many"}), 2, {"--trials", "many"});
  expect_fault(run({"sweep", "--trials", "0"}), 2, {"--trials", "0"});
  expect_fault(run({"sweep", "--trials"}), 2, {"--trials"});
  expect_fault(run({"sweep", "--searcher", "tabu"}), 2, {"--searcher", "tabu"});
  expect_fault(run({"sweep", "--workload", "/nonexistent.json"}), 2, {"--workload", "/nonexistent.json"});
  expect_fault(run({"report", "--format", "pdf"}), 2, {"--format", "pdf"});
  expect_fault(run({"show", "everything"}), 2, {"everything"});
  expect_fault(run({"completion", "fish"}), 2, {"fish"});
}

TEST_F(CliTest, NumbersAreFiniteAndWithinBounds) {
  for (const char* option : {"--sample-budget-ms", "--compile-timeout", "--precision", "--preheat", "--pause-limit",
                             "--drift", "--race-error", "--kernel-timeout", "--max-temperature"}) {
    for (const char* value : {"nan", "-nan", "inf", "1e400", "1e10", "-1", "3s", ""}) {
      expect_fault(run({"sweep", fmt::format("{}={}", option, value)}), 2, {option});
    }
  }
  expect_fault(run(sweep({"--max-temperature", "85.5", "--budget", "90"})), 2, {"'90'"});
}

TEST_F(CliTest, OptionsThatContradictEachOtherAreFaults) {
  write_bytes(folder_ / "work.json", R"({"schema": 1, "name": "work", "description": "-", "source": "-",
    "types": {"STORAGE": ["float32"]}, "phases": [{"name": "prefill", "per": "prompt", "symbols": {"S": [512]}}],
    "entries": [{"kernel": "toy", "name": "a", "phase": "prefill", "dimensions": {"N": "S"}, "count": 1}]})");
  const std::string workload = (folder_ / "work.json").string();
  expect_fault(run(sweep({"--min-samples", "9", "--max-samples", "8"})), 2, {"--min-samples 9", "--max-samples 8"});
  expect_fault(run(sweep({"--devices", "emulator"})), 2, {"--device or --devices"});
  expect_fault(run(sweep({"--workload", workload, "--problem", "N=1"})), 2, {"--workload or --problem"});
  expect_fault(run(sweep({"--phase", "prefill"})), 2, {"--phase", "--workload"});
  expect_fault(run(sweep({"--type", "STORAGE=float32"})), 2, {"--type", "--workload"});
  expect_fault(run(sweep({"--symbol", "S=512"})), 2, {"--symbol", "--workload"});
  expect_fault(run(sweep({"--workload", workload, "--symbol", "T=512"})), 1,
               {"--symbol T=512", workload, "(it has: S)"});
  expect_fault(run(sweep({"--seed", "-1"})), 2, {"--seed: must be a whole number", "'-1'"});
  EXPECT_FALSE(std::filesystem::exists(database_));
}

TEST_F(CliTest, SensorTraceIsReadBeforeAnythingElse) {
  write_bytes(folder_ / "trace.json", R"([{"at_s": 0, "temperature_f": 100}])");
  const std::string trace = (folder_ / "trace.json").string();
  expect_fault(run(sweep({"--sensors", trace})), 1, {trace, "temperature_f"});
  EXPECT_FALSE(std::filesystem::exists(database_));
}

TEST_F(CliTest, ObjectiveThatTheDeviceCannotTellIsRefusedBeforeAnythingElse) {
  expect_fault(run(sweep({"--objective", "beauty"})), 2, {"--objective", "beauty"});
  expect_fault(run({"show", "--objective", "beauty"}), 2, {"--objective", "beauty"});
  for (const char* objective : {"energy", "edp"}) {
    const ProgramResult result = run(sweep({"--objective", objective}));
    expect_fault(
        result, 1,
        {std::string("--objective ") + objective, "emulator", "does not report its power", "leave --objective out"});
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  }
  EXPECT_FALSE(std::filesystem::exists(database_));
}

TEST_F(CliTest, ObjectiveThatCannotBeDecidedIsToldAndTheSweepEndsWell) {
  write_bytes(folder_ / "trace.json", R"([{"at_s": 0, "power_w": 50}])");
  const ProgramResult result = simulate(
      sweep({"--trials", "1", "--objective", "edp", "--preheat", "0", "--sensors", (folder_ / "trace.json").string()}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("no winner by energy-delay product: the card's power reading is stuck at 50 W"),
            std::string::npos)
      << result.out;
  const Store store(database_, OpenMode::read_only);
  EXPECT_EQ(store.winners("", nullptr, std::nullopt).size(), 1U) << "that by time";
  const SweepPlan plan = store.plan(store.sessions().at(0).run_uuid).value();
  EXPECT_EQ(plan.objective, Objective::edp);
  EXPECT_EQ(plan.finalists, 12);
  const ProgramResult pareto = run({"show", "--pareto", "--db", database_});
  EXPECT_EQ(pareto.exit_code, 0);
  EXPECT_NE(pareto.out.find("no problem has two configurations"), std::string::npos) << pareto.out;
  expect_fault(run({"show", "trials", "--objective", "energy", "--db", database_}), 2, {"--objective", "show trials"});
  expect_fault(run({"show", "--pareto", "--objective", "time", "--db", database_}), 2, {"--objective", "--pareto"});
  expect_fault(run({"show", "--pareto", "--status", "ok", "--db", database_}), 2, {"--pareto", "--status"});
  expect_fault(run({"show", "sessions", "--pareto", "--db", database_}), 2, {"--pareto", "show sessions"});
}

TEST_F(CliTest, OneTrialIsOneTrialAndLinesEndWithoutBlanks) {
  const ProgramResult result = simulate(sweep({"--trials", "1"}));
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find(": 1 trial, 1 usable, "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" (default)\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find(" \n"), std::string::npos) << result.out;
}

TEST_F(CliTest, WrongNamesAreFaults) {
  expect_fault(run({"compile", "--arch", "sm_7"}), 2, {"'sm_7'", "sm_50, sm_52, sm_60, sm_61", "sm_90, or emulator"});
  expect_fault(run({"rank", "--arch", "emulator"}), 2, {"'emulator'", "sm_61"});
  expect_fault(run({"bundle", "--untuned", "--arch", "sm_611", "-o", "x"}), 2, {"'sm_611'", "sm_61"});
  expect_fault(run(sweep({"--target", "sm_7"})), 2, {"'sm_7'", "sm_61"});
  expect_fault(run(sweep({"--devices", "emulator,"})), 2, {"--devices", "''"});
  expect_fault(run({"compile", "--kernel", "../matmul"}), 2, {"'../matmul'"});
  expect_fault(run({"compile", "--kernels", "/nonexistent", "--arch", "emulator"}), 1, {"/nonexistent/matmul.cu"});
  expect_fault(run(sweep({"--device", "cuda:x"})), 2, {"cuda:x"});
  expect_fault(run(sweep({"--budget", "90"})), 2, {"'90'"});
  for (const char* budget : {"0s", "0h0m", "0.0004s"}) {
    expect_fault(run(sweep({"--budget", budget})), 2, {"--budget", "'" + std::string(budget) + "'", "0.001s or more"});
  }
  expect_fault(run(sweep({"--until", "25:00"})), 2, {"25:00"});
  expect_fault(run(on_toy("sweep", {"--device", "tpu:0", "--db", database_})), 2, {"tpu:0"});
  expect_fault(run({"show", "--status", "sad", "--db", database_}), 2, {"'sad'"});
  expect_fault(run({"show", "--problem", "N=1", "--db", database_}), 2, {"--kernel"});
}

TEST_F(CliTest, NoGpuIsSaidInOneLine) {
  std::string note;
  if (list_devices(&note).front().kind == DeviceKind::cuda) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  for (const char* device : {"cuda:0", "cuda:7"}) {
    expect_fault(run(on_toy("sweep", {"--device", device, "--db", database_})), 1, {note});
  }
  const ProgramResult devices = run({"devices"});
  EXPECT_EQ(devices.exit_code, 0);
  EXPECT_NE(devices.out.find("no CUDA device: " + note), std::string::npos) << devices.out;
}

TEST_F(CliTest, DevicesAreListed) {
  const nlohmann::json json = json_of(run({"devices", "--json"}));
  ASSERT_FALSE(json["devices"].empty());
  EXPECT_EQ(json["devices"].back()["id"], "emulator");
  EXPECT_TRUE(json["compilers"].contains("sm_61"));
  EXPECT_NE(run({"devices"}).out.find("NVRTC found:"), std::string::npos);
}

TEST_F(CliTest, CompletionIsBash) {
  const ProgramResult script = run({"completion", "bash"});
  EXPECT_EQ(script.exit_code, 0);
  write_bytes(folder_ / "completion", script.out);
  const std::string file = (folder_ / "completion").string();
  const ProcessResult checked = run_process({"bash", "-n", file}, std::chrono::seconds(30));
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  const auto complete = [&](const std::string& words, int word) {
    const std::string text =
        fmt::format(". {}; COMP_WORDS=({}); COMP_CWORD={}; _pascaline; echo \"${{COMPREPLY[*]}}\"", file, words, word);
    return run_process({"bash", "-c", text}, std::chrono::seconds(30)).output;
  };
  EXPECT_EQ(complete("pascaline sw", 1), "sweep\n");
  EXPECT_EQ(complete("pascaline sweep --finali", 2), "--finalists\n");
  EXPECT_EQ(complete("pascaline show se", 2), "sessions\n");
  EXPECT_EQ(complete("pascaline sweep --searcher ex", 3), "exhaustive\n");
  EXPECT_EQ(complete("pascaline compile-w", 1), "\n");
  EXPECT_EQ(complete("pascaline fleet ga", 2), "gather\n");
  EXPECT_EQ(complete("pascaline fleet plan night --shar", 4), "--shards\n");
  EXPECT_EQ(complete("pascaline fleet gather night --acc", 4), "--accept\n");
}

TEST_F(CliTest, FullOutputIsAFault) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "there is no /dev/full";
  }
  const ProcessResult result =
      run_process({"sh", "-c", std::string(PASCALINE_TEST_PROGRAM) + " devices > /dev/full"}, std::chrono::seconds(60));
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part : {"cannot write to standard output (pascaline devices, process ", "No space left on device"}) {
    EXPECT_NE(result.output.find(part), std::string::npos) << "no '" << part << "' in: " << result.output;
  }
}

TEST_F(CliTest, SweepOfAFolderOfOnesOwnNeedsNoCpp) {
  const ProgramResult result = run(sweep());
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("toy N=1000"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("6 trials, 3 usable, "), std::string::npos) << result.out;
  const nlohmann::json summary = json_of(run(sweep({"--json"})));
  EXPECT_EQ(summary["trials"], 0);
  EXPECT_EQ(summary["reused"], 6);
  EXPECT_EQ(summary["reused_ok"], 3);
  EXPECT_EQ(summary["interrupted"], false);
  EXPECT_EQ(summary["database"], database_);
  const ProgramResult quiet = run(sweep({"--quiet"}));
  EXPECT_EQ(quiet.out + quiet.error, "");
}

TEST_F(CliTest, KernelThatNeverCompilesIsAnAnswerNotAFault) {
  tune();
  const std::size_t before = stored().size();
  write_toys(folder_.path(), {toy_json({kDoesNotCompile})});
  for (int night = 0; night < 2; ++night) {
    const ProgramResult result = simulate(sweep());
    EXPECT_EQ(result.exit_code, 3) << result.error << result.out;
    EXPECT_EQ(result.error, "");
  }
  const nlohmann::json failed =
      json_of(run({"show", "trials", "--status", "compile_failed", "--db", database_, "--json"}));
  EXPECT_EQ(failed.size(), 3U);
  EXPECT_EQ(stored().size(), before + 3);
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--set", "BLOCK=32"}}) {
    std::vector<std::string> words = on_toy("compile", {"--arch", "emulator"});
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult compiled = run(words);
    EXPECT_EQ(compiled.exit_code, 3) << compiled.out << compiled.error;
    EXPECT_NE(compiled.out.find("compile_failed"), std::string::npos);
    EXPECT_NE(compiled.out.find("wrong on purpose"), std::string::npos);
    EXPECT_NE(compiled.out.find(fmt::format("toy.cu:{}:", toy_line("static_assert"))), std::string::npos)
        << compiled.out;
  }
}

TEST_F(CliTest, SourceThatIsNotThereIsAFaultAndOneThatIncludesWhatIsNotThereDoesNotCompile) {
  tune();
  const auto before = stored();
  const std::string source = bytes_of(folder_ / "toy.cu");
  std::filesystem::remove(folder_ / "toy.cu");
  expect_fault(run(sweep({"--quiet"})), 1, {(folder_ / "toy.cu").string()});
  EXPECT_EQ(stored(), before);
  write_bytes(folder_ / "toy.cu", source + "#include \"missing.cuh\"\n");
  const ProgramResult compiled = run(on_toy("compile", {"--arch", "emulator"}));
  EXPECT_EQ(compiled.exit_code, 3) << compiled.error;
  EXPECT_NE(compiled.out.find("missing.cuh"), std::string::npos) << compiled.out;
}

TEST_F(CliTest, CheckNamesTheLineThatWritesOutOfBounds) {
  write_toys(folder_.path(), {toy_json({kRight, kWriteBehind, kNotANumber})});
  const ProgramResult right = run(on_toy("check", {"--problem", "N=100"}));
  EXPECT_EQ(right.exit_code, 0) << right.out << right.error;
  const ProgramResult behind = run(on_toy("check", {"--problem", "N=100", "--set", "FAULT=3"}));
  EXPECT_EQ(behind.exit_code, 3) << behind.error;
  EXPECT_NE(behind.out.find(fmt::format("toy.cu:{}", toy_line("out[n] = 1.0f"))), std::string::npos) << behind.out;
  EXPECT_NE(behind.out.find("WRITE of size 4"), std::string::npos) << behind.out;
  const ProgramResult wrong = run(on_toy("check", {"--problem", "N=100", "--set", "FAULT=1", "--json"}));
  EXPECT_EQ(wrong.exit_code, 3) << wrong.error;
  const nlohmann::json rows = json_of(wrong);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["ok"], false);
  EXPECT_NE(rows[0]["result"].get<std::string>().find("out[5]: nan"), std::string::npos) << rows;
}

TEST_F(CliTest, CheckOfAShapeThatTheMemoryIsTooSmallForIsRefusedInOneLine) {
  const ProgramResult result = run(on_toy("check", {"--problem", "N=100000000000"}));
  expect_fault(result, 1, {"this shape needs ", "buffers ", " are available; use a smaller shape"});
}

TEST_F(CliTest, CheckOfAnInvalidDefaultTakesTheClosestValidConfiguration) {
  nlohmann::json json = toy_json({kRight, kNotANumber});
  json["constraints"].push_back({{"require", "BLOCK != 64 || N > 100"}, {"because", "64 is for many"}});
  write_toys(folder_.path(), {json});
  const ProgramResult text = run(on_toy("check", {"--problem", "N=100"}));
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_NE(text.out.find("toy N=100: the default is invalid here: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("64 is for many"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("toy N=100  BLOCK=32 FAULT=0\n    ok\n"), std::string::npos) << text.out;
  const nlohmann::json rows = json_of(run(on_toy("check", {"--problem", "N=100", "--problem", "N=101", "--json"})));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["config"]["BLOCK"], 32);
  EXPECT_NE(rows[0]["reason"].get<std::string>().find("64 is for many"), std::string::npos) << rows;
  EXPECT_EQ(rows[1]["config"]["BLOCK"], 64);
  EXPECT_FALSE(rows[1].contains("reason"));
  expect_fault(run(on_toy("check", {"--problem", "N=100", "--set", "BLOCK=64"})), 1, {"BLOCK=64", "64 is for many"});
}

}  // namespace
}  // namespace pascaline::testing
