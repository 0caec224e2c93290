#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/tuner/simulation/simulated_fixture.hpp"

// Faults of kernels, compilers, workers and devices cost as little as they can, and the sweep continues.
namespace pascaline::testing {
namespace {

class SimulatedFaultsTest : public SimulatedSweepTest {
 protected:
  SimulatedFaultsTest() { options_.search.min_gain = 0; }  // all are tried

  void expect_all(Fault fault, int count, TrialStatus status, const std::string& reason) const {
    int found = 0;
    for (const StoredTrial& stored : stored(TrialStage::search)) {
      if (stored.trial.config.integer("FAULT") == fault) {
        ++found;
        EXPECT_EQ(name_of(stored.trial.status), name_of(status)) << stored.trial.reason;
        EXPECT_NE(stored.trial.reason.find(reason), std::string::npos) << stored.trial.reason;
      }
    }
    EXPECT_EQ(found, count) << fault;
  }
  void expect_cost(int most, TrialStatus status, int configurations) {
    expect_complete(static_cast<std::size_t>(configurations));
    EXPECT_LE(statuses()[status], most);
    EXPECT_EQ(statuses()[status] + usable(), configurations);
  }
};

TEST_F(SimulatedFaultsTest, HangsAndCrashesCostTheirOwnTrialOnce) {
  use_space({kRight, kEndless, kIllegalAddress, kNotANumber, kWriteBefore}, {64, 128});
  options_.waits.kernel_timeout_s = 2;
  const SweepSummary first = sweep();
  expect_complete(10);
  expect_all(kRight, 2, TrialStatus::ok, "");
  expect_all(kEndless, 2, TrialStatus::timed_out, "after 2 s in phase 'launch'");
  expect_all(kIllegalAddress, 2, TrialStatus::crashed, "signal 11");
  expect_all(kNotANumber, 2, TrialStatus::wrong_result, "error inf above the tolerance");
  expect_all(kWriteBefore, 2, TrialStatus::wrong_result, "wrote outside of buffer 'out'");
  EXPECT_EQ(first.restarts, 4);
  EXPECT_EQ(first.ok, 2);
  // Later sweeps leave alone what took the device once …
  EXPECT_EQ(sweep().trials, 0);
  expect_complete(10);
  // … unless asked for.
  options_.search.retry_failed = true;
  EXPECT_EQ(sweep().trials, 4);
  expect_all(kEndless, 4, TrialStatus::timed_out, "");
  expect_all(kIllegalAddress, 4, TrialStatus::crashed, "");
  expect_all(kRight, 2, TrialStatus::ok, "");
  expect_sound();
}

TEST_F(SimulatedFaultsTest, CompilersThatHangOrCrashCostTheirVariant) {
  use_space({kRight, kHangsCompiler, kCrashesCompiler, kDoesNotCompile}, {64, 128});
  options_.compile.timeout_s = 12;
  const SweepSummary summary = sweep();
  expect_complete(8);
  expect_all(kRight, 2, TrialStatus::ok, "");
  expect_all(kHangsCompiler, 2, TrialStatus::timed_out, "the compiler did not finish within 12 s");
  expect_all(kCrashesCompiler, 2, TrialStatus::crashed, "ended by signal 11");
  expect_all(kDoesNotCompile, 2, TrialStatus::compile_failed, "wrong on purpose");
  EXPECT_NEAR(summary.times.wall_s, 13, 2) << "two workers hang side by side";
}

TEST_F(SimulatedFaultsTest, ACompileWorkerThatIsLostCostsTheVariantInHand) {
  use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  for (const double at_s : {0.1, 0.7, 1.0}) {
    simulation_.clock().at(at_s, [this] { simulation_.builders().back()->lose_workers(); });
  }
  const SweepSummary summary = sweep();
  EXPECT_GE(statuses()[TrialStatus::crashed], 1);
  expect_cost(3 * 2, TrialStatus::crashed, 8);
  EXPECT_FALSE(summary.interrupted);
}

TEST_F(SimulatedFaultsTest, AMeasuringWorkerThatIsLostCostsTheTrialInFlight) {
  use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  int losses = 0;
  events_.trial = [&](const Trial& trial, int, int, double, double) {
    if (has_time(trial.status) && losses < 3) {
      ++losses;
      simulation_.clock().at(simulation_.clock().elapsed_s() + 0.3,
                             [this] { simulation_.labs().back()->lose_worker(); });
    }
  };
  const SweepSummary summary = sweep();
  EXPECT_EQ(losses, 3);
  expect_cost(3, TrialStatus::crashed, 8);
  EXPECT_EQ(statuses()[TrialStatus::crashed], 3);
  EXPECT_EQ(summary.restarts, 3);
  EXPECT_TRUE(noted("crashed: the measuring process ended: signal 9"));
}

TEST_F(SimulatedFaultsTest, AFinalistThatTakesTheWorkerAlongIsLeftOutOfTheFinals) {
  use_space({kRight}, {32, 64, 128});
  bool lost = false;
  events_.view = [&](const SweepView& view) {
    if (!lost && view.devices.at(0).stage == "finals") {
      lost = true;
      simulation_.labs().back()->lose_worker();
    }
  };
  const SweepSummary summary = sweep({"400000000"});
  ASSERT_TRUE(lost) << "finals were not seen";
  EXPECT_TRUE(noted("a finalist failed: crashed: the measuring process ended: signal 9"));
  EXPECT_EQ(summary.problems.done, 1);
  EXPECT_EQ(summary.restarts, 1);
  expect_complete(3);
}

TEST_F(SimulatedFaultsTest, AWorkerThatStandsStillIsReplaced) {
  use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  options_.waits.patience = 0.1;
  options_.waits.kernel_timeout_s = 0.5;
  simulation_.clock().at(3, [this] { simulation_.labs().back()->stop_worker(); });
  const SweepSummary summary = sweep();
  EXPECT_FALSE(summary.interrupted) << summary.end.reason;
  EXPECT_EQ(summary.restarts, 1);
  EXPECT_TRUE(noted("timed out after"));
  expect_cost(1, TrialStatus::timed_out, 8);
  EXPECT_EQ(statuses()[TrialStatus::timed_out], 1);
}

TEST_F(SimulatedFaultsTest, AWorkerThatCannotPrepareAProblemIsReplacedOnceAndThenTheProblemIsRefused) {
  use_space({kRight}, {32, 64, 128});
  endless_references = true;
  for (const double at_s : {2, 8}) {
    simulation_.clock().at(at_s, [this] { simulation_.labs().back()->lose_worker(); });
  }
  const SweepSummary summary = sweep();
  ASSERT_EQ(summary.problems.left_out.size(), 1U);
  EXPECT_EQ(summary.problems.left_out[0], "toy N=1000: the measuring process ended: signal 9");
  expect_sound();
}

TEST_F(SimulatedFaultsTest, ADeviceThatDisappearsEndsItAndIsUsedAgainOnceItIsBack) {
  use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  events_.trial = [&](const Trial&, int done, int, double, double) {
    if (done == 3) {
      simulation_.labs().back()->lose_device("the measuring process ended: exit code 9");
    }
  };
  const SweepSummary lost = sweep();
  EXPECT_TRUE(lost.interrupted);
  EXPECT_FALSE(lost.end.gave_up);
  EXPECT_EQ(lost.end.reason, "emulator: the measuring process ended: exit code 9");
  EXPECT_TRUE(noted("emulator is no longer used"));
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
  EXPECT_EQ(usable(), 3);
  EXPECT_LE(statuses()[TrialStatus::crashed], 1);
  events_.trial = {};
  options_.record.resume_run = lost.run;
  const SweepSummary back = sweep();
  EXPECT_FALSE(back.interrupted);
  EXPECT_EQ(back.run, lost.run);
  expect_complete(8);
}

TEST_F(SimulatedFaultsTest, ADatabaseLockedForLongIsToldOnceAndWaitedFor) {
  use_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
  options_.waits.database_wait_s = 0.05;
  std::optional<SQLite::Database> other;
  events_.trial = [&](const Trial&, int done, int, double, double) {
    if (done == 2) {
      other.emplace(database_.string(), SQLite::OPEN_READWRITE, 5000);
      other->exec("BEGIN IMMEDIATE");
    }
  };
  events_.note = [&](const std::string& note) {
    notes_.push_back(note);
    if (note.starts_with("waiting for the database: " + database_.string())) {
      EXPECT_NE(note.find("another process keeps it locked"), std::string::npos) << note;
      EXPECT_EQ(usable(), 2);
      other->exec("ROLLBACK");
    }
  };
  const SweepSummary summary = sweep();
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(std::ranges::count_if(notes_, [](const std::string& note) { return note.starts_with("waiting"); }), 1);
  expect_complete(8);
  EXPECT_EQ(usable(), 8) << "no deadline passed meanwhile";
}

// The worker that the first problem's preparation kept busy is ended, and the next one does not begin with it again.
TEST_F(SimulatedFaultsTest, AProblemThatIsPutOffDoesNotKeepTheDeviceFromOthers) {
  use_space({kRight}, {32, 64, 128});
  options_.trials = kUnlimitedTrials;
  options_.budget_s = 60;
  endless_problem = "toy N=2000";
  const SweepSummary summary = sweep({"2000", "1000", "500"});
  EXPECT_EQ(summary.problems.not_reached, std::vector<std::string>{"toy N=2000"});
  EXPECT_FALSE(noted("toy N=1000: no trial in its turn"));
  EXPECT_FALSE(noted("toy N=500: no trial in its turn"));
  EXPECT_EQ(summary.problems.done, 2);
}

class SimulatedDevicesTest : public SimulatedFaultsTest {
 protected:
  SimulatedDevicesTest() {
    DeviceInfo second = devices_.front();
    second.id = "second";
    second.uuid = "another";
    devices_.push_back(second);
    services_.devices = [this] { return devices_; };
    options_.devices = {"emulator", "second"};
  }

