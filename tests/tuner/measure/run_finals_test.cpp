#include "tuner/measure/run_finals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/util/statistics.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// Finals of the toy in made-up time on a made-up card: launches cost 1 ms, canaries 0.1 ms.
class RunFinalsTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json({kRight, kNotANumber, kDeadlock})};
  RelayDevice device_;
  double now_s_ = 0;
  std::optional<double> end_s_;
  std::function<double(std::size_t finalist)> time_us_ = [](std::size_t) { return 10.0; };
  Sensors sensors_;
  FinalsOptions options_;
  GovernorOptions governor_;
  std::vector<std::size_t> runs_;  // who was put on the device, in turn

  RunFinalsTest() {
    governor_.preheat_limit_s = 0;
    device_.sensors = [this] { return sensors_; };
    device_.time_us = [this](int) {
      now_s_ += 0.001;
      return time_us_(runs_.back());
    };
    device_.canary_us = [this] {
      now_s_ += 0.0001;
      return 100.0;
    };
    device_.on_launch = [this] { now_s_ += 0.001; };
  }
  [[nodiscard]] std::pair<Config, Binary> finalist(std::int64_t block, Fault fault = kRight) const {
    const Config config = toy_config(block, fault);
    return {config, bench_.compile(config).result.binary};
  }
  [[nodiscard]] std::optional<FinalsResult> run(const std::vector<std::pair<Config, Binary>>& finalists) {
    DeviceMonitorHooks hooks;
    hooks.now_s = [this] { return now_s_; };
    hooks.sleep_s = [this](double seconds) { now_s_ += seconds; };
    DeviceMonitor monitor(device_, governor_, hooks);
    monitor.set_end_s(end_s_);
    TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
    return run_finals(runner, finalists, options_, [this](std::size_t finalist) { runs_.push_back(finalist); });
  }
  // Noise of 1 %, another value each time.
  [[nodiscard]] double noisy(double center_us) {
    return center_us * (1 + 0.01 * ((device_.timed * 7919 % 1000) / 500.0 - 1));
  }
};

TEST_F(RunFinalsTest, TimesFinalistsInTurnAndStopsAtTheFirstLookIfClear) {
  time_us_ = [this](std::size_t finalist) { return noisy(finalist == 0 ? 5 : 10); };
  const auto result = run({finalist(32), finalist(64)});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->trials.size(), 2U);
  EXPECT_EQ(result->rounds, 10);
  EXPECT_EQ(result->winner, 0U);
  EXPECT_FALSE(result->tie);
  EXPECT_FALSE(result->gave_up);
  EXPECT_GT(result->confidence, 0.999);
  EXPECT_EQ(device_.timed, 60);
  EXPECT_EQ(runs_.size(), 2U + 20U) << "loading, then in turn; no power, no energy";
  EXPECT_EQ(runs_[2], 0U);
  EXPECT_EQ(runs_[3], 1U);
  EXPECT_EQ(runs_[4], 1U) << "each round begins with another";
  EXPECT_EQ(runs_[5], 0U);
  EXPECT_FALSE(result->trials[0].is_default);
  EXPECT_TRUE(result->trials[1].is_default);
  for (const Trial& trial : result->trials) {
    EXPECT_EQ(trial.stage, TrialStage::finals);
    EXPECT_EQ(trial.status, TrialStatus::ok);
    EXPECT_EQ(trial.samples.size(), 30U);
    EXPECT_EQ(trial.canary_us, 100);
    EXPECT_FALSE(trial.energy_mj);
    EXPECT_FALSE(trial.binary_hash.empty());
  }
}

TEST_F(RunFinalsTest, WideTimesTakeAllRoundsAndTieToTheDefault) {
  time_us_ = [this](std::size_t) { return noisy(10); };
  options_.tie_width = 1e-6;
  const auto result = run({finalist(32), finalist(64), finalist(128)});
  EXPECT_EQ(result->rounds, 40);
  EXPECT_EQ(runs_.size(), 3U + 3 * 40U);
  EXPECT_TRUE(result->tie);
  EXPECT_EQ(result->winner, 1U) << "the default";
  EXPECT_EQ(result->confidence, 0.5);
}

