#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/tuner/sweep/sweep_faults.hpp"

namespace pascaline::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Any process of a sweep is killed at any moment, as SimulatedKillTest and SimulatedFaultsTest do at many more
// moments. PASCALINE_KILL_POINTS: how many moments; PASCALINE_KILL_SEED: which.

std::int64_t setting(const char* name, std::int64_t standard) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoll(text) : standard;
}

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

class KillTest : public SweepFaultsTest {
 protected:
  std::uint64_t seed_ = static_cast<std::uint64_t>(setting("PASCALINE_KILL_SEED", std::random_device{}()));
  std::mt19937_64 random_{seed_};

  void SetUp() override {
    SweepFaultsTest::SetUp();
    std::printf("PASCALINE_KILL_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
};

/// The sweep's own process is killed.
class ParentKillTest : public KillTest {
 protected:
  std::set<std::string> plan_;
  double duration_s_ = 0;

  void SetUp() override {
    KillTest::SetUp();
    sample_ms_ = 5;
    write_space({kRight, kNotANumber}, {32, 64, 128, 256});
    ASSERT_EQ(run(command(few())).exit_code, 0) << output();  // the first fills the cache
    remove_database();
    const auto start = Clock::now();
    ASSERT_EQ(run(command(few())).exit_code, 0) << output();
    duration_s_ = seconds_since(start);
    plan_ = tried();
    ASSERT_EQ(plan_.size(), 6U);
    remove_database();
  }
  // Fewer than there are, so that a sweep that is resumed could choose others, by a searcher that does not learn.
  static std::vector<std::string> few() { return {"--searcher", "random", "--trials", "6", "--log", "/dev/null"}; }
  void remove_database() const {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(database_.string() + end);
    }
  }
  [[nodiscard]] bool has_session() const {
    try {
      return !Store(database_, OpenMode::read_only).sessions().empty();
    } catch (const std::exception&) {
      return false;
    }
  }
  // Before its session is stored, there is nothing but the command to begin again with.
  [[nodiscard]] std::vector<std::string> next_command() const { return has_session() ? resume() : command(few()); }
  [[nodiscard]] bool finished() const { return has_session() && last_state() == "finished"; }

  // Kills it that long after its start; looks at what it had stored, and that nothing of it is left.
  std::vector<StoredTrial> kill_after(double seconds, const std::vector<std::string>& words) const {
    const int sweep = start(words);
    sleep_s(seconds);
    const std::vector<StoredTrial> stored = trials();
    const std::vector<LiveProcess> workers = processes_below(sweep);
    ::kill(sweep, SIGKILL);
    std::ignore = wait_child(sweep);
    EXPECT_TRUE(all_gone(workers)) << "a worker outlived the sweep";
    if (has_session()) {
      EXPECT_EQ(number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
    }
    return stored;
  }
  void expect_kept(const std::vector<StoredTrial>& before) const {
    std::map<std::int64_t, StoredTrial> now;
    for (StoredTrial& trial : trials()) {
      now.emplace(trial.id, std::move(trial));
    }
    for (const StoredTrial& trial : before) {
      ASSERT_TRUE(now.contains(trial.id)) << trial.trial.config.text() << " was stored and is lost";
      expect_equal(now.at(trial.id).trial, trial.trial);
    }
  }
  void expect_plan_done() const {
    expect_complete(plan_.size());
    EXPECT_EQ(tried(), plan_);
    EXPECT_EQ(statuses()[TrialStatus::crashed], 0);
    EXPECT_EQ(number("SELECT count(DISTINCT run_uuid) FROM sessions"), 1);
  }
};

TEST_F(ParentKillTest, AnyMomentCanBeResumedFrom) {
  const auto points = setting("PASCALINE_KILL_POINTS", 3);
  for (std::int64_t point = 0; point < points && !HasFailure(); ++point) {
    const double at_s = uniform(0, duration_s_);
    SCOPED_TRACE(::testing::Message() << "killed after " << at_s << " of " << duration_s_ << " s");
    const std::vector<StoredTrial> before = kill_after(at_s, command(few()));
    expect_kept(before);
    if (!finished()) {
      const ProgramResult resumed = run(next_command());
      EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
    }
    expect_kept(before);
    expect_plan_done();
    remove_database();
  }
}

/// Workers are killed or stopped while the sweep goes on.
class WorkerKillTest : public KillTest {
 protected:
  // So many that a sweep is not done before the last signal, however late a busy machine sees what is stored.
  static constexpr int kConfigurations = 8;

  void SetUp() override {
    KillTest::SetUp();
    sample_ms_ = 60;
    std::vector<int> blocks;
    for (int i = 1; i <= kConfigurations; ++i) {
      blocks.push_back(32 * i);
    }
    write_space({kRight}, blocks);
  }
  // Kills the worker at a random moment after a trial went well.
  void kill_worker(int sweep, std::string_view worker) {
    EXPECT_TRUE(wait_until([&] { return statuses()[TrialStatus::ok] > 0; }));
    sleep_s(uniform(0, 0.15));
    const auto workers = workers_of(sweep, worker);
    ASSERT_FALSE(workers.empty());
    EXPECT_EQ(::kill(workers.front().process, SIGKILL), 0);
  }
  void expect_cost(int most, TrialStatus status) const {
    expect_complete(kConfigurations);
    EXPECT_LE(statuses()[status], most);
    std::map<TrialStatus, int> ended = statuses();
    EXPECT_EQ(ended[status] + ended[TrialStatus::ok] + ended[TrialStatus::dropped], kConfigurations);
  }
};

TEST_F(WorkerKillTest, MeasuringWorkerCostsTheTrialInFlight) {
  const int sweep = start(command());
  kill_worker(sweep, "measure-worker");
  EXPECT_EQ(wait_child(sweep), 0) << output();
  expect_cost(1, TrialStatus::crashed);
}

// While it stands still, compilers finish and the clock runs on; that is no fault of theirs.
TEST_F(WorkerKillTest, SweepThatWasStoppedForAWhileLosesNothing) {
  use_cold_cache();
  const int sweep = start(command({"--compile-timeout", "6", "--kernel-timeout", "2"}));
  EXPECT_FALSE(workers_of(sweep, "cc1plus").empty());
  ::kill(sweep, SIGSTOP);
  sleep_s(6.5);
  ::kill(sweep, SIGCONT);
  EXPECT_EQ(wait_child(sweep), 0) << output();
  expect_cost(0, TrialStatus::timed_out);
}

}  // namespace
}  // namespace pascaline::testing
