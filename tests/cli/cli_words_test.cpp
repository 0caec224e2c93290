#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <regex>
#include <set>

#include "core/util/process.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

using CliWordsTest = CliTest;

TEST_F(CliWordsTest, AnOptionWithoutAValueTakesNoOtherOptionForIt) {
  const ProgramSetting here{.working_folder = folder_.path()};
  expect_fault(run({"status", "--db=", "--json"}, here), 2, {"--db: its value is empty"});
  expect_fault(run({"status", "--db", "--json"}, here), 2, {"--db has no value", "--json", "write --db=--json"});
  expect_fault(run({"sweep", "--log=", "--json"}, here), 2, {"--log: its value is empty"});
  expect_fault(run({"sweep", "-k", "-q"}, here), 2, {"-k has no value", "-q"});
  expect_fault(run({"sweep", "-k="}, here), 2, {"-k: its value is empty"});
  expect_fault(run({"status", "--json="}, here), 2, {"--json: its value is empty"});
  EXPECT_FALSE(fs::exists(folder_ / "--json"));
  // What is meant can be said.
  expect_fault(run({"status", "--db=--json"}, here), 1, {"--json"});
}

TEST_F(CliWordsTest, EmptyValuesAreWrongForEveryOption) {
  std::size_t options = 0;
  for (const std::string& command : commands()) {
    const std::string help = run({command, "--help"}).out;
    static const std::regex pattern("\n  (?:-[a-zA-Z],)?(--[a-z-]+) (?!EXCLUDES|NEEDS)[A-Z]{2}");
    for (std::sregex_iterator match(help.begin(), help.end(), pattern), end; match != end; ++match) {
      const std::string option = (*match)[1];
      const std::vector<std::string> words = options % 2 == 0 ? std::vector<std::string>{command, option, ""}
                                                              : std::vector<std::string>{command, option + "=", "-h"};
      expect_fault(run(words), 2, {option + ": its value is empty"});
      ++options;
    }
  }
  EXPECT_GT(options, 100U);
  expect_fault(run({"merge", ""}), 2, {"an argument is empty"});
  expect_fault(run({""}), 2, {"an argument is empty"});
}

TEST_F(CliWordsTest, WholeNumbersAreDigitsWithinTheirRange) {
  std::set<std::string> seen;
  for (const std::string& command : commands()) {
    const std::string help = run({command, "--help"}).out;
    static const std::regex pattern("\n  (?:-[a-zA-Z],)?(--[a-z-]+) U?INT([^ \n]*)( x 2)?");
    for (std::sregex_iterator match(help.begin(), help.end(), pattern), end; match != end; ++match) {
      const std::string option = (*match)[1];
      if ((*match)[3].matched) {
        continue;  // of two numbers
      }
      seen.insert(option);
      for (const char* value : {"18446744073709551616", "-1", seen.size() % 2 == 0 ? "1e3" : " 5"}) {
        expect_fault(run({command, fmt::format("{}={}", option, value)}), 2,
                     {fmt::format("{}: must be a whole number ", option), fmt::format("not '{}'", value)});
      }
    }
  }
  for (const char* option :
       {"--seed", "--trials", "--jobs", "--limit", "--sm-count", "--port", "--batch", "--rounds"}) {
    EXPECT_TRUE(seen.contains(option)) << option;
  }
  expect_fault(run(sweep({"--compile-memory", "0x10"})), 2, {"--compile-memory: must be a whole number"});
}

TEST_F(CliWordsTest, UnknownCommandsAndOptionsAreToldWithWhatWasMeant) {
  expect_fault(run({"swep"}), 2, {"there is no command 'swep' (did you mean 'sweep'?); see pascaline --help"});
  expect_fault(run({"swep", "--trials", "5"}), 2, {"'swep'", "'sweep'"});
  expect_fault(run({"bench"}), 2, {"(did you mean 'bench-model'?)"});
  expect_fault(run({"sweep", "--trails", "5"}), 2,
               {"sweep has no option --trails (did you mean '--trials'?); see pascaline sweep --help"});
  expect_fault(run({"sweep", "--trails=5"}), 2, {"no option --trails (did you mean '--trials'?)"});
  expect_fault(run({"fleet", "paln"}), 2,
               {"there is no command 'fleet paln' (did you mean 'plan'?); see pascaline fleet --help"});
  expect_fault(run({"fleet", "plan", "night", "--shard", "4"}), 2,
               {"fleet plan has no option --shard (did you mean '--shards'?); see pascaline fleet plan --help"});
  expect_fault(run({"fleet", "status"}), 2, {"folder", "see pascaline fleet status --help"});
  expect_fault(run({"sweep", "-x"}), 2, {"sweep has no option -x; see pascaline sweep --help"});
  expect_fault(run({"--verison"}), 2, {"(did you mean '--version'?); see pascaline --help"});
  // Workers are for no one to start.
  expect_fault(run({"check-worke"}), 2, {"there is no command 'check-worke'; see"});
  // What is a value is none of the command's options.
  expect_fault(run(on_toy("check", {"--set", "--trails"})), 2, {"'--trails' is not NAME=value"});
}

