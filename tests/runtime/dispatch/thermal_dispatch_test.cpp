#include <gtest/gtest.h>

#include <array>

#include "core/error.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"
#include "tests/runtime/thermal/scripted_clock.hpp"

namespace pascaline::testing {
namespace {

// Hot at 100 s, throttled at 200 s, cool again at 300 s.
constexpr const char* kDay = R"([
  {"at_s": 0, "temperature_c": 50, "temperature_limit_c": 83, "throttle_reasons": 0},
  {"at_s": 90, "temperature_c": 80}, {"at_s": 190, "throttle_reasons": 32},
  {"at_s": 250, "temperature_c": 50, "throttle_reasons": 0}])";

class ThermalDispatchTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  ScriptedClock clock_;  // outlives the watchers that ask it
  FakeDevice device_;
  Problem problem_ = scale_problem(8, 20);
  DispatcherOptions options_;

  ThermalDispatchTest() {
    write_scale_kernel(folder_.path());
    options_.kernels = options_.spaces = folder_.path();
    options_.cache = PASCALINE_TEST_CACHE;
    options_.thermal.sources.trace = SensorTrace::parse(kDay, "day");
    options_.thermal.sources.now_s = clock_.function();
    options_.thermal.policy.period_s = 1e-4;
  }
  void add(Objective objective, const Problem& problem, const Config& config, double median_us = 10,
           std::optional<double> energy_mj = std::nullopt, std::optional<double> sustained_us = std::nullopt) {
    Winner winner = scale_winner(problem, config, median_us);
    winner.trial.energy_mj = energy_mj;
    winner.trial.sustained_us = sustained_us;
    winner.objective = objective;
    winner.device = device_row(device_.info());
    winner.kernel.source_hash = KernelSource::load(folder_ / "scale.cu").hash;
    Store store(folder_ / "tuned.db", OpenMode::create);
    add_winner(store, winner);
    options_.database = folder_ / "tuned.db";
  }
  // Threads of a block of what is launched now.
  unsigned launched(Dispatcher& dispatcher, const Prepared& prepared) {
    const std::array<void*, 2> buffers{memory_.data(), memory_.data()};
    dispatcher.launch(prepared, buffers);
    return device_.last_geometry.block[0];
  }
  unsigned launched_at(double script_s, Dispatcher& dispatcher, const Prepared& prepared) {
    clock_.move_to(script_s);
    return launched(dispatcher, prepared);
  }
  std::string warnings_of(const std::function<void()>& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  alignas(16) std::array<float, 1024> memory_{};
};

TEST_F(ThermalDispatchTest, LaunchesTheVariantOfTheStateWithoutLoadingAnything) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(128));
  Dispatcher dispatcher(device_, options_);
  EXPECT_FALSE(dispatcher.watches()) << "nothing is prepared";
  const Prepared& prepared = dispatcher.prepare(problem_);
  EXPECT_TRUE(dispatcher.watches());
  EXPECT_EQ(prepared.plan.config, scale_config(32));
  EXPECT_EQ(prepared.in(ThermalState::hot).plan.config, scale_config(128));
  EXPECT_EQ(prepared.in(ThermalState::hot).plan.provenance, Provenance::exact);
  EXPECT_TRUE(contains(prepared.in(ThermalState::hot).plan.reason, "by sustained time: tuned on this kind of device"));
  EXPECT_EQ(device_.loads, 2);

  EXPECT_EQ(launched_at(50, dispatcher, prepared), 32U);
  EXPECT_EQ(launched_at(100, dispatcher, prepared), 128U);
  EXPECT_EQ(dispatcher.thermal_state(), ThermalState::hot);
  EXPECT_EQ(launched_at(200, dispatcher, prepared), 128U);
  EXPECT_EQ(dispatcher.thermal_state(), ThermalState::throttled);
  EXPECT_EQ(launched_at(300, dispatcher, prepared), 32U);
  EXPECT_EQ(launched(dispatcher, prepared), 32U);
  EXPECT_EQ(device_.loads, 2);

  const ThermalReport report = dispatcher.thermal();
  EXPECT_EQ(report.launches, (std::array<std::uint64_t, 3>{3, 1, 1}));
  EXPECT_EQ(report.snapshot.switches, 3U);
  EXPECT_EQ(report.snapshot.state, ThermalState::cool);
  EXPECT_EQ(report.problems, 1U);
  EXPECT_EQ(prepared.launches, 3U);
  EXPECT_EQ(prepared.in(ThermalState::throttled).launches, 2U);
  EXPECT_TRUE(dispatcher.misses().empty());
}