TEST_F(RunFinalsTest, EqualTimesAreATieAtOnce) {
  const auto result = run({finalist(32), finalist(64)});
  EXPECT_EQ(result->rounds, 10);
  EXPECT_TRUE(result->tie);
  EXPECT_EQ(result->winner, 1U);
}

TEST_F(RunFinalsTest, ThrottledSamplesDoNotCountAndTheirRoundIsRepeated) {
  device_.time_us = [this](int number) {
    now_s_ += 0.02;
    sensors_.throttle_reasons = number == 20 ? 0x4 : 0;
    return noisy(runs_.back() == 0 ? 5 : 10);
  };
  device_.canary_us = [this] {
    sensors_.throttle_reasons = 0;
    now_s_ += 0.0001;
    return 100.0;
  };
  const auto result = run({finalist(32), finalist(64)});
  EXPECT_EQ(result->rounds, 10);
  EXPECT_EQ(runs_.size(), 2U + 2 * 11U) << "eleven passes";
  EXPECT_EQ(result->trials[0].samples.size() + result->trials[1].samples.size(), 66U);
  EXPECT_EQ(result->trials[0].time->count + result->trials[1].time->count, 65);
}

TEST_F(RunFinalsTest, ARoundBeforeABadCanaryDoesNotCount) {
  device_.canary_us = [this] {
    now_s_ += 0.0001;
    return device_.timed >= 6 && device_.timed < 12 && now_s_ < 2 ? 120.0 : 100.0;
  };
  const auto result = run({finalist(32), finalist(64)});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rounds, 10);
  EXPECT_EQ(result->trials[0].samples.size(), 33U);
  EXPECT_EQ(result->trials[0].samples[0].mark, SampleMark::canary_drift);
  EXPECT_EQ(result->trials[1].samples[2].mark, SampleMark::canary_drift);
  EXPECT_TRUE(result->trials[0].samples[3].counted());
  EXPECT_EQ(result->trials[1].time->count, 30);
}

TEST_F(RunFinalsTest, GivesUpOnACardThatStaysUnfit) {
  governor_.pause_limit_s = 20;
  device_.time_us = [this](int number) {
    now_s_ += 0.02;
    sensors_.throttle_reasons = number >= 20 ? 0x40 : 0;
    return 10.0;
  };
  const auto result = run({finalist(32), finalist(64)});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->gave_up);
}

TEST_F(RunFinalsTest, EnergyOfWinnerAndDefaultIsPowerTimesTime) {
  int reads = 0;
  bool stuck = false;
  device_.sensors = [&] {
    Sensors sensors = sensors_;
    sensors.power_w = 50 + (stuck ? 0 : 1e-8 * (++reads % 2));
    return sensors;
  };
  time_us_ = [this](std::size_t finalist) { return noisy(finalist == 0 ? 1000 : 2000); };
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_EQ(result->winner, 0U);
  EXPECT_EQ(std::count_if(result->trials.begin(), result->trials.end(), [](const Trial& t) { return t.is_default; }),
            1);
  for (std::size_t i = 0; i < result->trials.size(); ++i) {
    const Trial& trial = result->trials[i];
    EXPECT_EQ(trial.energy_mj.has_value(), i == 0 || trial.is_default) << i;
    EXPECT_NEAR(trial.energy_mj.value_or(50), 50, 1e-6) << "50 W for a millisecond";
  }
  stuck = true;
  const auto unread = run({finalist(32), finalist(64)});
  for (const Trial& trial : unread->trials) {
    EXPECT_FALSE(trial.energy_mj) << "by a reading that never changed";
  }
  stuck = false;
  options_.energy_window_ms = 0;
  EXPECT_FALSE(run({finalist(32), finalist(64)})->trials[0].energy_mj);
}

