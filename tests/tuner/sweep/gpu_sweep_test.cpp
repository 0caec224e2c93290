#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/util/paths.hpp"
#include "db/store.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/cuda/cuda_device.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tests/tuner/program.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/sweep/compiler_axis.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline::testing {
namespace {

class GpuSweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string note;
    if (list_cuda_devices(&note).empty()) {
      GTEST_SKIP() << "no CUDA device: " << note;
    }
  }
};

/// Target architecture and element type of matmul's operands.
class GpuMatmulSweepTest : public GpuSweepTest,
                           public ::testing::WithParamInterface<std::pair<std::string, std::string>> {};

TEST_P(GpuMatmulSweepTest, NoVariantIsWrong) {
  const auto& [target, type] = GetParam();
  const TemporaryFolder folder;
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const Problem problem = space.problem({{"M", "256"}, {"N", "256"}, {"K", "300"}, {"STORAGE", type}});
  SweepOptions options;
  options.devices = {"cuda:0"};
  options.governor.preheat_limit_s = 2;
  options.compile.target = target;
  options.files.program = PASCALINE_TEST_PROGRAM;
  options.files.kernels = data_folder("kernel_templates");
  options.files.cache = test_cache();
  options.database = folder / "tuned.db";
  options.trials = 12;
  options.compile.jobs = 4;
  options.measure.max_samples = 20;
  options.finals.rounds = 4;
  options.finals.min_rounds = 2;
  const std::atomic<bool> stop{false};
  const SweepSummary summary = run_sweep({space}, {{problem, 1, ""}}, options, {}, stop);
  EXPECT_EQ(summary.trials, 12);
  EXPECT_GT(summary.ok, 0);
  const Store store(options.database, OpenMode::read_only);
  for (const StoredTrial& stored : store.trials({})) {
    const Trial& trial = stored.trial;
    EXPECT_TRUE(has_time(trial.status) || trial.status == TrialStatus::rejected ||
                trial.status == TrialStatus::compile_failed)
        << name_of(trial.status) << ": " << trial.reason << " " << trial.config.text();
    EXPECT_TRUE(trial.status == TrialStatus::ok || !trial.reason.empty());
    EXPECT_TRUE(target.empty() || stored.toolkit.target == "compute_61") << stored.toolkit.target;
  }
  const auto winners = store.winners("matmul", nullptr);
  ASSERT_EQ(winners.size(), 1U);
  EXPECT_TRUE(winners[0].baseline);
}

// Sweeps one small problem with all NVRTC libraries that are here, and dispatches it.
TEST_F(GpuSweepTest, AllCompilersAreSearchedAndTheFastestWinnerIsDispatched) {
  const DeviceInfo info = open_device("cuda:0")->info();
  const CompileTarget plan = compile_target(info, "sm_61");
  const std::size_t compilers = find_compilers(plan, info.driver_version, "all").found.size();
  if (compilers < 2) {
    GTEST_SKIP() << "one NVRTC here whose code for sm_61 this driver takes; ./scripts/setup.sh --nvrtc-11.8 brings one";
  }
  const TemporaryFolder folder;
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  const Problem problem = space.problem({{"M", "256"}, {"N", "256"}, {"K", "300"}, {"STORAGE", "float32"}});
  SweepOptions options;
  options.devices = {"cuda:0"};
  options.governor.preheat_limit_s = 2;
  options.compile.target = "sm_61";
  options.compile.nvrtc = "all";
  options.files.program = PASCALINE_TEST_PROGRAM;
  options.files.kernels = data_folder("kernel_templates");
  options.files.cache = test_cache();
  options.database = folder / "tuned.db";
  options.trials = 16;
  options.compile.jobs = 4;
  options.measure.max_samples = 20;
  options.finals.rounds = 4;
  options.finals.min_rounds = 2;
  const std::atomic<bool> stop{false};
  const SweepSummary summary = run_sweep({space}, {{problem, 1, ""}}, options, {}, stop);
  EXPECT_EQ(summary.trials, 16);
  const Store store(options.database, OpenMode::read_only);
  std::set<std::string> versions;
  for (const StoredTrial& stored : store.trials({})) {
    versions.insert(stored.toolkit.version);
    EXPECT_EQ(stored.trial.config.find(kCompilerParameter), nullptr) << stored.trial.config.text();
    EXPECT_NE(stored.trial.status, TrialStatus::wrong_result) << stored.trial.reason;
  }
  EXPECT_EQ(versions.size(), compilers);
  const auto winners = store.winners("matmul", nullptr);
  ASSERT_FALSE(winners.empty());
  const auto device = open_device("cuda:0");
  const Dispatcher dispatcher(*device, {.database = options.database, .target = "sm_61", .cache = test_cache()});
  const Plan planned = dispatcher.plan(problem);
  EXPECT_EQ(planned.provenance, Provenance::exact);
  for (const Winner& winner : winners) {
    EXPECT_LE(planned.expected->median_us, winner.trial.time->median_us);
  }
}