TEST_F(ThermalDispatchTest, NothingIsWatchedWithoutOtherWinnersOrWhenItIsOff) {
  add(Objective::time, problem_, scale_config(32));
  {
    Dispatcher dispatcher(device_, options_);
    const Prepared& prepared = dispatcher.prepare(problem_);
    EXPECT_FALSE(dispatcher.watches());
    EXPECT_EQ(&prepared.in(ThermalState::throttled), &prepared);
    EXPECT_EQ(launched(dispatcher, prepared), 32U);
    EXPECT_EQ(dispatcher.thermal().launches[0], 1U);
    EXPECT_EQ(device_.loads, 1);
  }
  add(Objective::sustained, problem_, scale_config(128));
  options_.thermal.enabled = false;
  Dispatcher dispatcher(device_, options_);
  EXPECT_EQ(&dispatcher.prepare(problem_).in(ThermalState::hot), &dispatcher.prepare(problem_));
  EXPECT_FALSE(dispatcher.watches());
  EXPECT_EQ(device_.loads, 2) << "one of each dispatcher";
}

TEST_F(ThermalDispatchTest, OneWinnerByAnotherObjectiveInAllStatesIsWatchedToo) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::energy, problem_, scale_config(64));
  options_.thermal.policy.objectives.fill({Objective::energy});
  Dispatcher dispatcher(device_, options_);
  const Prepared& prepared = dispatcher.prepare(problem_);
  EXPECT_TRUE(dispatcher.watches());
  EXPECT_EQ(dispatcher.thermal().problems, 1U);
  EXPECT_EQ(launched_at(50, dispatcher, prepared), 64U);
  EXPECT_EQ(dispatcher.launches_as(ThermalState::throttled), ThermalState::cool) << "the same in all states";
}

TEST_F(ThermalDispatchTest, TheFirstObjectiveOfTheListThatHasAWinnerCounts) {
  const Problem other = scale_problem(9, 20);
  add(Objective::time, problem_, scale_config(32));
  add(Objective::energy, problem_, scale_config(64));
  add(Objective::sustained, problem_, scale_config(128));
  add(Objective::time, other, scale_config(32));
  add(Objective::energy, other, scale_config(64));
  add(Objective::edp, other, scale_config(128));
  options_.thermal.policy.objectives = {ThermalPolicy::Objectives{Objective::time},
                                        {Objective::sustained, Objective::energy},
                                        {Objective::edp, Objective::time}};
  Dispatcher dispatcher(device_, options_);
  const Prepared& first = dispatcher.prepare(problem_);
  EXPECT_EQ(first.in(ThermalState::hot).plan.config, scale_config(128));
  EXPECT_EQ(&first.in(ThermalState::throttled), &first) << "no winner by edp, so time";
  const Prepared& second = dispatcher.prepare(other);
  EXPECT_EQ(second.in(ThermalState::hot).plan.config, scale_config(64)) << "no winner by sustained, so energy";
  EXPECT_EQ(second.in(ThermalState::throttled).plan.config, scale_config(128));
}

TEST_F(ThermalDispatchTest, AWinnerThatTheLaterOneByTimeBeatsIsNotUsed) {
  const auto launched_hot = [&] {
    Dispatcher dispatcher(device_, options_);
    return dispatcher.prepare(problem_).in(ThermalState::hot).plan.config;
  };
  add(Objective::time, problem_, scale_config(32), 10, 5);
  add(Objective::energy, problem_, scale_config(64), 14, 4);
  EXPECT_EQ(launched_hot(), scale_config(64)) << "less energy, not too slow";
  add(Objective::time, problem_, scale_config(32, 2), 9.3, 3.9);
  EXPECT_EQ(launched_hot(), scale_config(32, 2)) << "3.9 mJ are less than 4";
  add(Objective::time, problem_, scale_config(32, 2), 9.4);
  EXPECT_EQ(launched_hot(), scale_config(32, 2)) << "decided anew without an energy, it still takes 3.9 mJ";
  add(Objective::time, problem_, scale_config(32, 4), 9.3);
  EXPECT_EQ(launched_hot(), scale_config(32, 4)) << "14 is more than 1.5 times 9.3";
  add(Objective::time, problem_, scale_config(32), 9.4, 4.5);
  EXPECT_EQ(launched_hot(), scale_config(64)) << "14 is less than 1.5 times 9.4, and 4 mJ are less";
  add(Objective::sustained, problem_, scale_config(128), 10, std::nullopt, 12);
  EXPECT_EQ(launched_hot(), scale_config(128)) << "how long that by time takes once warm is not known";
  add(Objective::time, problem_, scale_config(32), 9.4, 4.5, 11);
  EXPECT_EQ(launched_hot(), scale_config(64)) << "no sustained one of use, so that by energy";
}

TEST_F(ThermalDispatchTest, TheSameConfigurationIsNoVariant) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(32));
  Dispatcher dispatcher(device_, options_);
  const Prepared& prepared = dispatcher.prepare(problem_);
  EXPECT_EQ(&prepared.in(ThermalState::hot), &prepared);
  EXPECT_EQ(device_.loads, 1);
  EXPECT_FALSE(dispatcher.watches());
  EXPECT_EQ(dispatcher.launches_as(ThermalState::hot), ThermalState::cool);
}

