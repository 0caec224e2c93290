#include "tuner/measure/trial_runner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "tests/tuner/measure/relay_device.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

/// Every case also checks that the device and the right variant work afterwards.
class TrialRunnerTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json({kRight, kNotANumber, kLastElementLeftOut, kWriteBehind, kWriteBefore, kDoesNotCompile,
                            kDeadlock, kWriteBehindScratch, kWriteInput})};
  RelayDevice device_;
  DeviceMonitor monitor_{device_, {.passive = true}};
  TrialRunner runner_{monitor_, bench_.bound(), bench_.reference(), quick_measure(), 1};

  [[nodiscard]] Trial run(Fault fault, std::int64_t block = 64) {
    const Config config = toy_config(block, fault);
    return runner_.run(config, bench_.compile(config), 0);
  }
  // Buffers are numbered in the order in which they were allocated.
  [[nodiscard]] std::string hash_of(std::size_t buffer) const {
    const std::span<std::byte> bytes = device_.allocated.at(buffer);
    return hash_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void TearDown() override {
    const Trial right = run(kRight, 128);
    EXPECT_EQ(right.status, TrialStatus::ok) << right.reason;
  }
};

TEST_F(TrialRunnerTest, RightKernelIsVerifiedAndTimed) {
  const Trial trial = run(kRight);
  EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  EXPECT_EQ(trial.reason, "");
  EXPECT_TRUE(trial.is_default);
  EXPECT_EQ(trial.problem.text(), "toy N=1000");
  EXPECT_EQ(trial.config, toy_config(64));
  ASSERT_TRUE(trial.max_error && trial.time);
  EXPECT_LT(*trial.max_error, 1e-6);
  EXPECT_GT(trial.time->median_us, 0);
  EXPECT_EQ(trial.time->count, static_cast<int>(trial.samples.size()));
  EXPECT_GE(trial.samples.size(), 3U);
  EXPECT_GT(trial.verify_ms, 0);
  EXPECT_GT(trial.measure_ms, 0);
  EXPECT_GT(trial.started_unix_ms, 1'600'000'000'000);
  EXPECT_EQ(trial.binary_hash.size(), 32U);
  EXPECT_GT(trial.occupancy, 0);
}