using Target = GpuMatmulSweepTest::ParamType;
INSTANTIATE_TEST_SUITE_P(Targets, GpuMatmulSweepTest,
                         ::testing::Values(Target("", "float32"), Target("", "float16"), Target("sm_61", "float32"),
                                           Target("sm_61", "float16")),
                         [](const auto& tested) {
                           return (tested.param.first.empty() ? "native" : tested.param.first) + "_" +
                                  tested.param.second;
                         });

TEST_F(GpuSweepTest, EveryFaultOfTheToyIsFoundAndTheNextTrialWorks) {
  const std::map<Fault, TrialStatus> outcomes{
      {kNotANumber, TrialStatus::wrong_result},       {kLastElementLeftOut, TrialStatus::wrong_result},
      {kWriteBehind, TrialStatus::wrong_result},      {kWriteBefore, TrialStatus::wrong_result},
      {kDoesNotCompile, TrialStatus::compile_failed}, {kWriteBehindScratch, TrialStatus::wrong_result},
      {kWriteInput, TrialStatus::wrong_result}};
  std::vector<Fault> faults{kRight};
  for (const auto& [fault, status] : outcomes) {
    faults.push_back(fault);
  }
  ToyBench bench(toy_json(faults), 1000, "cuda:0");
  DeviceMonitor monitor(bench.device(), {.passive = true});
  TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
  for (const auto& [fault, status] : outcomes) {
    const Trial trial = runner.run(toy_config(64, fault), bench.compile(toy_config(64, fault)), 0);
    EXPECT_EQ(trial.status, status) << fault << ": " << trial.reason;
    EXPECT_FALSE(trial.reason.empty());
    const Trial right = runner.run(toy_config(128), bench.compile(toy_config(128)), 0);
    EXPECT_EQ(right.status, TrialStatus::ok) << "after " << fault << ": " << right.reason;
    EXPECT_GT(right.resources.registers, 0);
  }
}

// An illegal address may take the device from the process for good: the worker is replaced, the sweep goes on.
TEST_F(GpuSweepTest, AnIllegalAddressCostsTheProgramOneTrial) {
  const TemporaryFolder folder;
  write_toys(folder.path(), {toy_json({kRight, kIllegalAddress})});
  const std::string place = folder.path().string();
  const std::string database = (folder / "tuned.db").string();
  const ProgramResult result =
      run_program(folder.path(), {"sweep", "--kernels", place, "--spaces", place, "--kernel", "toy", "--problem",
                                  "N=1000", "--device", "cuda:0", "--db", database, "--rounds", "2", "--preheat", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const Store store(database, OpenMode::read_only);
  EXPECT_EQ(store.trials({.status = TrialStatus::launch_failed}).size(), 3U);
  std::size_t searched = 0;
  for (const StoredTrial& stored : store.trials({})) {
    searched += has_time(stored.trial.status) && stored.trial.stage == TrialStage::search ? 1 : 0;
  }
  EXPECT_EQ(searched, 3U);
  ASSERT_EQ(store.sessions().size(), 1U);
  EXPECT_EQ(store.sessions().at(0).state, "finished");
}

// Only the end of its process ends such a kernel; the driver must let go of the device for the next one.
TEST_F(GpuSweepTest, AnEndlessKernelCostsTheProgramOneTrial) {
  const TemporaryFolder folder;
  write_toys(folder.path(), {toy_json({kRight, kEndless})});
  const std::string place = folder.path().string();
  const std::string database = (folder / "tuned.db").string();
  const ProgramResult result =
      run_program(folder.path(),
                  {"sweep", "--kernels", place, "--spaces", place, "--kernel", "toy", "--problem", "N=1000", "--device",
                   "cuda:0", "--db", database, "--rounds", "10", "--preheat", "0", "--kernel-timeout", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const Store store(database, OpenMode::read_only);
  const auto hung = store.trials({.status = TrialStatus::timed_out});
  EXPECT_EQ(hung.size(), 3U);
  for (const StoredTrial& stored : hung) {
    EXPECT_EQ(stored.trial.config.integer("FAULT"), kEndless);
    EXPECT_NE(stored.trial.reason.find("launch"), std::string::npos) << stored.trial.reason;
  }
  EXPECT_EQ(store.winners("toy", nullptr).size(), 1U);
  EXPECT_EQ(store.sessions().at(0).state, "finished");
}

TEST_F(GpuSweepTest, AccumulatingKernelsStartFromTheirInputs) {
  ToyBench bench(accumulate_json(), 1000, "cuda:0");
  DeviceMonitor monitor(bench.device(), {.passive = true});
  TrialRunner runner(monitor, bench.bound(), bench.reference(), quick_measure(), 1);
  EXPECT_EQ(runner.run(toy_config(32), bench.compile(toy_config(32)), 0).status, TrialStatus::ok);
  const Config overwrites = toy_config(32, kLastElementLeftOut);
  EXPECT_EQ(runner.run(overwrites, bench.compile(overwrites), 0).status, TrialStatus::wrong_result);
}

}  // namespace
}  // namespace pascaline::testing
