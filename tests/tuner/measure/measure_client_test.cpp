#include "tuner/measure/measure_client.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <functional>

#include "core/error.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline::testing {
namespace {

/// A client with the real program as its worker, on the emulated device, where an illegal address is the process's end.
class MeasureClientTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json({kRight, kNotANumber, kIllegalAddress})};
  MeasureClient lane_{options()};
  std::vector<MeasureEvent> events_;

  MeasureClientTest() { std::signal(SIGPIPE, SIG_IGN); }
  static MeasureClientOptions options() {
    MeasureClientOptions options;
    options.program = PASCALINE_TEST_PROGRAM;
    options.measure = quick_measure();
    options.governor.passive = true;
    options.governor.preheat_limit_s = 0;
    return options;
  }
  // Trials that take long enough not to be over before the test goes on.
  static MeasureClientOptions slow_options() {
    MeasureClientOptions slow = options();
    slow.measure.min_samples = slow.measure.max_samples = 1'000'000;
    slow.measure.budget_ms = 700;
    return slow;
  }
  [[nodiscard]] MeasureProblem problem() const {
    return {&bench_.space(), bench_.bound().problem(), bench_.reference(), 1};
  }
  [[nodiscard]] TrialJob job(std::uint64_t id, Fault fault = kRight, std::int64_t block = 64) const {
    const Config config = toy_config(block, fault);
    TrialJob out;
    out.id = id;
    out.binary = bench_.compile(config).result.binary;
    out.blank = blank_trial(bench_.bound(), config, out.binary);
    return out;
  }
  [[nodiscard]] FinalsJob finals(std::uint64_t id, const std::vector<Config>& configs) const {
    FinalsJob out;
    out.id = id;
    out.options.rounds = 4;
    out.options.min_rounds = 2;
    for (const Config& config : configs) {
      Binary binary = bench_.compile(config).result.binary;
      Trial blank = blank_trial(bench_.bound(), config, binary);
      out.finalists.emplace_back(std::move(blank), std::move(binary));
    }
    return out;
  }
  // Pumps as a sweep does, until it is so.
  void pump_until(const std::function<bool()>& reached) {
    const auto end = MeasureClient::Clock::now() + std::chrono::seconds(60);
    while (!reached()) {
      ASSERT_LT(MeasureClient::Clock::now(), end) << "timed out after";
      MachineClock().wait_until(MeasureClient::Clock::now() + std::chrono::milliseconds(50), lane_.wakeups());
      lane_.pump(events_);
    }
  }
  void pump_until_idle() {
    pump_until([&] { return !lane_.busy() || lane_.ended(); });
  }
  template <typename Event>
  [[nodiscard]] std::vector<Event> all() const {
    std::vector<Event> out;
    for (const MeasureEvent& event : events_) {
      if (const auto* wanted = std::get_if<Event>(&event)) {
        out.push_back(*wanted);
      }
    }
    return out;
  }
  // What is left works as if nothing had been.
  void expect_works(std::uint64_t id) {
    events_.clear();
    lane_.submit(job(id));
    pump_until_idle();
    ASSERT_EQ(all<TrialDone>().size(), 1U);
    EXPECT_EQ(all<TrialDone>()[0].id, id);
    EXPECT_EQ(all<TrialDone>()[0].trial.status, TrialStatus::ok) << all<TrialDone>()[0].trial.reason;
  }
};

TEST_F(MeasureClientTest, TrialsComeBackInTheOrderGiven) {
  EXPECT_TRUE(lane_.wakeups().empty()) << "no process before there is work";
  lane_.set_problem(problem());
  lane_.submit(job(1));
  lane_.submit(job(2, kNotANumber));
  lane_.submit(job(3, kRight, 128));
  EXPECT_EQ(lane_.trials_left(), 3U);
  pump_until_idle();
  EXPECT_EQ(all<ProblemPrepared>().size(), 1U);
  const auto done = all<TrialDone>();
  ASSERT_EQ(done.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].id, i + 1);
    EXPECT_EQ(done[i].trial.problem, bench_.bound().problem());
  }
  EXPECT_EQ(done[0].trial.status, TrialStatus::ok) << done[0].trial.reason;
  EXPECT_TRUE(done[0].trial.is_default);
  EXPECT_GE(done[0].trial.samples.size(), 3U);
  EXPECT_EQ(done[1].trial.status, TrialStatus::wrong_result);
  EXPECT_NE(done[1].trial.reason.find("out[5]: nan"), std::string::npos) << done[1].trial.reason;
  EXPECT_EQ(done[2].trial.config, toy_config(128));
  EXPECT_EQ(lane_.restarts(), 0);
  EXPECT_GT(lane_.times().total_ms(), 0);
  EXPECT_EQ(lane_.wakes_at(), MeasureClient::Clock::time_point::max()) << "an idle worker is in no hurry";
}