TEST_F(TrialRunnerTest, NotANumberIsAWrongResultThatNamesTheElement) {
  const Trial trial = run(kNotANumber);
  EXPECT_EQ(trial.status, TrialStatus::wrong_result);
  EXPECT_NE(trial.reason.find("out[5]: nan instead of "), std::string::npos) << trial.reason;
  EXPECT_EQ(trial.max_error, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(trial.time);
  EXPECT_TRUE(trial.samples.empty());
  EXPECT_FALSE(trial.is_default);
}

TEST_F(TrialRunnerTest, ElementLeftOutIsFoundThoughAnEarlierTrialWroteIt) {
  EXPECT_EQ(run(kRight).status, TrialStatus::ok);
  const Trial trial = run(kLastElementLeftOut);
  EXPECT_EQ(trial.status, TrialStatus::wrong_result);
  EXPECT_NE(trial.reason.find("out[999]: "), std::string::npos) << trial.reason;
}

TEST_F(TrialRunnerTest, WritesOutsideNameTheBuffer) {
  for (const Fault fault : {kWriteBehind, kWriteBefore}) {
    const Trial trial = run(fault);
    EXPECT_EQ(trial.status, TrialStatus::wrong_result);
    EXPECT_EQ(trial.reason, "wrote outside of buffer 'out'");
  }
  const Trial scratch = run(kWriteBehindScratch);
  EXPECT_EQ(scratch.status, TrialStatus::wrong_result);
  EXPECT_EQ(scratch.reason, "wrote outside of scratch buffer 'scratch'");
}

TEST_F(TrialRunnerTest, InputsAreNotToBeWritten) {
  const Trial trial = run(kWriteInput);
  EXPECT_EQ(trial.status, TrialStatus::wrong_result);
  EXPECT_EQ(trial.reason, "wrote to the input buffer 'x'");
}

TEST_F(TrialRunnerTest, StaticAssertionNamesTheLine) {
  const Trial trial = run(kDoesNotCompile);
  EXPECT_EQ(trial.status, TrialStatus::compile_failed);
  EXPECT_NE(trial.reason.find(fmt::format("toy.cu:{}:", toy_line("static_assert"))), std::string::npos) << trial.reason;
  EXPECT_NE(trial.reason.find("wrong on purpose"), std::string::npos) << trial.reason;
  EXPECT_TRUE(trial.binary_hash.empty());
  EXPECT_EQ(device_.resets, 0);
}

TEST_F(TrialRunnerTest, DeadlockIsALaunchThatFailedAndTheDeviceIsReset) {
  const Trial trial = run(kDeadlock);
  EXPECT_EQ(trial.status, TrialStatus::launch_failed);
  EXPECT_NE(trial.reason.find("kernel toy failed"), std::string::npos) << trial.reason;
  EXPECT_EQ(device_.resets, 1);
}

TEST_F(TrialRunnerTest, OutcomesOfTheCompilerAreKept) {
  Compiled lost;
  lost.status = TrialStatus::crashed;
  lost.result.reason = "the compiler crashed: signal 11";
  const Trial trial = runner_.run(toy_config(32), lost, 0);
  EXPECT_EQ(trial.status, TrialStatus::crashed);
  EXPECT_EQ(trial.reason, lost.result.reason);
  EXPECT_EQ(device_.timed, 0);
}

TEST_F(TrialRunnerTest, ResourcesBeyondTheDeviceAreRejectedUnrun) {
  EXPECT_EQ(run(kRight).status, TrialStatus::ok);
  const Config config = toy_config(32);
  Compiled compiled = bench_.compile(config);
  const int launches = device_.launches;
  compiled.result.binary.resources.static_shared_bytes = 49'153;
  const Trial trial = runner_.run(config, compiled, 0);
  EXPECT_EQ(trial.status, TrialStatus::rejected);
  EXPECT_NE(trial.reason.find("49153 bytes of shared memory"), std::string::npos) << trial.reason;
  compiled.result.binary.resources = {};
  compiled.result.binary.resources.registers = 4000;
  EXPECT_EQ(runner_.run(config, compiled, 0).status, TrialStatus::rejected);
  EXPECT_EQ(device_.launches, launches);
}

TEST_F(TrialRunnerTest, BinariesThatCannotBeLoadedAreData) {
  Compiled compiled = bench_.compile(toy_config(32));
  compiled.result.binary.code = "not a shared object";
  const Trial trial = runner_.run(toy_config(32), compiled, 0);
  EXPECT_EQ(trial.status, TrialStatus::launch_failed);
  EXPECT_FALSE(trial.reason.empty());
  EXPECT_EQ(trial.reason.find('\n'), std::string::npos);
}

TEST_F(TrialRunnerTest, FarSlowerThanTheBestIsMeasuredBriefly) {
  device_.time_us = [](int) { return 100.0; };
  const Trial trial = runner_.run(toy_config(64), bench_.compile(toy_config(64)), 10);
  EXPECT_EQ(trial.status, TrialStatus::dropped);
  EXPECT_EQ(trial.reason, "slower than the best so far, 10.00 us, after 3 samples (chance of error at most 0.01)");
  EXPECT_EQ(trial.samples.size(), 3U);
  ASSERT_TRUE(trial.time);
  EXPECT_EQ(trial.time->median_us, 100);
}

TEST_F(TrialRunnerTest, TrialsGetFreshInputs) {
  device_.time_us = [](int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return 10.0;
  };
  EXPECT_EQ(run(kRight).inputs_ms, 0) << "those that it was prepared with";
  std::ignore = run(kRight, 32);  // by now drawing has cost little next to the trials
  std::set<std::string> contents{hash_of(0), hash_of(1)};
  std::size_t drawn = contents.size();
  // On a busy machine one drawing may have taken as long as many trials, which it then waits for.
  for (int i = 0; i < 100 && drawn < 6; ++i) {
    const Trial trial = run(kRight);
    EXPECT_EQ(trial.status, TrialStatus::ok);
    drawn += trial.inputs_ms > 0 ? 2 : 0;
    contents.insert({hash_of(0), hash_of(1)});
    EXPECT_EQ(contents.size(), drawn) << "two inputs whenever they are drawn, and no contents twice";
    EXPECT_LE(trial.inputs_ms, trial.verify_ms);
  }
  EXPECT_EQ(drawn, 6U) << "at least twice more";
}

TEST_F(TrialRunnerTest, PhasesAreToldAsTheyBegin) {
  std::vector<std::string> phases;
  runner_.on_phase([&](std::string_view phase) { phases.emplace_back(phase); });
  EXPECT_EQ(run(kRight).status, TrialStatus::ok);
  EXPECT_EQ(phases, (std::vector<std::string>{"inputs", "load", "launch", "check", "launch", "check", "measure"}))
      << "twice, as there is scratch";
  phases.clear();
  EXPECT_EQ(run(kNotANumber).status, TrialStatus::wrong_result);
  phases.erase(std::remove(phases.begin(), phases.end(), "inputs"), phases.end());
  EXPECT_EQ(phases, (std::vector<std::string>{"load", "launch", "check"}));
  runner_.on_phase({});
}

/// The toy on a card that a script describes, in seconds that pass only as the test says.
class GovernedTrialTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json()};
  RelayDevice device_;
  double now_s_ = 0;
  std::uint64_t bits_ = 0;

  GovernedTrialTest() {
    device_.time_us = [this](int) {
      now_s_ += 0.02;
      return 10.0;
    };
    device_.sensors = [this] {
      Sensors sensors;
      sensors.throttle_reasons = bits_;
      return sensors;
    };
  }
  [[nodiscard]] DeviceMonitorHooks hooks() {
    DeviceMonitorHooks hooks;
    hooks.now_s = [this] { return now_s_; };
    hooks.sleep_s = [this](double seconds) { now_s_ += seconds; };
    return hooks;
  }
};