TEST_F(RunFinalsTest, EnergiesOfFinalsBeforeAreTakenWhereTheCardIsAsItWas) {
  int reads = 0;
  double temperature_c = 60;
  double watts = 50;
  device_.sensors = [&] {
    Sensors sensors = sensors_;
    sensors.power_w = watts + 1e-8 * (++reads % 2);
    sensors.temperature_c = temperature_c;
    return sensors;
  };
  time_us_ = [this](std::size_t finalist) { return noisy(finalist == 0 ? 1000 : 2000); };
  const std::vector<std::pair<Config, Binary>> finalists{finalist(32), finalist(128), finalist(64)};
  const auto first = run(finalists);
  EXPECT_FALSE(first->energies_again);
  options_.energies = energies_of(first->trials);
  ASSERT_TRUE(options_.energies);
  EXPECT_EQ(options_.energies->of_configs.size(), 2U);
  EXPECT_EQ(options_.energies->temperature_c, 60);
  const auto energy_of_winner = [](const std::optional<FinalsResult>& result) {
    EXPECT_TRUE(result->trials[0].energy_mj && result->trials[2].energy_mj) << "winner and default";
    return result->trials[0].energy_mj.value_or(0);
  };

  watts = 70;  // what measuring again would tell
  temperature_c = 62;
  runs_.clear();
  const auto again = run(finalists);
  EXPECT_TRUE(again->energies_again);
  EXPECT_NEAR(energy_of_winner(again), 50, 1e-6);
  EXPECT_EQ(again->trials[0].reason, "its energy is what the finals before measured");
  EXPECT_EQ(runs_.size() % finalists.size(), 0U) << "loading and rounds, and nothing after them";

  temperature_c = 64;
  const auto warmer = run(finalists);
  EXPECT_FALSE(warmer->energies_again);
  EXPECT_NEAR(energy_of_winner(warmer), 70, 1e-6);

  temperature_c = 60;
  options_.energies->canary_us = 98.5;
  EXPECT_NEAR(energy_of_winner(run(finalists)), 70, 1e-6) << "another clock";
  options_.energies->canary_us.reset();
  EXPECT_NEAR(energy_of_winner(run(finalists)), 70, 1e-6) << "no clock to compare with";
  options_.energies->canary_us = 100;
  EXPECT_NEAR(energy_of_winner(run(finalists)), 50, 1e-6);

  const std::pair<std::string, double> of_default = options_.energies->of_configs.back();
  options_.energies->of_configs.pop_back();
  EXPECT_NEAR(energy_of_winner(run(finalists)), 70, 1e-6) << "the default's is not known, and both are to be compared";
  options_.energies->of_configs.push_back(of_default);
  options_.energy_window_ms = 0;
  EXPECT_FALSE(run(finalists)->trials[0].energy_mj);
}

// Whoever runs draws a power of its own, whose last digits are never still.
class ObjectiveFinalsTest : public RunFinalsTest {
 protected:
  std::vector<double> watts_{50, 50, 50};
  std::function<std::optional<double>(double)> power_w_ = [this](double now_s) {
    return watts_[runs_.empty() ? 0 : runs_.back()] * (1 + 1e-3 * std::sin(1000 * now_s));
  };

  ObjectiveFinalsTest() {
    device_.sensors = [this] {
      Sensors sensors = sensors_;
      sensors.power_w = power_w_(now_s_);
      return sensors;
    };
    device_.on_launch = [this] { now_s_ += 1e-6 * launch_us_[runs_.back()]; };
    time_us_ = [this](std::size_t finalist) { return noisy(launch_us_[finalist]); };
    options_.objective = objective_of(Objective::energy).defaults();
  }
  std::vector<double> launch_us_{1000, 1100, 1300};
};