TEST_F(MeasureClientTest, WorkerCanBeThereBeforeThereIsWork) {
  lane_.warm_up();
  const int worker = lane_.worker_process();
  EXPECT_GT(worker, 0);
  EXPECT_FALSE(lane_.busy());
  EXPECT_TRUE(lane_.starting());
  lane_.set_problem(problem());
  expect_works(1);
  EXPECT_EQ(lane_.worker_process(), worker);
  EXPECT_FALSE(lane_.starting());
  lane_.interrupt();
  EXPECT_FALSE(lane_.starting()) << "there is no worker";
  lane_.warm_up();
  EXPECT_TRUE(lane_.starting()) << "another one";
}

TEST_F(MeasureClientTest, KernelThatEndsItsProcessIsBlamedAndTheNextGoesOn) {
  lane_.set_problem(problem());
  lane_.submit(job(1));
  lane_.submit(job(2, kIllegalAddress));
  lane_.submit(job(3, kRight, 128));
  pump_until_idle();
  const auto done = all<TrialDone>();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].trial.status, TrialStatus::ok) << done[0].trial.reason;
  EXPECT_EQ(done[1].id, 2U);
  EXPECT_EQ(done[1].trial.status, TrialStatus::crashed);
  EXPECT_EQ(done[1].trial.config, toy_config(64, kIllegalAddress));
  EXPECT_NE(done[1].trial.reason.find("the measuring process ended: "), std::string::npos) << done[1].trial.reason;
  EXPECT_EQ(done[2].trial.status, TrialStatus::ok) << done[2].trial.reason;
  EXPECT_EQ(all<WorkerRestarted>().size(), 1U);
  EXPECT_EQ(lane_.restarts(), 1);
}

TEST_F(MeasureClientTest, TrialThatTheDeadlineCutsOffIsGivenBack) {
  MeasureClientOptions options = slow_options();
  options.deadline = Deadline::after(0);
  lane_ = MeasureClient(options);
  lane_.set_problem(problem());
  lane_.submit(job(7));
  pump_until_idle();
  EXPECT_TRUE(all<TrialDone>().empty());
  ASSERT_EQ(all<TrialCut>().size(), 1U);
  EXPECT_EQ(all<TrialCut>()[0].job.id, 7U);
  EXPECT_FALSE(all<TrialCut>()[0].job.binary.code.empty()) << "it can be measured later";
  EXPECT_EQ(lane_.restarts(), 0);
}

TEST_F(MeasureClientTest, TimesAreOfWhatTheWorkerDid) {
  lane_.set_problem(problem());
  pump_until_idle();
  const WorkerTimes prepared = lane_.times();
  EXPECT_GT(prepared.opening_ms, 0);
  EXPECT_GT(prepared.preparing_ms, 0);
  EXPECT_EQ(prepared.trials_ms + prepared.finals_ms, 0);
  lane_.submit(job(1));
  pump_until_idle();
  const WorkerTimes tried = lane_.times();
  EXPECT_GT(tried.trials_ms, 0);
  EXPECT_EQ(tried.finals_ms, 0);
  lane_.submit(finals(2, {toy_config(64), toy_config(128)}));
  pump_until_idle();
  const WorkerTimes compared = lane_.times();
  EXPECT_GT(compared.finals_ms, 0);
  EXPECT_NEAR(compared.total_ms() - compared.finals_ms, tried.total_ms(), 1e-6);
  EXPECT_NEAR(compared.opening_ms + compared.preparing_ms, prepared.total_ms(), 1e-6);
}

TEST_F(MeasureClientTest, FinalsCompareAndDecide) {
  lane_.set_problem(problem());
  lane_.submit(finals(5, {toy_config(64), toy_config(128)}));
  pump_until_idle();
  const auto done = all<FinalsDone>();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].id, 5U);
  ASSERT_TRUE(done[0].result);
  ASSERT_EQ(done[0].result->trials.size(), 2U);
  EXPECT_EQ(done[0].result->trials[1].config, toy_config(128));
  EXPECT_EQ(done[0].result->trials[1].stage, TrialStage::finals);
  EXPECT_EQ(done[0].result->trials[1].problem, bench_.bound().problem());
  EXPECT_TRUE(done[0].result->baseline);
  expect_works(6);
}

TEST_F(MeasureClientTest, FinalistThatEndsTheProcessFallsOut) {
  lane_.set_problem(problem());
  lane_.submit(finals(5, {toy_config(64), toy_config(64, kIllegalAddress), toy_config(128)}));
  pump_until_idle();
  const auto failed = all<FinalistFailed>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].trial.config, toy_config(64, kIllegalAddress));
  EXPECT_EQ(failed[0].trial.status, TrialStatus::crashed);
  const auto done = all<FinalsDone>();
  ASSERT_EQ(done.size(), 1U);
  ASSERT_TRUE(done[0].result);
  ASSERT_EQ(done[0].result->trials.size(), 2U);
  EXPECT_EQ(done[0].result->trials[0].config, toy_config(64));
  EXPECT_EQ(done[0].result->trials[1].config, toy_config(128));
}