TEST_F(GovernedTrialTest, CanaryAndScaleGoWithTheTrial) {
  DeviceMonitor monitor(device_, {.preheat_limit_s = 0}, hooks());
  monitor.canary();
  device_.canary_us = [] { return 101.0; };
  TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
  now_s_ += 10;
  const Trial trial = runner.run(toy_config(64), bench_.compile(toy_config(64)), 0);
  EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  EXPECT_EQ(trial.canary_us, 101.0);
  EXPECT_DOUBLE_EQ(trial.clock_scale, 100.0 / 101.0);
  EXPECT_DOUBLE_EQ(trial.time->median_us, 10.0 * 100.0 / 101.0);
  EXPECT_EQ(trial.samples.at(0).time_us, 10.0) << "samples stay raw";
  EXPECT_FALSE(runner.gave_up());
}

TEST_F(GovernedTrialTest, ACardThatStaysThrottledMakesItGiveUp) {
  DeviceMonitor monitor(device_, {.preheat_limit_s = 0, .pause_limit_s = 5}, hooks());
  monitor.canary();
  TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
  bits_ = 0x40;
  now_s_ += 10;
  const Trial trial = runner.run(toy_config(64), bench_.compile(toy_config(64)), 0);
  EXPECT_TRUE(runner.gave_up());
  EXPECT_FALSE(trial.time);
  EXPECT_NE(trial.status, TrialStatus::ok);
}

TEST_F(GovernedTrialTest, AKernelThatMakesTheCardThrottleIsRejected) {
  device_.time_us = [this](int) {
    now_s_ += 0.02;
    bits_ = 0x4;
    return 10.0;
  };
  device_.canary_us = [this] {
    bits_ = 0;
    return 100.0;
  };
  DeviceMonitor monitor(device_, {.preheat_limit_s = 0}, hooks());
  monitor.canary();
  TrialRunner runner(monitor, bench_.bound(), bench_.reference(), quick_measure(), 1);
  const Trial trial = runner.run(toy_config(64), bench_.compile(toy_config(64)), 0);
  EXPECT_FALSE(runner.gave_up());
  EXPECT_EQ(trial.status, TrialStatus::rejected);
  EXPECT_NE(trial.reason.find("power_throttle"), std::string::npos) << trial.reason;
  EXPECT_FALSE(trial.time);
  EXPECT_FALSE(trial.samples.empty()) << "kept for the record";
}

TEST(TrialRunner, AccumulatingKernelsStartFromTheirInputs) {
  const ToyBench bench(accumulate_json());
  RelayDevice device;
  DeviceMonitor monitor(device, {.passive = true});
  TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
  for (const std::int64_t block : {32, 64, 32}) {
    const Trial trial = runner.run(toy_config(block), bench.compile(toy_config(block)), 0);
    EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  }
  const Config overwrites = toy_config(32, kLastElementLeftOut);
  const Trial wrong = runner.run(overwrites, bench.compile(overwrites), 0);
  EXPECT_EQ(wrong.status, TrialStatus::wrong_result);
  EXPECT_NE(wrong.reason.find("total["), std::string::npos) << wrong.reason;
}

