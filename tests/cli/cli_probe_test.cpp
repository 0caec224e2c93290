#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "db/stored_probe.hpp"
#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

class CliProbeTest : public CliTest {
 protected:
  [[nodiscard]] ProgramResult probe(std::vector<std::string> more, const ProgramSetting& setting = {}) const {
    std::vector<std::string> words{"probe", "--device", "emulator", "--db", database_, "--time", "5s"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, setting);
  }
  [[nodiscard]] std::vector<StoredProbe> probes() const {
    return Store(database_, OpenMode::read_only).probes(nullptr);
  }
};

TEST_F(CliProbeTest, StoresWhatItMeasuredAndShowsItAgain) {
  const std::string report = (folder_ / "probe.json").string();
  const ProgramResult measured = probe({"--only", "launch,clock", "--report", report});
  EXPECT_EQ(measured.exit_code, 0) << measured.error;
  for (const char* piece : {"empty kernel, back to back", "Left out: clock: ", "say nothing of a GPU"}) {
    EXPECT_NE(measured.out.find(piece), std::string::npos) << piece << "\n" << measured.out;
  }
  EXPECT_NE(measured.error.find("stored in " + database_), std::string::npos) << measured.error;
  const auto stored = probes();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].probe.values.size(), 3U);
  const auto written = nlohmann::json::parse(read_file(report));
  EXPECT_EQ(written["uuid"], stored[0].probe.uuid);
  EXPECT_EQ(written["values"]["launch_us"]["median"], stored[0].probe.values[0].median);
  const ProgramResult shown = run({"probe", "--show", "--db", database_});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_NE(shown.out.find(measured.out), std::string::npos) << shown.out;
  const nlohmann::json all = json_of(run({"probe", "--show", "--json", "--db", database_}));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0], written);
}

TEST_F(CliProbeTest, WhatCannotBeMeasuredIsAFaultAndLeavesNoDatabase) {
  expect_fault(probe({"--only", "conflicts"}), 1, {"conflicts", "processor", "register banks"});
  EXPECT_FALSE(fs::exists(database_));
}

TEST_F(CliProbeTest, TheReportNeverTakesTheDatabasesPlace) {
  EXPECT_EQ(probe({"--only", "launch"}).exit_code, 0);
  expect_fault(probe({"--only", "launch", "--report", database_}), 1, {database_, "is the database in use"});
  EXPECT_EQ(probes().size(), 1U);
}

TEST_F(CliProbeTest, AReportThatCannotBeWrittenLosesNothing) {
  const ProgramResult full = probe({"--only", "launch", "--report", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.out.find("empty kernel"), std::string::npos) << full.out;
  EXPECT_NE(full.error.find("/dev/full"), std::string::npos) << full.error;
  EXPECT_EQ(probes().size(), 1U);
}

TEST_F(CliProbeTest, WithoutAGpuTheEmulatorMustBeAskedFor) {
  const nlohmann::json devices = json_of(run({"devices", "--json"}));
  if (devices["devices"].size() > 1) {
    GTEST_SKIP() << "there is a GPU";
  }
  expect_fault(run({"probe", "--db", database_}), 1, {"no CUDA device", "--device emulator"});
  EXPECT_FALSE(fs::exists(database_));
}

TEST_F(CliProbeTest, WrongWordsAreToldAtOnce) {
  expect_fault(probe({"--only", "conflict"}), 2, {"did you mean 'conflicts'?"});
  expect_fault(run({"probe", "--device", "emulator", "--db", database_, "--time", "2s"}), 2,
               {"--time", "'2s' is too short", "5s or more"});
  expect_fault(probe({"--target", "sm_7"}), 2, {"sm_7"});
  expect_fault(probe({"--report", "-"}), 2, {"'-' is no file", "--json"});
  for (const std::string option : {"--only=launch", "--time=9s", "--report=x", "--target=sm_61", "--cache=x"}) {
    expect_fault(run({"probe", "--show", "--db", database_, option}), 2,
                 {"--show", option.substr(0, option.find('='))});
  }
  expect_fault(probe({"--report", folder_.path().string()}), 1, {"it is a folder"});
  expect_fault(run({"probe", "--show", "--db", database_}), 1, {"no such file"});
}

TEST_F(CliProbeTest, ADatabaseThatCannotBeWrittenIsToldBeforeMeasuring) {
  Store(database_, OpenMode::create);
  const fs::path file = database_;
  fs::permissions(folder_.path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(file, fs::perms::owner_read | fs::perms::others_read);
  const ProgramResult result = probe({"--only", "launch", "--cache", test_cache().string()}, {.unprivileged = true});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.error.find("cannot be written"), std::string::npos) << result.error;
  EXPECT_EQ(result.error.find("measuring"), std::string::npos) << result.error;
}

// Whatever part it is in, half a probe is not stored.
TEST_F(CliProbeTest, AnInterruptedProbeStoresNothing) {
  const int program =
      start_program(folder_.path(), {"probe", "--device", "emulator", "--db", database_, "--time", "1h"});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(database_) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ::kill(program, SIGINT);
  EXPECT_EQ(wait_child(program), 130);
  EXPECT_FALSE(fs::exists(database_)) << "made for nothing";
}

// As a terminal and a parent may do for one Ctrl-C: it still puts things in order.
TEST_F(CliProbeTest, AnInterruptSentTwiceAtOnceIsOne) {
  const int program =
      start_program(folder_.path(), {"probe", "--device", "emulator", "--db", database_, "--time", "1h"});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(database_) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ::kill(program, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(program, SIGINT);
  EXPECT_EQ(wait_child(program), 130);
  EXPECT_FALSE(fs::exists(database_)) << "the first one's order is kept";
}

}  // namespace
}  // namespace pascaline::testing