TEST_F(MeasureClientTest, FinalsOfNothingThatRunsHaveNoResult) {
  lane_.set_problem(problem());
  lane_.submit(finals(5, {toy_config(64, kIllegalAddress)}));
  pump_until_idle();
  EXPECT_EQ(all<FinalistFailed>().size(), 1U);
  ASSERT_EQ(all<FinalsDone>().size(), 1U);
  EXPECT_FALSE(all<FinalsDone>()[0].result);
  expect_works(6);
}

TEST_F(MeasureClientTest, ProblemThatDoesNotFitIsRefusedAndTheNextIsPrepared) {
  const std::int64_t n = 10'000'000'000'000;
  MeasureProblem too_large = problem();
  too_large.problem = bench_.space().problem({{"N", std::to_string(n)}});
  lane_.set_problem(std::move(too_large));
  pump_until_idle();
  ASSERT_EQ(all<ProblemRefused>().size(), 1U);
  EXPECT_NE(all<ProblemRefused>()[0].reason, "");
  EXPECT_TRUE(all<ProblemPrepared>().empty());
  EXPECT_FALSE(lane_.ended());
  lane_.set_problem(problem());
  expect_works(1);
  EXPECT_EQ(lane_.restarts(), 0);
}

TEST_F(MeasureClientTest, TrialsNotBegunAreTakenBack) {
  lane_.set_problem(problem());
  pump_until_idle();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    lane_.submit(job(id));
  }
  const auto back = lane_.take_back();
  ASSERT_EQ(back.size(), 3U) << "the worker has said of none that it began";
  EXPECT_EQ(back[0].id, 3U) << "the last first, so that they can be put in front again";
  EXPECT_EQ(back[2].id, 1U);
  EXPECT_FALSE(back[2].binary.code.empty());
  EXPECT_FALSE(lane_.busy());
  expect_works(4);
  EXPECT_EQ(all<TrialDone>().size(), 1U) << "what was taken back does not come";
}

TEST_F(MeasureClientTest, TrialInFlightIsFinishedWhenTheOthersAreTakenBack) {
  lane_ = MeasureClient(slow_options());
  lane_.set_problem(problem());
  pump_until_idle();
  lane_.submit(job(1));
  lane_.submit(job(2));
  const auto in_flight = MeasureClient::Clock::now() + std::chrono::milliseconds(300);
  pump_until([&] { return MeasureClient::Clock::now() > in_flight; });
  const auto back = lane_.take_back();
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].id, 2U);
  pump_until_idle();
  ASSERT_EQ(all<TrialDone>().size(), 1U);
  EXPECT_EQ(all<TrialDone>()[0].id, 1U);
  EXPECT_EQ(all<TrialDone>()[0].trial.status, TrialStatus::ok);
  expect_works(3);
}

TEST_F(MeasureClientTest, InterruptEndsTheWorkerAndEveryTrialCanBeTakenBack) {
  lane_ = MeasureClient(slow_options());
  lane_.set_problem(problem());
  pump_until_idle();
  lane_.submit(job(1));
  lane_.submit(job(2));
  lane_.pump(events_);
  const int worker = lane_.worker_process();
  ASSERT_GT(worker, 0);
  lane_.interrupt();
  EXPECT_NE(::kill(worker, 0), 0);
  EXPECT_EQ(lane_.take_back().size(), 2U);
  EXPECT_FALSE(lane_.busy());
  expect_works(3);
}

TEST_F(MeasureClientTest, PreparationThatIsInterruptedIsNotBegunAgain) {
  lane_.set_problem(problem());
  lane_.pump(events_);
  lane_.interrupt();
  lane_.warm_up();
  lane_.set_problem(problem());
  pump_until_idle();
  lane_.submit(job(1));
  pump_until_idle();
  EXPECT_EQ(all<ProblemPrepared>().size(), 1U) << "the second alone";
  EXPECT_EQ(all<TrialDone>().size(), 1U);
}

TEST_F(MeasureClientTest, WorkerKilledWhileIdleCostsNothing) {
  lane_.set_problem(problem());
  pump_until_idle();
  ASSERT_GT(lane_.worker_process(), 1) << "-1 would be everybody";
  ::kill(lane_.worker_process(), SIGKILL);
  pump_until([&] { return lane_.restarts() == 1; });
  expect_works(1);
}

TEST_F(MeasureClientTest, ProgramThatIsNoWorkerEndsTheLane) {
  MeasureClientOptions wrong = options();
  wrong.program = "/nonexistent/pascaline";
  lane_ = MeasureClient(wrong);
  lane_.set_problem(problem());
  EXPECT_THROW(lane_.pump(events_), Error);
  for (const char* program : {"/bin/false", "/bin/echo"}) {
    events_.clear();
    wrong.program = program;
    lane_ = MeasureClient(wrong);
    lane_.set_problem(problem());
    pump_until_idle();
    EXPECT_TRUE(lane_.ended()) << program;
    ASSERT_EQ(all<MeasuringEnded>().size(), 1U) << program;
    EXPECT_FALSE(all<MeasuringEnded>()[0].gave_up);
    EXPECT_NE(all<MeasuringEnded>()[0].reason, "");
  }
}

}  // namespace
}  // namespace pascaline::testing