TEST_F(ObjectiveFinalsTest, TheThriftiestIsDecidedBesideTheFastest) {
  watts_ = {60, 40, 50};  // 60, 44 and 65 mJ
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_EQ(result->winner, 0U);
  EXPECT_EQ(result->by_objective->undecided, "");
  EXPECT_EQ(result->by_objective->winner, 1U);
  EXPECT_NEAR(result->by_objective->score, 44, 0.5);
  EXPECT_NEAR(result->by_objective->baseline_score.value(), 65, 0.6);
  EXPECT_NEAR(result->trials[0].energy_mj.value(), 60, 0.6) << "every contender's is kept";
  EXPECT_NEAR(result->trials[1].energy_mj.value(), 44, 0.5);
  EXPECT_NEAR(result->trials[2].energy_mj.value(), 65, 0.6);
  for (const Contender& contender : result->by_objective->contenders) {
    EXPECT_GE(contender.values.size(), 3U);
    EXPECT_LE(contender.values.size(), 8U);
  }
}

TEST_F(ObjectiveFinalsTest, OnlyThoseNearTheFastestContendAndTheDefaultAlways) {
  launch_us_ = {1000, 1600, 1700};
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  ASSERT_EQ(result->by_objective->contenders.size(), 2U);
  EXPECT_EQ(result->by_objective->contenders[0].trial, 0U);
  EXPECT_TRUE(result->trials[result->by_objective->contenders[1].trial].is_default);
  EXPECT_FALSE(result->trials[1].energy_mj);
}

TEST_F(ObjectiveFinalsTest, PowerThatVanishesLeavesItUndecidedAndTheTimeDecided) {
  power_w_ = [](double now_s) { return now_s < 3 ? std::optional(50 + std::sin(1000 * now_s)) : std::nullopt; };
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_EQ(result->by_objective->undecided, "the card stopped reporting its power");
  EXPECT_FALSE(result->by_objective->out_of_time);
  EXPECT_EQ(result->winner, 0U);
  EXPECT_GT(result->confidence, 0.99);
}

TEST_F(ObjectiveFinalsTest, PowerThatSticksLeavesItUndecided) {
  power_w_ = [](double now_s) { return now_s < 3 ? 50 + std::sin(1000 * now_s) : 51.5; };
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_EQ(result->by_objective->undecided, "the card's power reading is stuck at 51.5 W");
  for (const Trial& trial : result->trials) {
    EXPECT_FALSE(trial.energy_mj) << "of the winner by time, too";
  }
  EXPECT_EQ(result->winner, 0U);
}

TEST_F(ObjectiveFinalsTest, WhereTimeIsShortFewerContendAndWithTooLittleNone) {
  end_s_ = 0.7 + 2 * 3 * 2.5;
  auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_EQ(result->by_objective->contenders.size(), 2U) << "the fastest and the default";
  EXPECT_EQ(result->by_objective->undecided, "");
  EXPECT_LE(now_s_, *end_s_);
  now_s_ = 0;
  end_s_ = 5;
  result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_TRUE(result->by_objective->out_of_time);
  EXPECT_NE(result->by_objective->undecided, "");
  EXPECT_EQ(result->winner, 0U);
}

// By an earlier decision a winner by time need not be the fastest: it is what another one must be better than.
TEST_F(ObjectiveFinalsTest, TheWinnerByTimeContendsHoweverShortTheTime) {
  launch_us_ = {1000, 1004, 1300};
  watts_ = {50, 45, 60};
  time_us_ = [this](std::size_t finalist) {
    return launch_us_[finalist] * (1 + 0.2 * ((device_.timed * 7919 % 1000) / 500.0 - 1));
  };
  options_.standing = StandingDecision{finalist(128).first.text(),
                                       {1004, 1003, 1005, 120},
                                       TimeSummary{1300, 1299, 1301, 120},
                                       finalist(64).first.text(),
                                       100.0,
                                       1.0};
  for (const double end_s : {0.9 + 2 * 3 * 2.5, 1000.0}) {
    now_s_ = 0;
    end_s_ = end_s;
    const auto result = run({finalist(32), finalist(128), finalist(64)});
    ASSERT_TRUE(result && result->by_objective);
    ASSERT_EQ(result->winner, 1U);
    const auto& contenders = result->by_objective->contenders;
    EXPECT_EQ(std::count_if(contenders.begin(), contenders.end(),
                            [](const Contender& contender) { return contender.trial == 1 || contender.trial == 2; }),
              2);
    EXPECT_EQ(contenders.size(), end_s < 100 ? 2U : 3U);
    EXPECT_EQ(result->by_objective->winner, 1U);
  }
}

