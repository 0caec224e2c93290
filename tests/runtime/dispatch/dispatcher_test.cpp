#include "runtime/dispatch/dispatcher.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "runtime/device/device_failure.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

class DispatcherTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  FakeDevice device_;

  DispatcherTest() { write_scale_kernel(folder_.path()); }

  // A winner for the device and the source on disk.
  [[nodiscard]] Winner winner_here(const Problem& problem, const Config& config) const {
    Winner winner = scale_winner(problem, config);
    winner.device = device_row(device_.info());
    winner.kernel.source_hash = KernelSource::load(folder_ / "scale.cu").hash;
    return winner;
  }
  [[nodiscard]] DispatcherOptions options(const std::vector<Winner>& winners) const {
    DispatcherOptions options;
    options.kernels = options.spaces = folder_.path();
    options.cache = PASCALINE_TEST_CACHE;
    if (!winners.empty()) {
      Store store(folder_ / "tuned.db", OpenMode::create);
      for (const Winner& winner : winners) {
        add_winner(store, winner);
      }
      options.database = folder_ / "tuned.db";
    }
    return options;
  }
};

TEST_F(DispatcherTest, ALaunchOfMoreArgumentsThanItTakesIsRefused) {
  nlohmann::json text = nlohmann::json::parse(scale_json());
  nlohmann::json second = text["launch"];
  second["arguments"] = std::vector<std::string>(Dispatcher::kMaxArguments + 1, "count");
  text["launch"] = nlohmann::json::array({text["launch"], second});
  write_bytes(folder_ / "scale.json", text.dump());
  Dispatcher dispatcher(device_, options({}));
  try {
    std::ignore = dispatcher.prepare(scale_problem(5, 20));
    ADD_FAILURE() << "prepared";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("more than 32 arguments"), std::string::npos) << error.what();
  }
}

TEST_F(DispatcherTest, RunsTheWinnerOfTheDatabaseOnTheHost) {
  const auto host = open_device("emulator");
  const Problem problem = scale_problem(5, 20);
  Winner winner = winner_here(problem, scale_config(32));
  winner.device = device_row(host->info());
  Dispatcher dispatcher(*host, options({winner}));
  const Prepared& prepared = dispatcher.prepare(problem);
  EXPECT_EQ(prepared.plan.provenance, Provenance::exact) << prepared.plan.reason;
  EXPECT_EQ(prepared.plan.expected->median_us, 10);
  EXPECT_EQ(prepared.geometries.front(), (Geometry{{4, 1, 1}, {32, 1, 1}, 0}));

  const std::vector<float> x(100, 1.5F);
  std::vector<float> y(100);
  const Buffer from = host->allocate(400);
  const Buffer to = host->allocate(400);
  host->upload(from, std::as_bytes(std::span(x)));
  const std::array<void*, 2> buffers{from.data(), to.data()};
  dispatcher.launch(prepared, buffers);
  host->synchronize();
  host->download(std::as_writable_bytes(std::span(y)), to);
  EXPECT_EQ(y, std::vector<float>(100, 3.0F));
  EXPECT_TRUE(dispatcher.misses().empty());
}

TEST_F(DispatcherTest, PlansWithoutCompilingOrTouchingTheDevice) {
  const Dispatcher dispatcher(device_, options({winner_here(scale_problem(16, 20), scale_config(32, 1, 1))}));
  const Plan plan = dispatcher.plan(scale_problem(8, 20));
  EXPECT_EQ(plan.provenance, Provenance::nearest);
  EXPECT_EQ(plan.config, scale_config(32, 1, 1));
  EXPECT_EQ(dispatcher.plan(scale_problem(8, 21)).provenance, Provenance::default_config);
  EXPECT_EQ(dispatcher.plan(scale_problem(8, 100)).provenance, Provenance::fallback);
  EXPECT_EQ(device_.loads + device_.allocations, 0);
  EXPECT_TRUE(dispatcher.misses().empty());
}

TEST_F(DispatcherTest, WinnersOfAnotherDeviceAreNotSeen) {
  const Problem problem = scale_problem(8, 20);
  Winner larger = winner_here(problem, scale_config(32));
  larger.device.sm_count += 1;
  Winner other = winner_here(problem, scale_config(128));
  other.device.name = "another processor";
  const Dispatcher dispatcher(device_, options({larger, other}));
  EXPECT_EQ(dispatcher.plan(problem).provenance, Provenance::default_config);
}

