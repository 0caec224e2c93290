#include <gtest/gtest.h>

#include <random>

#include "tests/tuner/simulation/simulated_fixture.hpp"

// The sweep's own process is killed, at any moment.
namespace pascaline::testing {
namespace {

class SimulatedKillTest : public SimulatedSweepTest {
 protected:
  std::mt19937_64 random_{1};
  std::set<std::string> plan_;
  double duration_s_ = 0;

  // Fewer trials than there are configurations, so that a sweep that is resumed could choose others, by a searcher that
  // does not learn.
  void SetUp() override {
    SimulatedSweepTest::SetUp();
    use_space({kRight, kNotANumber}, {32, 64, 128, 256});
    options_.search.searcher = "random";
    options_.trials = 6;
    options_.search.min_gain = 0;
    options_.compile.jobs = 1;
    duration_s_ = sweep().times.wall_s;
    plan_ = tried();
    ASSERT_EQ(plan_.size(), 6U);
    begin_again();
  }
  void begin_again() {
    for (const char* const end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(database_.string() + end);
    }
    options_.record.resume_run.clear();
  }
  // By what is stored, as `sweep --resume` does.
  void resume_what_is_there() {
    if (std::filesystem::exists(database_)) {
      const std::vector<SessionRow> sessions = Store(database_, OpenMode::read_only).sessions();
      options_.record.resume_run = sessions.empty() ? "" : sessions.at(0).run_uuid;
    }
  }
  // Returns true if it ended before that moment.
  bool sweep_until(double seconds) {
    bool running = true;
    simulation_.clock().at(simulation_.clock().elapsed_s() + seconds, [this, &running] {
      if (running) {
        kill();
      }
    });
    const bool ended = ends_unkilled([this] { std::ignore = sweep(); });
    running = false;
    if (ended) {  // before the event refers to nothing
      simulation_.clock().wait_until(simulation_.clock().now() + clock_seconds(seconds), {});
    }
    return ended;
  }
  void expect_kept(const std::vector<StoredTrial>& before) const {
    std::map<std::int64_t, StoredTrial> now;
    for (StoredTrial& trial : stored(TrialStage::search)) {
      now.emplace(trial.id, std::move(trial));
    }
    for (const StoredTrial& trial : before) {
      ASSERT_TRUE(now.contains(trial.id)) << trial.trial.config.text() << " was stored and is lost";
      expect_equal(now.at(trial.id).trial, trial.trial);
    }
  }
  void expect_plan_done() {
    expect_complete(plan_.size());
    EXPECT_EQ(tried(), plan_);
    EXPECT_EQ(statuses()[TrialStatus::crashed], 0);
    std::set<std::string> runs;
    for (const SessionRow& session : Store(database_, OpenMode::read_only).sessions()) {
      runs.insert(session.run_uuid);
    }
    EXPECT_EQ(runs.size(), 1U);
  }
};

TEST_F(SimulatedKillTest, AnyMomentCanBeResumedFrom) {
  constexpr int kMoments = 30;
  int left = 0;
  for (int moment = 0; moment < kMoments && !HasFailure(); ++moment) {
    const double at_s = duration_s_ * (moment + 0.5) / kMoments;
    SCOPED_TRACE(::testing::Message() << "killed after " << at_s << " of " << duration_s_ << " s");
    EXPECT_FALSE(sweep_until(at_s));
    left += SQLite::Database(database_.string()).execAndGet("SELECT count(*) FROM attempts").getInt() > 0 ? 1 : 0;
    const std::vector<StoredTrial> before = stored(TrialStage::search);
    resume_what_is_there();
    EXPECT_FALSE(sweep().interrupted);
    expect_kept(before);
    expect_plan_done();
    begin_again();
  }
  EXPECT_GT(left, kMoments / 4) << "while a trial was on the device";
}

TEST_F(SimulatedKillTest, KilledAgainAndAgainItGetsDone) {
  int kills = 0;
  bool done = false;
  while (!done && kills < 12) {
    const std::vector<StoredTrial> before = kills == 0 ? std::vector<StoredTrial>() : stored(TrialStage::search);
    done = sweep_until(std::uniform_real_distribution<double>(0.2, 0.9)(random_) * duration_s_);
    kills += done ? 0 : 1;
    expect_kept(before);
    resume_what_is_there();
  }
  EXPECT_GE(kills, 2);
  if (!done) {
    EXPECT_FALSE(sweep().interrupted);
  }
  expect_plan_done();
}

TEST_F(SimulatedKillTest, AnotherSweepTriesTheAttemptAgainAndClosesTheSessionThatWasKilled) {
  EXPECT_FALSE(sweep_until(duration_s_ / 2));
  const std::vector<StoredTrial> before = stored(TrialStage::search);
  ASSERT_GE(SQLite::Database(database_.string()).execAndGet("SELECT count(*) FROM attempts").getInt(), 1);
  options_.trials = 8;
  EXPECT_FALSE(sweep().interrupted);
  expect_kept(before);
  expect_complete(8);
  EXPECT_EQ(statuses()[TrialStatus::crashed], 0);
  EXPECT_EQ(Store(database_, OpenMode::read_only).sessions().at(1).state, "interrupted");
}

TEST_F(SimulatedKillTest, TrialsFromBeforeAreAResultWhereNoTimeIsLeft) {
  EXPECT_FALSE(sweep_until(0.8 * duration_s_));
  ASSERT_GE(usable(), 2);
  ASSERT_FALSE(stage_of_winner("1000"));
  options_.budget_s = 1e-3;
  std::ignore = sweep();
  EXPECT_EQ(stage_of_winner("1000"), TrialStage::search);
}

TEST_F(SimulatedKillTest, WhileCompilersWorkToo) {
  compile_seconds = 4;
  for (const double at_s : {1.0, 3.0, 5.5, 9.0}) {
    EXPECT_FALSE(sweep_until(at_s));
    const std::vector<StoredTrial> before = stored(TrialStage::search);
    resume_what_is_there();
    EXPECT_FALSE(sweep().interrupted);
    expect_kept(before);
    expect_plan_done();
    begin_again();
  }
}

// A configuration that took the machine down twice does not do so a third time.
TEST_F(SimulatedKillTest, AConfigurationDuringWhichTheMachineWentDownTwiceIsMarkedAsCrashed) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(sweep_until(2));
    SQLite::Database raw(database_.string(), SQLite::OPEN_READWRITE);
    ASSERT_GE(raw.execAndGet("SELECT count(*) FROM attempts").getInt(), 1);
    raw.exec("UPDATE sessions SET boot_id = 'an earlier one'; UPDATE attempts SET boot_id = 'an earlier one'");
    resume_what_is_there();
  }
  EXPECT_FALSE(sweep().interrupted);
  EXPECT_TRUE(noted("during which the machine went down twice: now marked as crashed"));
  EXPECT_GE(statuses()[TrialStatus::crashed], 1);
  expect_sound();
}

}  // namespace
}  // namespace pascaline::testing
