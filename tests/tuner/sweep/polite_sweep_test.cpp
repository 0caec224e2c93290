#include <gtest/gtest.h>

#include <algorithm>

#include "tests/runtime/machine/small_file.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

// A simulated sweep that makes way for whoever uses the machine, by files that stand for the machine's.
namespace pascaline::testing {
namespace {

class PoliteSweepTest : public SimulatedSweepTest {
 protected:
  TemporaryFolder root_;

  void SetUp() override {
    SimulatedSweepTest::SetUp();
    options_.polite.enabled = true;
    options_.polite.root = root_.path();
    options_.polite.look_every_s = 0.02;
    options_.polite.calm_s = 0.1;
    put_file(root_ / "proc/acpi/button/lid/LID0/state", "state:      open");
  }
  void on_mains(bool is) const {
    put_file(root_ / "sys/class/power_supply/AC/type", "Mains");
    put_file(root_ / "sys/class/power_supply/AC/online", is ? "1" : "0");
  }
};

TEST_F(PoliteSweepTest, WaitsWhileOnBatteryAndThenDoesAll) {
  on_mains(false);
  int paused_views = 0;
  events_.view = [&](const SweepView& view) {
    if (view.devices[0].pause_reason.empty()) {
      return;
    }
    ++paused_views;
    EXPECT_EQ(view.devices[0].stage, "paused");
    EXPECT_EQ(view.devices[0].pause_reason, "the machine is on battery");
    EXPECT_EQ(view.trials, 0);
    const auto stored = read_session_progress(Store(database_, OpenMode::read_only).sessions().at(0).progress);
    if (stored && paused_views > 1) {
      EXPECT_EQ(stored->devices[0].pause_reason, "the machine is on battery") << "what `status` shows";
      on_mains(true);
    }
  };
  const SweepSummary summary = sweep();
  EXPECT_GT(paused_views, 1);
  EXPECT_TRUE(noted("emulator: paused: the machine is on battery"));
  EXPECT_TRUE(noted("emulator: resumed"));
  EXPECT_TRUE(
      noted("--polite: this machine does not report which processes use emulator; the sweep does not pause for that"));
  EXPECT_EQ(summary.trials, 9);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_GT(summary.times.paused_s, 0.1);
  EXPECT_EQ(tried().size(), 9U);
  EXPECT_TRUE(Store(database_, OpenMode::read_only).plan(summary.run).value().polite);
  expect_sound();
}

TEST_F(PoliteSweepTest, APauseInTheMiddleLosesNoTrial) {
  on_mains(true);
  int seen = 0;
  std::int64_t at_pause = -1;
  events_.trial = [&](const Trial& /*trial*/, int, int, double, double) {
    if (++seen == 2) {
      on_mains(false);
    }
  };
  events_.view = [&](const SweepView& view) {
    if (view.devices[0].stage != "paused") {
      return;
    }
    if (at_pause < 0) {
      at_pause = view.trials;
    } else {
      EXPECT_LE(view.trials, at_pause + 1) << "only the trial that ran when the pause began ends in it";
      on_mains(true);
    }
  };
  const SweepSummary summary = sweep({"1000", "2000"});
  EXPECT_GE(at_pause, 2);
  EXPECT_LT(at_pause, 18);
  EXPECT_EQ(summary.trials, 18);
  EXPECT_EQ(stored(TrialStage::search).size(), 18U);
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

TEST_F(PoliteSweepTest, ASweepThatIsPausedCanBeStoppedAndEndsWithItsTime) {
  on_mains(false);
  events_.view = [this](const SweepView& view) { stop_ = view.devices[0].stage == "paused"; };
  const SweepSummary stopped = sweep();
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.trials, 0);
  stop_ = false;
  events_.view = {};
  options_.record.resume_run = stopped.run;
  options_.budget_s = 2;
  const SweepSummary over = sweep();
  EXPECT_EQ(over.trials, 0);
  EXPECT_FALSE(over.interrupted) << "its time was up";
  EXPECT_NEAR(over.times.wall_s, 2, 0.2);
  expect_sound();
}

TEST_F(PoliteSweepTest, WithoutItNobodyLooks) {
  options_.polite.enabled = false;
  on_mains(false);
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 9);
  EXPECT_EQ(summary.times.paused_s, 0);
  EXPECT_FALSE(Store(database_, OpenMode::read_only).plan(summary.run).value().polite);
  EXPECT_FALSE(noted("polite"));
}

}  // namespace
}  // namespace pascaline::testing
