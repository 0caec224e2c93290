#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include "core/util/paths.hpp"
#include "tests/tuner/sweep/sweep_faults.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline::testing {
namespace {

/// A sweep in this process, whose workers are still processes of their own.
class WorkerLossTest : public SweepFaultsTest {
 protected:
  SweepOptions options_;
  SweepEvents events_;
  std::atomic<bool> stop_{false};
  std::string notes_;

  void SetUp() override {
    write_space({kRight}, {32, 64, 96, 128, 160, 192, 224, 256});
    options_.program = PASCALINE_TEST_PROGRAM;
    options_.kernels = folder_.path();
    options_.cache = test_cache();
    options_.database = database_;
    options_.measure = quick_measure();
    options_.measure.min_samples = options_.measure.max_samples = 100'000;
    options_.measure.budget_ms = 60;
    options_.measure.race_error = 0;
    options_.finals.rounds = 2;
    options_.kernel_timeout_s = 0.5;
    events_.note = [this](const std::string& text) { notes_ += text + "\n"; };
  }
  [[nodiscard]] SweepSummary sweep() {
    const Space space = Space::load(folder_ / "toy.json");
    return run_sweep({space}, {{space.problem({{"N", "5000"}}), 1, ""}}, options_, events_, stop_);
  }
  // The worker that measures, if there is one right now.
  static int measurer() {
    for (const LiveProcess& live : processes_below(::getpid())) {
      if (live.words.find("measure-worker") != std::string::npos) {
        return live.process;
      }
    }
    return -1;
  }
};

TEST_F(WorkerLossTest, WorkerThatStandsStillIsReplaced) {
  options_.patience = 0.1;
  std::mt19937 random(std::random_device{}());
  const auto pause = std::chrono::milliseconds(random() % 100);
  std::thread stopper([&] {
    if (wait_until([&] { return trial_count() >= 2; })) {
      std::this_thread::sleep_for(pause);
      if (const int worker = measurer(); worker > 0) {
        ::kill(worker, SIGSTOP);
      }
    }
  });
  const SweepSummary summary = sweep();
  stopper.join();
  EXPECT_FALSE(summary.interrupted) << summary.end_reason;
  EXPECT_EQ(summary.restarts, 1) << notes_;
  EXPECT_NE(notes_.find("timed out after"), std::string::npos) << notes_;
  expect_complete(8);
  EXPECT_LE(statuses()[TrialStatus::timed_out], 1);
  EXPECT_EQ(statuses()[TrialStatus::ok] + statuses()[TrialStatus::timed_out], 8);
}

TEST_F(WorkerLossTest, DeviceThatDisappearsEndsItAndIsUsedAgainOnceItIsBack) {
  const std::filesystem::path gone = folder_ / "gone";
  options_.program = folder_ / "program";
  write_file_atomically(options_.program, "#!/bin/sh\n[ \"$1\" = measure-worker ] && [ -e '" + gone.string() +
                                              "' ] && exit 9\nexec '" PASCALINE_TEST_PROGRAM "' \"$@\"\n");
  std::filesystem::permissions(options_.program, std::filesystem::perms::owner_all);
  events_.trial = [&](const Trial&, int done, int, double, double) {
    if (done == 3) {
      write_file_atomically(gone, "");
      const int worker = measurer();
      ASSERT_GT(worker, 1) << "-1 would be everybody";
      ::kill(worker, SIGKILL);
    }
  };
  const SweepSummary lost = sweep();
  EXPECT_TRUE(lost.interrupted);
  EXPECT_FALSE(lost.gave_up);
  EXPECT_EQ(lost.end_reason, "emulator: the measuring process ended: exit code 9");
  EXPECT_NE(notes_.find("emulator is no longer used"), std::string::npos) << notes_;
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
  EXPECT_GE(statuses()[TrialStatus::ok], 3) << "the fourth may have been done before the process was killed";
  EXPECT_LE(statuses()[TrialStatus::crashed], 1);
  EXPECT_LE(trial_count(), 4U);

  std::filesystem::remove(gone);
  events_.trial = {};
  options_.resume_run = lost.run;
  const SweepSummary back = sweep();
  EXPECT_FALSE(back.interrupted);
  EXPECT_EQ(back.run, lost.run);
  expect_complete(8);
}

TEST_F(WorkerLossTest, DatabaseLockedForLongIsToldAndWaitedFor) {
  options_.database_wait_s = 0.3;
  std::optional<SQLite::Database> other;
  std::thread unlocker;
  events_.trial = [&](const Trial&, int done, int, double, double) {
    if (done == 2) {
      other.emplace(database_.string(), SQLite::OPEN_READWRITE, 5000);
      other->exec("BEGIN IMMEDIATE");
      unlocker = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        other->exec("ROLLBACK");
      });
    }
  };
  const SweepSummary summary = sweep();
  unlocker.join();
  EXPECT_FALSE(summary.interrupted);
  EXPECT_NE(notes_.find("waiting for the database: " + database_.string()), std::string::npos) << notes_;
  EXPECT_NE(notes_.find("another process keeps it locked"), std::string::npos) << notes_;
  EXPECT_EQ(notes_.find("waiting", notes_.find("waiting") + 1), std::string::npos) << "told once: " << notes_;
  expect_complete(8);
  EXPECT_EQ(statuses()[TrialStatus::ok], 8);
}

}  // namespace
}  // namespace pascaline::testing
