#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "tests/cli/cli_fixture.hpp"
#include "tests/cli/endless_compiler.hpp"

namespace pascaline::testing {
namespace {

// What users are told while something takes long, and how soon they are listened to.
class CliListeningTest : public CliTest {
 protected:
  void interrupt_compiling(const std::vector<std::string>& words, int signal, int exit_code) const {
    EndlessCompiler(folder_).interrupt(words, signal, exit_code);
  }
};

TEST_F(CliListeningTest, CheckIsInterruptedWhileItCompiles) { interrupt_compiling(on_toy("check"), SIGINT, 130); }

TEST_F(CliListeningTest, CheckIsTerminatedWhileItCompiles) { interrupt_compiling(on_toy("check"), SIGTERM, 130); }

TEST_F(CliListeningTest, KilledCheckLeavesNobody) { interrupt_compiling(on_toy("check"), SIGKILL, 128 + SIGKILL); }

TEST_F(CliListeningTest, CompileOfOneConfigurationIsInterrupted) {
  interrupt_compiling(on_toy("compile", {"--arch", "emulator", "--set", "BLOCK=32"}), SIGINT, 130);
}

TEST_F(CliListeningTest, CompileOfAllConfigurationsIsInterrupted) {
  interrupt_compiling(on_toy("compile", {"--arch", "emulator"}), SIGTERM, 130);
}

TEST_F(CliListeningTest, SweepIsInterruptedWhileItCompiles) { interrupt_compiling(sweep(), SIGINT, 130); }

TEST_F(CliListeningTest, ProbeOfADeviceIsInterruptedWhileItCompiles) {
  interrupt_compiling({"probe", "--device", "emulator", "--db", database_}, SIGINT, 130);
}

// One of 3 x 10^7 configurations is valid, which only a walk of many seconds finds.
TEST_F(CliListeningTest, CheckOfASparseSpaceIsInterruptedWhileItLooksForAConfiguration) {
  nlohmann::json json = toy_json({kRight});
  std::string sum;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "Q" + std::to_string(i);
    json["parameters"].push_back({{"name", name}, {"values", {0, 1, 2, 3, 4}}, {"default", 0}});
    sum += (i == 0 ? "" : " + ") + name;
  }
  json["constraints"].push_back({{"require", sum + " == (N > 7 ? 40 : 0)"}, {"because", "the space is sparse"}});
  write_toys(folder_.path(), {json});
  for (const int signal : {SIGINT, SIGTERM}) {
    const int program = start_program(folder_.path(), on_toy("check", {"--problem", "N=8"}));
    // After a second of processor time it looks for a configuration: the rest takes a tenth of that.
    const auto begins = [program] {
      const std::string stat = bytes_of("/proc/" + std::to_string(program) + "/stat");
      std::istringstream fields(stat.substr(stat.rfind(')') + 2));
      std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
      return words[0] != "Z" && std::stol(words[11]) < 100;
    };
    while (begins()) {
      std::this_thread::yield();
    }
    ::kill(program, signal);
    EXPECT_EQ(wait_child(program), 130) << bytes_of(folder_ / "stderr");
  }
}

TEST_F(CliListeningTest, ASecondSweepOnTheDeviceIsTold) {
  tune();
  {
    Store store(database_, OpenMode::read_write);
    const SessionRow first = store.sessions().at(0);
    SessionRow row;
    row.command_line = "pascaline sweep";
    row.device_uuid = first.device_uuid;
    store.begin_session(row, store.device_id(first.device), store.toolkit_id(first.toolkit));
  }
  const std::string warning =
      "warning: another sweep measures on emulator, too: process " + std::to_string(::getpid()) + ", for ";
  const ProgramResult second = simulate(sweep());
  EXPECT_EQ(second.exit_code, 0) << second.error;
  EXPECT_NE(second.out.find(warning), std::string::npos) << second.out;
  EXPECT_NE(second.out.find("pascaline status --db " + database_), std::string::npos) << second.out;
}

TEST_F(CliListeningTest, AnExampleShapeTooLargeToEmulateIsWarnedOf) {
  nlohmann::json json = toy_json({kRight});
  json["dimensions"][0]["example"] = 1000;
  json["work"]["flops"] = "N * 1000000000";
  write_toys(folder_.path(), {json});
  std::vector<std::string> words =
      on_toy("sweep", {"--device", "emulator", "--db", database_, "--trials", "1", "--warm-cache"});
  const ProgramResult plain = simulate(words);
  EXPECT_EQ(plain.exit_code, 0) << plain.error;
  EXPECT_NE(plain.out.find("warning: no size was given, so toy N=1000 is tuned on the emulated device"),
            std::string::npos)
      << plain.out;
  EXPECT_NE(plain.out.find("--problem N=64"), std::string::npos) << plain.out;
  words.insert(words.end(), {"--problem", "N=1000"});
  EXPECT_EQ(simulate(words).out.find("no size was given"), std::string::npos) << "it was chosen";
}

// With time left a device turns to the only problem again and again: to repeat finals, and for neighbours.
TEST_F(CliListeningTest, WhatIsKnownOfAProblemIsSaidOnce) {
  write_toys(folder_.path(), {toy_json({kAlike, Fault(kAlike + 1), Fault(kAlike + 2), Fault(kAlike + 3)})});
  tune({"--searcher", "exhaustive", "--min-gain", "0"});
  const ProgramResult again = simulate(sweep({"--budget", "20s", "--min-gain", "0"}));
  ASSERT_EQ(again.exit_code, 0) << again.error;
  std::multiset<std::string> headings;
  std::istringstream lines(again.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("already known") != std::string::npos) {
      headings.insert(line);
    }
  }
  EXPECT_FALSE(headings.empty()) << again.out;
  for (const std::string& heading : headings) {
    EXPECT_EQ(headings.count(heading), 1U) << again.out;
  }
}