TEST_F(ThermalDispatchTest, AWinnerOfAnotherShapeCountsOnlyIfItIsAsNear) {
  add(Objective::time, scale_problem(8, 20), scale_config(32));
  add(Objective::sustained, scale_problem(16, 20), scale_config(128));
  Dispatcher dispatcher(device_, options_);
  const Prepared& exact = dispatcher.prepare(scale_problem(8, 20));
  EXPECT_EQ(&exact.in(ThermalState::hot), &exact) << "its own winner is better founded";
  const Prepared& far = dispatcher.prepare(scale_problem(9, 20));
  EXPECT_EQ(&far.in(ThermalState::hot), &far) << "8 is nearer to 9 than 16 is";
  const Prepared& near = dispatcher.prepare(scale_problem(15, 20));
  EXPECT_EQ(near.in(ThermalState::hot).plan.config, scale_config(128));
  EXPECT_EQ(near.in(ThermalState::hot).plan.provenance, Provenance::nearest);
}

TEST_F(ThermalDispatchTest, AVariantThatDoesNotBuildLeavesTheWinnerByTimeWithAWarning) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(128, 1, 1));
  Dispatcher dispatcher(device_, options_);
  const Prepared* prepared = nullptr;
  const std::string warning = warnings_of([&] { prepared = &dispatcher.prepare(problem_); });
  EXPECT_EQ(&prepared->in(ThermalState::hot), prepared);
  EXPECT_TRUE(contains(warning, "its winner by sustained time cannot be used")) << warning;
  EXPECT_TRUE(contains(warning, "that by time is used")) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  EXPECT_EQ(prepared->plan.provenance, Provenance::exact);
}

TEST_F(ThermalDispatchTest, WantOfMemoryForAVariantIsAFaultThatMayPass) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(32, 2));  // with scratch
  Dispatcher dispatcher(device_, options_);
  EmulatedMemory& memory = static_cast<EmulatedMemory&>(device_.memory());
  std::vector<RawBuffer> all;
  for (std::size_t bytes = std::size_t{1} << 29; bytes >= 1; bytes /= 2) {
    try {
      for (;;) {
        all.push_back(memory.allocate_raw(bytes));
      }
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_TRUE(contains(message_of([&] { (void)dispatcher.prepare(problem_); }), "cannot prepare scale"));
  all.clear();
  EXPECT_EQ(dispatcher.prepare(problem_).in(ThermalState::hot).plan.config, scale_config(32, 2));
}

TEST_F(ThermalDispatchTest, WhatIsRecordedIsOfOneStateAndNotCounted) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(128));
  Dispatcher dispatcher(device_, options_);
  const Prepared& prepared = dispatcher.prepare(problem_);
  EXPECT_EQ(dispatcher.launches_as(ThermalState::hot), ThermalState::hot);
  EXPECT_EQ(dispatcher.launches_as(ThermalState::throttled), ThermalState::hot) << "both by sustained";
  EXPECT_EQ(launched_at(100, dispatcher, prepared), 128U);
  dispatcher.record_as(ThermalState::cool, [&] { EXPECT_EQ(launched(dispatcher, prepared), 32U); });
  EXPECT_THROW(dispatcher.record_as(ThermalState::cool, [] { throw Error("in the middle"); }), Error);
  EXPECT_EQ(launched(dispatcher, prepared), 128U) << "it looks at the sensors' state again";
  dispatcher.count_launches(ThermalState::hot, 5);
  EXPECT_EQ(dispatcher.thermal().launches, (std::array<std::uint64_t, 3>{0, 7, 0}));
}

TEST_F(ThermalDispatchTest, AnotherDatabaseHasOtherVariants) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(128));
  Dispatcher dispatcher(device_, options_);
  const Prepared& before = dispatcher.prepare(problem_);
  dispatcher.reload(std::nullopt);
  const Prepared& untuned = dispatcher.prepare(problem_);
  EXPECT_EQ(launched_at(100, dispatcher, untuned), 64U);
  EXPECT_EQ(dispatcher.thermal().problems, 0U);
  EXPECT_EQ(launched(dispatcher, before), 128U) << "what was prepared stays usable";
  dispatcher.reload(options_.database);
  EXPECT_EQ(launched(dispatcher, dispatcher.prepare(problem_)), 128U);
  EXPECT_EQ(dispatcher.thermal().problems, 1U);
}

TEST_F(ThermalDispatchTest, AUsersPolicyIsWarnedOfObjectivesWithoutWinners) {
  add(Objective::time, problem_, scale_config(32));
  add(Objective::sustained, problem_, scale_config(128));
  EXPECT_EQ(warnings_of([&] { const Dispatcher dispatcher(device_, options_); }), "")
      << "the default policy is nobody's";
  options_.thermal.policy.file = "cool.json";
  EXPECT_EQ(warnings_of([&] { const Dispatcher dispatcher(device_, options_); }), "")
      << "what the file leaves to the defaults is not its word";
  options_.thermal.policy.in_file[static_cast<std::size_t>(ThermalState::hot)] = true;
  const std::string warning = warnings_of([&] { const Dispatcher dispatcher(device_, options_); });
  EXPECT_TRUE(contains(warning, "cool.json: no winner by energy is known for this device")) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  options_.thermal.enabled = false;
  EXPECT_EQ(warnings_of([&] { const Dispatcher dispatcher(device_, options_); }), "");
}

}  // namespace
}  // namespace pascaline::testing
