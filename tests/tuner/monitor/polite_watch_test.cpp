#include "tuner/monitor/polite_watch.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/db/fixtures.hpp"
#include "tests/runtime/machine/small_file.hpp"

namespace pascaline::testing {
namespace {

class PoliteWatchTest : public ::testing::Test {
 protected:
  TemporaryFolder root_;
  std::optional<std::vector<GpuProcess>> processes_ = std::vector<GpuProcess>();
  DeviceInfo device_;

  void SetUp() override {
    device_.id = "cuda:0";
    on_mains(true);
    lid("open");
  }
  [[nodiscard]] PoliteOptions options() {
    PoliteOptions options;
    options.enabled = true;
    options.root = root_.path();
    options.look_every_s = 2;
    options.calm_s = 10;
    options.processes = [this](const DeviceInfo&) { return [this] { return processes_; }; };
    return options;
  }
  void on_mains(bool is) const {
    put_file(root_ / "sys/class/power_supply/AC/type", "Mains");
    put_file(root_ / "sys/class/power_supply/AC/online", is ? "1" : "0");
  }
  void lid(const std::string& state) const {
    put_file(root_ / "proc/acpi/button/lid/LID0/state", "state:      " + state);
  }
  void process(std::int64_t id, const std::string& name, std::int64_t parent, const std::string& argument = "") const {
    const std::filesystem::path folder = root_ / ("proc/" + std::to_string(id));
    put_file(folder / "stat", fmt::format("{} ({}) S {} 1 1 0 -1", id, name, parent));
    std::string command = name;
    command += '\0';
    write_bytes(folder / "cmdline", command + argument + '\0');
  }
};

TEST_F(PoliteWatchTest, PausesOnBatteryAndResumesOnceItWasCalm) {
  PoliteWatch watch(options(), device_);
  EXPECT_TRUE(watch.not_told().empty());
  EXPECT_FALSE(watch.look(100));
  EXPECT_EQ(watch.reason(), "");
  on_mains(false);
  EXPECT_FALSE(watch.look(101)) << "it looks every two seconds";
  EXPECT_TRUE(watch.look(102));
  EXPECT_EQ(watch.reason(), "the machine is on battery");
  EXPECT_FALSE(watch.look(104));
  on_mains(true);
  EXPECT_FALSE(watch.look(106));
  EXPECT_FALSE(watch.look(113.9)) << "last in use at 104";
  EXPECT_EQ(watch.reason(), "the machine is on battery");
  EXPECT_TRUE(watch.look(116));
  EXPECT_EQ(watch.reason(), "");
  EXPECT_EQ(watch.paused_s(), 14);
}

TEST_F(PoliteWatchTest, BackAndForthIsOnePause) {
  PoliteWatch watch(options(), device_);
  lid("closed");
  EXPECT_TRUE(watch.look(0));
  EXPECT_EQ(watch.reason(), "the lid is closed");
  for (int i = 1; i < 20; ++i) {
    lid(i % 4 == 0 ? "closed" : "open");
    EXPECT_FALSE(watch.look(2.0 * i)) << i;
  }
}

TEST_F(PoliteWatchTest, OthersThatComputeArePausedForAndItsOwnAreNot) {
  PoliteWatch watch(options(), device_);
  const std::int64_t self = ::getpid();
  process(self, "pascaline", 1);
  process(70001, "pascaline", self, "measure-worker");
  process(70002, "sh", self);
  process(70003, "helper", 70002);
  processes_ = {{70001, true}, {70003, true}};
  EXPECT_FALSE(watch.look(0));
  process(80000, "pascaline", 1, "sweep");
  process(80001, "pascaline", 80000, "measure-worker");
  processes_->push_back({80001, true});
  EXPECT_FALSE(watch.look(10)) << "another sweep's, which may be as polite";
  processes_->push_back({99999, true});
  EXPECT_FALSE(watch.look(20)) << "not of what this process can see";
  process(4242, "python3 (main)", 1, "train.py");
  processes_->push_back({4242, true});
  EXPECT_TRUE(watch.look(30));
  EXPECT_EQ(watch.reason(), "python3 (main) (process 4242) computes on cuda:0");
  processes_->pop_back();
  EXPECT_TRUE(watch.look(50));
  process(5000, "pascaline", 1, "chat");
  processes_->push_back({5000, true});
  EXPECT_TRUE(watch.look(60)) << "whoever chats uses the card";
}

TEST_F(PoliteWatchTest, WhatDrawsCountsIfItCameLaterAndIsNotADisplayServer) {
  process(10, "Xorg", 1);
  process(11, "firefox", 1);
  process(12, "Xorg", 1);
  process(13, "game", 1);
  processes_ = {{10, false}, {11, false}};
  PoliteWatch watch(options(), device_);
  EXPECT_FALSE(watch.look(0));
  processes_ = {{12, false}, {11, false}};
  EXPECT_FALSE(watch.look(10));
  processes_->push_back({13, false});
  EXPECT_TRUE(watch.look(20));
  EXPECT_EQ(watch.reason(), "game (process 13) draws on cuda:0");
}

TEST_F(PoliteWatchTest, SaysWhatItIsNotToldAndUsesTheDevice) {
  std::filesystem::remove_all(root_ / "sys");
  std::filesystem::remove_all(root_ / "proc");
  processes_.reset();
  PoliteWatch watch(options(), device_);
  EXPECT_EQ(watch.not_told(), (std::vector<std::string>{"whether it is on battery", "whether its lid is closed",
                                                        "which processes use cuda:0"}));
  EXPECT_FALSE(watch.look(0));
  EXPECT_EQ(watch.reason(), "");
}

TEST_F(PoliteWatchTest, ASensorThatVanishesIsNotAReason) {
  PoliteWatch watch(options(), device_);
  on_mains(false);
  EXPECT_TRUE(watch.look(0));
  std::filesystem::remove_all(root_ / "sys");
  processes_.reset();
  EXPECT_FALSE(watch.look(5));
  EXPECT_TRUE(watch.look(15));
  EXPECT_EQ(watch.reason(), "");
}

}  // namespace
}  // namespace pascaline::testing