TEST_F(CliWordsTest, WrongValuesSayWhichThereAreAndWhereToReadOn) {
  expect_fault(run({"sweep", "--searcher", "genetik"}), 2,
               {"--searcher", "there is no 'genetik' (did you mean 'genetic'?); it is one of auto, ",
                "see pascaline sweep --help"});
  expect_fault(run({"report", "--format", "htlm"}), 2, {"(did you mean 'html'?)", "see pascaline report --help"});
  expect_fault(run({"show", "winers"}), 2, {"(did you mean 'winners'?)"});
  expect_fault(run({"show", "--status", "wrong_results", "--db", database_}), 2, {"(did you mean 'wrong_result'?)"});
  expect_fault(run({"generate", "--model", "x", "--prompt", "x", "--weights", "flaot16"}), 2,
               {"(did you mean 'float16'?)", "see pascaline generate --help"});
  expect_fault(run({"sweep", "--trials", "many"}), 2, {"see pascaline sweep --help"});
  expect_fault(run({"tokenize"}), 2, {"--model", "see pascaline tokenize --help"});
}

TEST_F(CliWordsTest, WrongNamesOfKernelsDimensionsAndParametersAreToldWithWhatWasMeant) {
  std::vector<std::string> words{"check", "--kernels", kernels_, "--spaces", kernels_, "--kernel", "toyy"};
  expect_fault(run(words), 1, {(folder_ / "toyy.json").string(), "(did you mean 'toy'?)", "`pascaline kernels`"});
  expect_fault(run({"compile", "--kernel", "matmull", "--arch", "host"}), 1, {"(did you mean 'matmul'?)"});
  expect_fault(run(on_toy("check", {"--set", "BLOK=64"})), 1,
               {"kernel 'toy' has no parameter 'BLOK' (did you mean 'BLOCK'?); `pascaline kernels toy`"});
  expect_fault(run(on_toy("check", {"--problem", "n=64"})), 1, {"no dimension or type 'n' (did you mean 'N'?)"});
}

TEST_F(CliWordsTest, HelpOfASweepBeginsWithWhatMostNeed) {
  const std::string help = run({"sweep", "--help"}).out;
  std::vector<std::string> headings;
  static const std::regex pattern("\n([A-Z][A-Za-z ]+):\n");
  for (std::sregex_iterator match(help.begin(), help.end(), pattern), end; match != end; ++match) {
    headings.push_back((*match)[1]);
  }
  ASSERT_GE(headings.size(), 8U) << help;
  EXPECT_EQ(headings.front(), "Most used");
  const std::string first = help.substr(help.find("\nMost used:\n"), help.find("\nWhat to tune:\n"));
  for (const char* option : {"--until", "--budget", "--db", "--resume"}) {
    EXPECT_NE(first.find(option), std::string::npos) << option;
  }
  EXPECT_GT(help.find("--help"), help.find("--json")) << "help comes last";
  std::set<std::string> listed;
  static const std::regex option("\n  (?:-[a-zA-Z],)?(--[a-z-]+)");
  for (std::sregex_iterator match(help.begin(), help.end(), option), end; match != end; ++match) {
    EXPECT_TRUE(listed.insert((*match)[1]).second) << (*match)[1] << " is listed twice";
  }
  EXPECT_GT(listed.size(), 30U);
}

TEST_F(CliWordsTest, EveryOptionIsInTheHelpAndTheCompletion) {
  const std::string completion = run({"completion", "bash"}).out;
  for (const std::string& command : commands()) {
    const std::size_t start = completion.find("\n    " + command + ") words=");
    ASSERT_NE(start, std::string::npos) << command;
    std::set<std::string> completed;
    static const std::regex pattern("--[a-z-]+");
    const std::string line = completion.substr(start + 1, completion.find('\n', start + 1) - start);
    for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end; ++match) {
      completed.insert((*match)[0]);
    }
    std::set<std::string> shown = option_names({command});
    std::erase_if(shown, [](const std::string& name) { return !name.starts_with("--"); });
    EXPECT_EQ(shown, completed) << command;
  }
}

TEST_F(CliWordsTest, AReaderThatGoesAwayEndsAReportWithoutAWord) {
  tune();
  const auto cut = [&](const std::string& words) {
    const std::string text = fmt::format("trap - PIPE; {} {} --db '{}' | head -c 9; echo \" ${{PIPESTATUS[0]}}\"",
                                         PASCALINE_TEST_PROGRAM, words, database_);
    return run_process({"bash", "-c", text}, std::chrono::seconds(60)).output;
  };
  EXPECT_EQ(cut("report --format html"), fmt::format("<!doctype {}\n", 128 + SIGPIPE));
}