TEST_F(ObjectiveFinalsTest, SustainedGoesByTheTimeOfWarmWork) {
  options_.objective = objective_of(Objective::sustained).defaults();
  options_.energy_window_ms = 0;
  sensors_.temperature_c = 70;
  // Cold the first is the fastest; at work for a while it throttles.
  bool warm = false;
  time_us_ = [&](std::size_t finalist) { return noisy(warm && finalist == 0 ? 1250 : launch_us_[finalist]); };
  int launches = 0;
  device_.on_launch = [&] {
    now_s_ += 1e-6 * launch_us_[runs_.back()];
    warm = ++launches > 100;
  };
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_EQ(result->winner, 0U);
  EXPECT_EQ(result->by_objective->undecided, "");
  EXPECT_EQ(result->by_objective->contenders.size(), 3U);
  EXPECT_EQ(result->by_objective->winner, 1U);
  EXPECT_NEAR(result->trials[0].sustained_us.value(), 1250, 10);
  EXPECT_NEAR(result->trials[1].sustained_us.value(), 1100, 10);
  EXPECT_NEAR(result->by_objective->baseline_score.value(), 1300, 10);
  EXPECT_FALSE(result->trials[1].energy_mj);
}

TEST_F(ObjectiveFinalsTest, SustainedWorkBeyondTheUsersLimitIsNotDecided) {
  options_.objective = objective_of(Objective::sustained).defaults();
  options_.objective.max_temperature_c = 65;
  sensors_.temperature_c = 70;
  const auto result = run({finalist(32), finalist(64)});
  ASSERT_TRUE(result && result->by_objective);
  EXPECT_NE(result->by_objective->undecided.find("--max-temperature"), std::string::npos);
  EXPECT_EQ(result->winner, 0U);
}

// A round of three finalists takes nine milliseconds.
TEST_F(RunFinalsTest, FinalsEndInTimeAndDecideByTheRoundsThereWere) {
  sensors_.power_w = 50;
  time_us_ = [this](std::size_t finalist) { return noisy(finalist == 0 ? 5 : 10); };
  end_s_ = 0.07;
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result);
  EXPECT_LE(now_s_, *end_s_);
  EXPECT_FALSE(result->out_of_time);
  EXPECT_FALSE(result->gave_up);
  EXPECT_GE(result->rounds, kMinFinalsRounds);
  EXPECT_LT(result->rounds, options_.min_rounds);
  EXPECT_EQ(result->winner, 0U) << "a clear difference shows in a few rounds";
  EXPECT_FALSE(result->trials[0].energy_mj) << "for which there was no time";
}

TEST_F(RunFinalsTest, OfTooFewRoundsNothingIsDecided) {
  end_s_ = 0.012;
  const auto result = run({finalist(32), finalist(128), finalist(64)});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->out_of_time);
  EXPECT_LE(now_s_, *end_s_ + 0.002) << "but for the launch that was under way";
}

TEST_F(RunFinalsTest, FinalistsThatFailNowAreLeftOut) {
  const auto result = run({finalist(32, kDeadlock), finalist(32), finalist(64, kDeadlock), finalist(64)});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->trials.size(), 2U);
  EXPECT_EQ(result->trials[0].config, toy_config(32));
  EXPECT_EQ(result->trials[1].config, toy_config(64));
  EXPECT_EQ(result->trials[1].samples.size(), 30U);
  EXPECT_EQ(device_.resets, 2);
  EXPECT_EQ(runs_.front(), 0U);
  EXPECT_EQ(std::count(runs_.end() - 2, runs_.end(), 3U), 1) << "indices are those of the finalists given";
}

TEST_F(RunFinalsTest, NothingLeftIsNoResult) {
  EXPECT_FALSE(run({}));
  EXPECT_FALSE(run({finalist(64, kDeadlock)}));
}

}  // namespace
}  // namespace pascaline::testing