  std::vector<DeviceInfo> devices_{list_devices().back()};
};

TEST_F(SimulatedDevicesTest, TwoOfOneKindShareThePlan) {
  const SweepSummary summary = sweep({"1000", "2000", "4000", "8000"});
  EXPECT_EQ(summary.trials, 4 * 9);
  EXPECT_EQ(summary.problems.done, 4);
  const Store store(database_, OpenMode::read_only);
  std::map<std::int64_t, int> trials;
  for (const StoredTrial& trial : store.trials({})) {
    trials[trial.session_id] += trial.trial.stage == TrialStage::search && trial.trial.time ? 1 : 0;
  }
  ASSERT_EQ(trials.size(), 2U);
  for (const auto& [session, count] : trials) {
    EXPECT_EQ(count, 6) << "two problems each, of three usable configurations";
  }
  EXPECT_EQ(store.winners("toy", nullptr).size(), 4U);
  expect_sound();
}

TEST_F(SimulatedDevicesTest, WhatOneThatIsLostLeavesIsDoneByTheOther) {
  simulation_.clock().at(4, [this] { simulation_.labs().front()->lose_device(); });
  const SweepSummary summary = sweep({"1000", "2000", "4000", "8000"});
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(summary.end.reason, "emulator: the device was lost");
  EXPECT_EQ(summary.problems.done, 4);
  EXPECT_EQ(summary.trials, 4 * 9);
  EXPECT_EQ(last_state(), "finished");
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