/// One trial of each on a device that compares elements, or on one that does not.
std::vector<Trial> trials_of(ToyBench& bench, bool comparing, const std::vector<Fault>& faults) {
  RelayDevice device;
  device.comparing = comparing;
  DeviceMonitor monitor(device, {.passive = true});
  TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
  std::vector<Trial> trials;
  for (const Fault fault : faults) {
    const Config config = toy_config(64, fault);
    trials.push_back(runner.run(config, bench.compile(config), 0));
  }
  EXPECT_EQ(device.errors.size(), comparing ? faults.size() + 1 : 0) << "the right one twice, as there is scratch";
  return trials;
}

TEST(ComparingDevice, FindsWhatTheHostFinds) {
  ToyBench bench(toy_json({kRight, kNotANumber, kLastElementLeftOut}));
  const std::vector<Fault> faults{kNotANumber, kLastElementLeftOut, kRight};
  const std::vector<Trial> there = trials_of(bench, true, faults);
  const std::vector<Trial> here = trials_of(bench, false, faults);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    EXPECT_EQ(there[i].status, here[i].status) << i;
    EXPECT_EQ(there[i].reason.substr(0, 5), here[i].reason.substr(0, 5)) << "inputs may be others by then";
  }
  EXPECT_EQ(there[0].reason, here[0].reason) << "of the same inputs";
  EXPECT_EQ(there[1].status, TrialStatus::wrong_result);
  EXPECT_EQ(there[2].status, TrialStatus::ok);
}

class ComparingDeviceTest : public ::testing::Test {
 protected:
  ToyBench bench_{toy_json()};
  RelayDevice device_;
  DeviceMonitor monitor_{device_, {.passive = true}};
  TrialRunner runner_{monitor_, bench_.bound(), bench_.reference(), quick_measure(), 1};

  void SetUp() override { device_.comparing = true; }
  void expect_right(std::int64_t block) {
    const Trial trial = runner_.run(toy_config(block), bench_.compile(toy_config(block)), 0);
    EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  }
};

TEST_F(ComparingDeviceTest, ErrorIsTheHostsToTheLastBit) {
  ProblemData there(device_, bench_.bound(), device_.load(bench_.reference().binary));
  ProblemData here(bench_.device(), bench_.bound(), bench_.device().load(bench_.reference().binary));
  const Binary binary = bench_.compile(toy_config(64)).result.binary;
  const Geometry geometry = bench_.bound().geometry(bench_.space().launches.front(), toy_config(64));
  const auto max_error = [&](Device& device, ProblemData& data, std::uint64_t seed) {
    data.draw(seed);
    data.poison_outputs();
    const Kernel kernel = device.load(binary);
    LaunchArguments arguments(device, bench_.bound(), toy_config(64), data.buffers());
    device.launch(kernel, geometry, arguments.pointers());
    device.synchronize();
    const ProblemData::Check check = data.check_outputs();
    EXPECT_TRUE(check.passed() && check.where.empty()) << check.where;
    return check.max_error;
  };
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const double error = max_error(device_, there, seed);
    EXPECT_GT(error, 0);
    EXPECT_EQ(error, max_error(bench_.device(), here, seed));
    ASSERT_EQ(device_.errors.size(), seed);
    EXPECT_EQ(device_.errors.back(), error);
  }
}

TEST_F(ComparingDeviceTest, WhatItComparesWithMakesRoomForAConfiguration) {
  expect_right(32);
  ASSERT_EQ(device_.errors.size(), 2U) << "twice, as there is scratch";
  int refused = 0;
  device_.on_allocate = [&] {
    if (refused++ == 0) {
      throw EmulatorError("no memory", ENOMEM);
    }
  };
  expect_right(64);
  EXPECT_GE(refused, 2) << "it was asked for again";
  EXPECT_EQ(device_.resets, 0);
  expect_right(128);
  EXPECT_EQ(device_.errors.size(), 2U) << "compared on the host from then on";
}

TEST_F(ComparingDeviceTest, HostComparesWhereMemoryIsInPieces) {
  nlohmann::json json = accumulate_json();
  json["reference"] = {{"default", true}};
  const ToyBench bench(json);
  const ReferenceRun itself{bench.compile(toy_config(64)).result.binary, toy_config(64)};
  TrialRunner runner(monitor_, bench.bound(), itself, quick_measure(), 1);
  int refused = 0;
  device_.on_allocate = [&] {
    if (device_.allocated.size() >= 3) {  // two arguments and the reference's output
      ++refused;
      throw EmulatorError("no memory", ENOMEM);
    }
  };
  const Trial trial = runner.run(toy_config(32), bench.compile(toy_config(32)), 0);
  EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
  EXPECT_GE(refused, 1);
  EXPECT_TRUE(device_.errors.empty());
}