TEST_F(DispatcherTest, AChangedSourceMakesAWinnerStale) {
  const Problem problem = scale_problem(8, 20);
  const DispatcherOptions before = options({winner_here(problem, scale_config(32))});
  EXPECT_EQ(Dispatcher(device_, before).plan(problem).provenance, Provenance::exact);
  write_scale_kernel(folder_.path(), "scales otherwise");
  const Plan plan = Dispatcher(device_, before).plan(problem);
  EXPECT_EQ(plan.provenance, Provenance::default_config);
  EXPECT_TRUE(contains(plan.reason, "another version of the kernel's source")) << plan.reason;
}

TEST_F(DispatcherTest, AnAlteredConfigurationInTheDatabaseIsSkipped) {
  const Problem problem = scale_problem(8, 20);
  const Plan plan = Dispatcher(device_, options({winner_here(problem, scale_config(4096))})).plan(problem);
  EXPECT_EQ(plan.provenance, Provenance::default_config);
  EXPECT_TRUE(contains(plan.reason, "4096 is not among the values")) << plan.reason;
}

TEST_F(DispatcherTest, AWinnerThatDoesNotBuildGivesWayToTheDefaultWithAWarning) {
  const Problem problem = scale_problem(8, 20);
  Dispatcher dispatcher(device_, options({winner_here(problem, scale_config(64, 1, 1))}));
  ::testing::internal::CaptureStderr();
  const Prepared& prepared = dispatcher.prepare(problem);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(prepared.plan.provenance, Provenance::default_config);
  EXPECT_EQ(prepared.plan.config, scale_config(64));
  EXPECT_TRUE(contains(prepared.plan.reason, "the exact configuration")) << prepared.plan.reason;
  EXPECT_TRUE(contains(prepared.plan.reason, "this variant does not compile")) << prepared.plan.reason;
  EXPECT_TRUE(contains(warning, "pascaline: warning: scale ROWS=8 WIDTH=20")) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
  ASSERT_EQ(dispatcher.misses().size(), 1U);
  EXPECT_EQ(dispatcher.misses()[0].problem, problem);
  EXPECT_EQ(dispatcher.misses()[0].provenance, Provenance::default_config);
}

TEST_F(DispatcherTest, ADefaultThatDoesNotLoadGivesWayToTheFallback) {
  device_.loads_to_refuse = 1;
  Dispatcher dispatcher(device_, options({}));
  ::testing::internal::CaptureStderr();
  const Prepared& prepared = dispatcher.prepare(scale_problem(8, 20));
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "no room for code"));
  EXPECT_EQ(prepared.plan.provenance, Provenance::fallback);
  EXPECT_EQ(prepared.plan.config, scale_config(32));
}

TEST_F(DispatcherTest, WhatIsNotPreparedCannotBeRecorded) {
  Dispatcher dispatcher(device_, options({winner_here(scale_problem(8, 20), scale_config(32, 2))}));
  const Prepared& known = dispatcher.prepare(scale_problem(9, 20));
  const int loads = device_.loads;
  const int allocations = device_.allocations;
  const std::size_t misses = dispatcher.misses().size();
  ::testing::internal::CaptureStderr();
  (void)device_.record([&] {
    EXPECT_EQ(&dispatcher.prepare(scale_problem(9, 20)), &known);
    EXPECT_EQ(
        message_of([&] { (void)dispatcher.prepare(scale_problem(8, 20)); }),
        "scale ROWS=8 WIDTH=20 T=float32 was not prepared before the recording began: call it once, or prepare it, "
        "before recording");
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(device_.loads, loads);
  EXPECT_EQ(device_.allocations, allocations);
  EXPECT_EQ(dispatcher.misses().size(), misses);
  const Prepared& prepared = dispatcher.prepare(scale_problem(8, 20));
  EXPECT_EQ(prepared.plan.provenance, Provenance::exact);
  EXPECT_EQ(prepared.plan.config, scale_config(32, 2));
}

TEST_F(DispatcherTest, OnTheHostDeviceToo) {
  const auto host = open_device("emulator");
  Dispatcher dispatcher(*host, options({}));
  const auto prepare = [&] { (void)dispatcher.prepare(scale_problem(8, 20)); };
  EXPECT_TRUE(contains(message_of([&] { (void)host->record(prepare); }), "was not prepared before the recording"));
  EXPECT_EQ(dispatcher.prepare(scale_problem(8, 20)).plan.provenance, Provenance::default_config);
}

TEST_F(DispatcherTest, WantOfMemoryIsNoFaultOfTheConfiguration) {
  Dispatcher dispatcher(device_, options({winner_here(scale_problem(8, 20), scale_config(32, 2))}));
  device_.allocations_to_refuse = 1;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(message_of([&] { (void)dispatcher.prepare(scale_problem(8, 20)); }),
            "cannot prepare scale ROWS=8 WIDTH=20 T=float32: no memory for a buffer");
  device_.allocations_to_refuse = 1;
  try {
    (void)dispatcher.prepare(scale_problem(8, 20));
    ADD_FAILURE() << "there was memory";
  } catch (const Error& error) {
    EXPECT_TRUE(is_device_failure(error)) << "else the operation would stay on the processor from now on";
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(dispatcher.misses().empty());
  EXPECT_EQ(dispatcher.prepare(scale_problem(8, 20)).plan.provenance, Provenance::exact);
}

TEST_F(DispatcherTest, ScratchThatNoSuchDeviceHasGivesWayToTheDefault) {
  const Problem large = scale_problem(std::int64_t{1} << 24, 20);  // a workspace of 1.25 GiB, if there is one
  Dispatcher dispatcher(device_, options({winner_here(large, scale_config(32, 2))}));
  ::testing::internal::CaptureStderr();
  const Prepared& prepared = dispatcher.prepare(large);
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), "scratch buffer 'workspace' of 1342177280 bytes"));
  EXPECT_EQ(prepared.plan.provenance, Provenance::default_config);
  EXPECT_EQ(device_.allocations, 1) << "the counter's";
}