// Decisions count, and a line says what is missing and what to do.
TEST_F(CliListeningTest, ATimeThatDoesNotSufficeIsSaidBeforeAndAfter) {
  std::vector<std::string> words = sweep({"--budget", "12s"});
  for (int n = 1; n <= 40; ++n) {
    words.insert(words.end(), {"--problem", "N=" + std::to_string(1000 * n)});
  }
  const ProgramResult result = simulate(words);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  for (const char* part :
       {" of 40 shapes here; about ",
        " of 40 shapes were left at their defaults; to reach more: pascaline sweep --resume --db "}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << result.out;
  }
  EXPECT_EQ(result.out.find("not reached"), std::string::npos) << "that is the same once more: " << result.out;
}

TEST_F(CliListeningTest, AShortListSaysThatItIsOne) {
  tune();
  const std::vector<std::string> words{"show", "trials", "--db", database_};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const std::size_t all = json_of(with({"--json", "--limit", "0"})).size();
  ASSERT_GT(all, 1U);
  const std::string note = "pascaline: note: 1 of " + std::to_string(all) + " trials; --limit 0 shows all\n";
  EXPECT_EQ(with({"--limit", "1"}).error, note);
  EXPECT_EQ(with({"--limit", "1", "--json"}).error, note);
  EXPECT_EQ(with({"--json"}).error, "");
}

TEST_F(CliListeningTest, JsonHasEveryTrialUnlessALimitIsGiven) {
  nlohmann::json json = toy_json({kRight});
  std::vector<int> blocks;
  for (int block = 32; block <= 32 * 24; block += 32) {
    blocks.push_back(block);
  }
  json["parameters"][0]["values"] = blocks;
  write_toys(folder_.path(), {json});
  tune({"--trials", "24", "--min-gain", "0"});
  const nlohmann::json trials = json_of(run({"show", "trials", "--db", database_, "--json"}));
  EXPECT_GT(trials.size(), 20U);
}

}  // namespace
}  // namespace pascaline::testing