/// A folder such as someone could offer for download: files that the program would look for, each of which says so
/// when it runs.
class CliForeignFolderTest : public CliTest {
 protected:
  fs::path foreign_ = folder_ / "foreign";
  fs::path mark_ = folder_ / "mark";

  void SetUp() override {
    CliTest::SetUp();
    const fs::path source = folder_ / "planted.cpp";
    write_bytes(source, fmt::format("#include <cstdio>\n__attribute__((constructor)) static void planted() {{ "
                                    "std::fclose(std::fopen(\"{}\", \"w\")); }}\n",
                                    mark_.string()));
    const std::string library = (folder_ / "planted.so").string();
    const ProcessResult built =
        run_process({"c++", "-shared", "-fPIC", "-o", library, source.string()}, std::chrono::seconds(120));
    ASSERT_EQ(built.exit_code, 0) << built.output;
    for (const char* name :
         {".toolkit/12.9/libnvrtc.so.12", "lib64/libnvrtc.so", "12.9/libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.12",
          "libcuda.so.1", "libnvidia-ml.so.1", "libopenblas.so.0", "share/pascaline/toolkit/libnvrtc.so.12"}) {
      fs::create_directories((foreign_ / name).parent_path());
      fs::copy_file(library, foreign_ / name);
    }
    for (const char* name : {"c++", "g++", "clang++"}) {
      write_bytes(foreign_ / name, fmt::format("#!/bin/sh\ntouch '{}'\necho 'c++ 99.0'\n", mark_.string()));
      fs::permissions(foreign_ / name, fs::perms::owner_all);
    }
    for (const char* name : {"search_spaces/matmul.json", "kernel_templates/matmul.cu"}) {
      fs::create_directories((foreign_ / name).parent_path());
      write_bytes(foreign_ / name, "foreign");
    }
  }
  [[nodiscard]] ProgramResult run_there(const std::vector<std::string>& words,
                                        std::vector<std::pair<std::string, std::string>> environment = {}) const {
    return run(words, {.environment = std::move(environment), .working_folder = foreign_});
  }
};

TEST_F(CliForeignFolderTest, NothingOfTheWorkingDirectoryIsLoaded) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"devices"},
                                                {"devices", "--json"},
                                                {"compile", "--nvrtc", "12.9", "--arch", "sm_61x"}}) {
    (void)run_there(words);
    EXPECT_FALSE(fs::exists(mark_)) << words.front();
  }
  (void)run_there({"devices"}, {{"CUDA_HOME", "."}, {"CUDA_PATH", "../foreign"}});
  EXPECT_FALSE(fs::exists(mark_)) << "through a relative CUDA_HOME";
  (void)run_there({"devices"}, {{"PASCALINE_NVRTC", "12.9"}});
  EXPECT_FALSE(fs::exists(mark_)) << "a folder named as the version is";
  const ProgramResult devices = run_there({"devices"}, {{"PATH", ":.::/usr/bin:/bin"}});
  EXPECT_FALSE(fs::exists(mark_)) << "through an empty entry of PATH";
  EXPECT_EQ(devices.exit_code, 0) << devices.error;
  const ProgramResult ranked = run_there({"rank", "--top", "1", "--sample", "10"});
  EXPECT_EQ(ranked.exit_code, 0) << "its own search space, not the folder's: " << ranked.error;
}

// The compiler looks for its assembler and linker itself.
TEST_F(CliForeignFolderTest, CompilerFindsNoProgramInTheWorkingDirectory) {
  for (const char* name : {"as", "ld", "ld.lld"}) {
    write_bytes(foreign_ / name, fmt::format("#!/bin/sh\ntouch '{}'\nexit 1\n", mark_.string()));
    fs::permissions(foreign_ / name, fs::perms::owner_all);
  }
  const char* inherited = std::getenv("PATH");
  ASSERT_NE(inherited, nullptr);
  for (const char* first : {"", ".", "../foreign"}) {
    const fs::path cache = folder_ / "cache";
    fs::remove_all(cache);  // to compile each time
    const ProgramResult compiled =
        run_there(on_toy("compile", {"--arch", "emulator", "--set", "BLOCK=32", "--cache", cache}),
                  {{"PATH", fmt::format("{}:{}", first, inherited)}});
    EXPECT_EQ(compiled.exit_code, 0) << compiled.error;
    EXPECT_FALSE(fs::exists(mark_)) << "through the entry '" << first << "' of PATH";
  }
}

// So that the cases above can fail.
TEST_F(CliForeignFolderTest, WhatTheUserNamesIsLoaded) {
  (void)run_there({"devices"}, {{"PASCALINE_NVRTC", "./12.9"}});
  EXPECT_TRUE(fs::exists(mark_));
}

}  // namespace
}  // namespace pascaline::testing