TEST_F(DispatcherTest, ThrowsOnlyWhenEverythingFailedAndTriesAgainLater) {
  device_.loads_to_refuse = 2;
  Dispatcher dispatcher(device_, options({}));
  ::testing::internal::CaptureStderr();
  try {
    (void)dispatcher.prepare(scale_problem(8, 20));
    FAIL() << "neither default nor fallback could be loaded";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "the default configuration")) << error.what();
    EXPECT_TRUE(contains(error.what(), "the fallback configuration")) << error.what();
  }
  ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(dispatcher.misses().empty());
  EXPECT_EQ(dispatcher.prepare(scale_problem(8, 20)).plan.provenance, Provenance::default_config);
}

TEST_F(DispatcherTest, ProblemsOfEqualCodeShareOneKernel) {
  Dispatcher dispatcher(device_, options({}));
  const Prepared& first = dispatcher.prepare(scale_problem(8, 20));
  const Prepared& second = dispatcher.prepare(scale_problem(9, 20));
  EXPECT_EQ(first.kernels, second.kernels);
  EXPECT_EQ(device_.loads, 1);
  EXPECT_EQ(&dispatcher.prepare(scale_problem(8, 20)), &first);
  EXPECT_EQ(dispatcher.misses().size(), 2U);
}

TEST_F(DispatcherTest, LaunchGivesTheCallersBuffersAndItsOwnScratch) {
  Dispatcher dispatcher(device_, options({}));
  const Prepared& prepared = dispatcher.prepare(scale_problem(8, 20));
  int x = 0;
  int y = 0;
  const std::array<void*, 2> buffers{&x, &y};
  dispatcher.launch(prepared, buffers);
  ASSERT_EQ(device_.last_arguments.size(), 5U);
  EXPECT_EQ(device_.last_arguments[0], &x);
  EXPECT_EQ(device_.last_arguments[1], &y);
  EXPECT_EQ(device_.last_arguments[2], nullptr);
  EXPECT_EQ(device_.last_arguments[3], prepared.arguments.scratch()[0].buffer.data());
  EXPECT_THROW(dispatcher.launch(prepared, std::span(buffers).first(1)), Error);
}

TEST_F(DispatcherTest, ReloadingPutsNewWinnersInPlace) {
  const Problem problem = scale_problem(8, 20);
  Dispatcher dispatcher(device_, options({}));
  const KernelHandle handle = dispatcher.kernel("scale");
  const Prepared& untuned = dispatcher.prepare(problem);
  EXPECT_EQ(untuned.plan.provenance, Provenance::default_config);
  EXPECT_EQ(dispatcher.misses().size(), 1);

  dispatcher.reload(options({winner_here(problem, scale_config(32))}).database);
  EXPECT_TRUE(dispatcher.misses().empty());
  EXPECT_TRUE(dispatcher.prepared().empty());
  EXPECT_EQ(dispatcher.find(handle, untuned.key.dimensions, untuned.key.types), nullptr);
  const Prepared& tuned = dispatcher.prepare(problem);
  EXPECT_EQ(tuned.plan.provenance, Provenance::exact);
  EXPECT_EQ(tuned.plan.config, scale_config(32));
  EXPECT_EQ(dispatcher.find(handle, tuned.key.dimensions, tuned.key.types), &tuned);
  EXPECT_EQ(untuned.plan.provenance, Provenance::default_config);
  dispatcher.launch(untuned, std::array<void*, 2>{});
  EXPECT_EQ(dispatcher.prepared(), std::vector<const Prepared*>{&tuned});

  EXPECT_THROW(dispatcher.reload(folder_ / "missing.db"), Error);
  EXPECT_EQ(&dispatcher.prepare(problem), &tuned);
  dispatcher.reload(std::nullopt);
  EXPECT_EQ(dispatcher.prepare(problem).plan.provenance, Provenance::default_config);
}