// A kernel that made zeros of its output and of what that is compared with would pass.
TEST_F(ComparingDeviceTest, WhatItComparesWithIsNotToBeWritten) {
  expect_right(32);
  const auto expected = std::find_if(device_.allocated.rbegin(), device_.allocated.rend(),
                                     [](const auto& bytes) { return bytes.size() == 1000 * sizeof(double); });
  ASSERT_NE(expected, device_.allocated.rend());
  device_.on_launch = [bytes = *expected] { std::fill(bytes.begin() + 800, bytes.begin() + 808, std::byte{}); };
  const Trial trial = runner_.run(toy_config(64), bench_.compile(toy_config(64)), 0);
  EXPECT_EQ(trial.status, TrialStatus::wrong_result);
  EXPECT_EQ(trial.reason, "wrote outside of buffer 'out'");
  device_.on_launch = nullptr;
  device_.errors.clear();
  expect_right(128);
  ASSERT_EQ(device_.errors.size(), 2U);
  EXPECT_TRUE(std::isfinite(device_.errors.front())) << "it was restored";
}

TEST_F(ComparingDeviceTest, HostComparesWhereMemoryIsShort) {
  const std::uint64_t all = device_.memory().state().total_bytes;
  const RawBuffer others = device_.memory().allocate_raw(all - all / 5);
  expect_right(32);
  EXPECT_TRUE(device_.errors.empty());
}

// Of inout buffers, and of the kernel itself where that is the reference, whose results are not in float64.
TEST_F(ComparingDeviceTest, ResultsOfEveryReferenceAreComparedThere) {
  for (const bool by_default : {false, true}) {
    nlohmann::json json = accumulate_json();
    if (by_default) {
      json["reference"] = {{"default", true}};
    }
    const ToyBench bench(json);
    const ReferenceRun itself{bench.compile(toy_config(64)).result.binary, toy_config(64)};
    TrialRunner runner(monitor_, bench.bound(), by_default ? itself : bench.reference(), quick_measure(), 1);
    device_.errors.clear();
    for (const std::int64_t block : {32, 64}) {
      const Trial trial = runner.run(toy_config(block), bench.compile(toy_config(block)), 0);
      EXPECT_EQ(trial.status, TrialStatus::ok) << trial.reason;
    }
    const Config overwrites = toy_config(32, kLastElementLeftOut);
    EXPECT_EQ(runner.run(overwrites, bench.compile(overwrites), 0).status, TrialStatus::wrong_result);
    ASSERT_EQ(device_.errors.size(), 3U) << by_default;
    EXPECT_EQ(device_.errors.back(), std::numeric_limits<double>::infinity());
  }
}

TEST(ProblemData, SeedsDecideTheInputs) {
  ToyBench bench(toy_json());
  RelayDevice device;
  ProblemData data(device, bench.bound(), device.load(bench.reference().binary));
  const auto drawn = [&](std::uint64_t seed) {
    data.draw(seed);
    std::vector<std::vector<std::byte>> inputs;
    for (const std::span<std::byte> buffer : {device.allocated[0], device.allocated[1]}) {
      inputs.emplace_back(buffer.begin(), buffer.end());
    }
    return inputs;
  };
  const auto first = drawn(1);
  const auto second = drawn(2);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[0], second[0]);
  EXPECT_EQ(first, drawn(1));
}

TEST(ProblemData, InfinityWhereTheReferenceHasANumberIsWrong) {
  nlohmann::json json = toy_json();
  json["arguments"][0].update({{"low", 3e38}, {"high", 3.4e38}});
  ToyBench bench(json);
  DeviceMonitor monitor(bench.device(), {.passive = true});
  TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
  const Trial trial = runner.run(toy_config(32), bench.compile(toy_config(32)), 0);
  EXPECT_EQ(trial.status, TrialStatus::wrong_result) << "float32 overflows where float64 does not";
  EXPECT_NE(trial.reason.find("inf instead of"), std::string::npos) << trial.reason;
}

}  // namespace
}  // namespace pascaline::testing
