#include <gtest/gtest.h>

#include <chrono>
#include <tuple>

#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/sweep/device_plan.hpp"
#include "tuner/sweep/sweep_recorder.hpp"

namespace pascaline::testing {
namespace {

// What happens between a sweep's start and its first trial.
class SweepPlanningTest : public SimulatedSweepTest {
 protected:
  SweepSummary summary_;

  // Each of them takes a while to be planned.
  [[nodiscard]] std::vector<std::string> many_sizes() {
    simulation_.clock().pass_with_each_look(0.01);
    std::vector<std::string> sizes;
    for (int n = 1; n <= 500; ++n) {
      sizes.push_back(std::to_string(n));
    }
    return sizes;
  }
  [[nodiscard]] std::string fault_of_sweep(const std::vector<std::string>& sizes) {
    try {
      std::ignore = sweep(sizes);
    } catch (const Error& error) {
      return error.what();
    }
    return "no fault";
  }
  [[nodiscard]] std::vector<SweepProblem> problems(const std::vector<std::string>& sizes) const {
    std::vector<SweepProblem> problems;
    for (const std::string& n : sizes) {
      problems.push_back({space_.problem({{"N", n}}), 1, ""});
    }
    return problems;
  }
  [[nodiscard]] static DeviceInfo host() { return open_device("emulator")->info(); }
  [[nodiscard]] int count(const std::string& table) const {
    return SQLite::Database(database_.string()).execAndGet("SELECT count(*) FROM " + table).getInt();
  }
  void expect_nothing_begun() const {
    EXPECT_EQ(count("problems"), 0);
    EXPECT_EQ(count("plans"), 0);
    EXPECT_EQ(count("sessions"), 0);
  }
};

TEST_F(SweepPlanningTest, ADatabaseThatIsLockedMeanwhileChangesNothing) {
  std::ignore = sweep({"1000"});
  Store store(database_, OpenMode::read_write);
  store.set_busy_timeout(std::chrono::milliseconds(20));
  SQLite::Database other(database_.string(), SQLite::OPEN_READWRITE, 5000);
  other.exec("BEGIN IMMEDIATE");
  int told = 0;
  events_.note = [&](const std::string& note) {
    EXPECT_TRUE(note.starts_with("waiting for the database")) << note;
    ++told;
    other.exec("ROLLBACK");
  };
  SweepRecorder recorder(store, summary_, events_, stop_, 0.1);
  const std::vector<Space> spaces{space_};
  DevicePlan plan(spaces, options_, services_, host(), 1);
  plan.plan(recorder, problems({"1000", "2000"}), "", [] {});
  EXPECT_EQ(told, 1);
  ASSERT_EQ(plan.tasks().size(), 2U);
  EXPECT_EQ(plan.tasks()[1]->search.wanted().problem.text(), "toy N=2000");
  EXPECT_EQ(plan.tasks()[1]->index, 1U);
  EXPECT_EQ(summary_.reused, 9) << "what the database knows counts once";
  EXPECT_EQ(summary_.reused_ok, 3);
  EXPECT_EQ(count("problems"), 2);
}

TEST_F(SweepPlanningTest, ADatabaseThatStaysLockedIsWaitedForUntilTheSweepIsToEnd) {
  Store store(database_, OpenMode::create);
  store.set_busy_timeout(std::chrono::milliseconds(20));
  SQLite::Database other(database_.string(), SQLite::OPEN_READWRITE, 5000);
  other.exec("BEGIN IMMEDIATE");
  events_.note = [&](const std::string&) { stop_ = true; };
  SweepRecorder recorder(store, summary_, events_, stop_, 0.1);
  const std::vector<Space> spaces{space_};
  DevicePlan plan(spaces, options_, services_, host(), 1);
  const auto check_time = [&] {
    if (stop_) {
      throw SweepStoppedError("told to");
    }
  };
  EXPECT_THROW(plan.plan(recorder, problems({"1000"}), "", check_time), SweepStoppedError);
  EXPECT_TRUE(plan.tasks().empty());
  other.exec("ROLLBACK");
  expect_nothing_begun();
}

// Whoever plans sees that it is to stop in the middle of what it stores.
TEST_F(SweepPlanningTest, NothingOfAPlanIsStoredThatCameToNothing) {
  Store store(database_, OpenMode::create);
  SweepRecorder recorder(store, summary_, events_, stop_, 0.1);
  const std::vector<Space> spaces{space_};
  DevicePlan plan(spaces, options_, services_, host(), 1);
  int calls = 0;
  const auto check_time = [&] {
    if (++calls == 6) {  // three problems are made, and the second of them is about to be stored
      throw SweepStoppedError("told to");
    }
  };
  const std::vector<SweepProblem> three = problems({"1000", "2000", "3000"});
  EXPECT_THROW(plan.plan(recorder, three, "", check_time), SweepStoppedError);
  EXPECT_TRUE(plan.tasks().empty());
  expect_nothing_begun();
  plan.plan(recorder, three, "", [] {});
  EXPECT_EQ(plan.tasks().size(), 3U);
  EXPECT_EQ(count("problems"), 3);
}

TEST_F(SweepPlanningTest, InterruptEndsALongOneAndNothingIsBegun) {
  const std::vector<std::string> sizes = many_sizes();
  stop_ = true;
  EXPECT_THROW(std::ignore = sweep(sizes), SweepStoppedError);
  expect_nothing_begun();
}

TEST_F(SweepPlanningTest, EndOfTimeEndsALongOneAndSaysWhatToDo) {
  const std::vector<std::string> sizes = many_sizes();
  options_.budget_s = 0.01;
  const std::string fault = fault_of_sweep(sizes);
  EXPECT_LT(simulation_.clock().elapsed_s(), 1.5) << "a second after its time";
  EXPECT_NE(fault.find("while 500 problems were being planned"), std::string::npos) << fault;
  EXPECT_NE(fault.find("(--budget, --until) or fewer problems"), std::string::npos) << fault;
  expect_nothing_begun();
}

}  // namespace
}  // namespace pascaline::testing