TEST_F(DispatcherTest, ReloadingWhileOthersFindAndPlan) {
  const Problem problem = scale_problem(8, 20);
  const auto tuned = options({winner_here(problem, scale_config(32))}).database;
  Dispatcher dispatcher(device_, options({}));
  dispatcher.prepare(problem);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  const auto look = [&] {
    while (!stop) {
      const Plan plan = dispatcher.plan(problem);
      wrong += plan.provenance != Provenance::exact && plan.provenance != Provenance::default_config;
      wrong += dispatcher.prepare(problem).plan.problem != problem;
    }
  };
  std::thread first(look);
  std::thread second(look);
  for (int i = 0; i < 20; ++i) {
    dispatcher.reload(i % 2 == 0 ? tuned : std::nullopt);
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(dispatcher.prepare(problem).plan.provenance, Provenance::default_config);
}

TEST_F(DispatcherTest, LaunchesAreCountedAndTimedForWhoWatches) {
  const auto host = open_device("emulator");
  Dispatcher dispatcher(*host, options({}));
  const Prepared& prepared = dispatcher.prepare(scale_problem(5, 20));
  const Buffer from = host->allocate(400);
  const Buffer to = host->allocate(400);
  host->fill(from, 0);
  const std::array<void*, 2> buffers{from.data(), to.data()};
  dispatcher.launch(prepared, buffers);
  EXPECT_EQ(prepared.launches, 1);
  int seen = 0;
  dispatcher.observe(
      [&](const Prepared& which, double time_us) { seen += &which == &prepared && time_us > 0 ? 1 : 0; });
  host->fill(to, 1);
  dispatcher.launch(prepared, buffers);
  EXPECT_EQ(seen, 1);
  std::vector<float> y(100, 1.0F);
  host->download(std::as_writable_bytes(std::span(y)), to);
  EXPECT_EQ(y, std::vector<float>(100, 0.0F));
  dispatcher.observe({});
  dispatcher.launch(prepared, buffers);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(prepared.launches, 3);
}

TEST_F(DispatcherTest, MissingFilesAreFaultsThatNameThem) {
  DispatcherOptions missing = options({});
  missing.database = folder_ / "nowhere.db";
  EXPECT_THROW(Dispatcher(device_, missing), StoreError);
  const Dispatcher dispatcher(device_, options({}));
  try {
    (void)dispatcher.kernel("unknown");
    FAIL() << "there is no such kernel";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "unknown.json")) << error.what();
  }
  EXPECT_THROW((void)dispatcher.plan(Problem{"scale", {{"ROWS", 1}}, {}}), Error);
}

TEST_F(DispatcherTest, ThreadsFindAndPlanWhileOthersPrepare) {
  constexpr std::int64_t kProblems = 400;
  Dispatcher dispatcher(device_, options({winner_here(scale_problem(100, 20), scale_config(64, 2))}));
  const std::array<ElementType, 1> types{ElementType::float32};
  std::atomic<int> preparing{2};
  std::atomic<std::int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (std::int64_t rows = 1; rows <= kProblems; ++rows) {
        const Prepared& prepared = dispatcher.prepare(scale_problem(rows, 20));
        wrong += prepared.key.dimensions[0] == rows ? 0 : 1;
      }
      --preparing;
    });
    threads.emplace_back([&] {
      const KernelHandle handle = dispatcher.kernel("scale");
      while (preparing > 0) {
        for (std::int64_t rows = 1; rows <= kProblems; ++rows) {
          const std::array<std::int64_t, 2> dimensions{rows, 20};
          const Prepared* found = dispatcher.find(handle, dimensions, types);
          wrong += found == nullptr || found->plan.problem == scale_problem(rows, 20) ? 0 : 1;
        }
        wrong += dispatcher.plan(scale_problem(100, 20)).provenance == Provenance::exact ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(dispatcher.misses().size(), static_cast<std::size_t>(kProblems) - 1);
  EXPECT_EQ(device_.loads, 2) << "STEPS is 1 for one row and 2, of the winner, for all others";
}

}  // namespace
}  // namespace pascaline::testing
