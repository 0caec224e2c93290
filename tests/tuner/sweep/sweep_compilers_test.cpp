#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>

#include "db/best_trials.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/device/emulator/emulated_device.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

namespace pascaline::testing {
namespace {

/// A sweep of the toy kernel, three blocks, by two compilers: the machine's own, and the same one made to compile
/// without optimisation, which tells another version.
class SweepCompilersTest : public SimulatedSweepTest {
 protected:
  TemporaryFolder tools_;  // from which programs start
  HostCompiler usual_ = HostCompiler::find();
  std::string slow_ = (tools_ / "slow-c++").string();
  std::string before_ = variable();

  static std::string variable() {
    const char* chosen = std::getenv("PASCALINE_HOST_CXX");
    return chosen != nullptr ? chosen : "";
  }
  static void name_compilers(const std::string& names) { ::setenv("PASCALINE_HOST_CXX", names.c_str(), 1); }

  void SetUp() override {
    SimulatedSweepTest::SetUp();
    std::ofstream(slow_) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" << usual_.name
                         << " (made for a test) 0.1.0'; else exec " << usual_.program << " \"$@\" -O0; fi\n";
    std::filesystem::permissions(slow_, std::filesystem::perms::owner_all);
    name_compilers(usual_.program + "," + slow_);
    space_ = make_space({kRight});
    options_.compile.nvrtc = "all";
    options_.files.cache = tools_ / "cache";  // the slow compiler's folder has another name each time
  }
  void TearDown() override { name_compilers(before_); }

  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override {
    SimulatedResult result = SimulatedSweepTest::measure(problem, config);
    result.time_us *= config.text().find("0.1.0") == std::string::npos ? 1 : 3;
    return result;
  }

  [[nodiscard]] std::map<std::string, int> trials_by_version(TrialStage stage) const {
    std::map<std::string, int> counts;
    for (const StoredTrial& trial : stored(stage)) {
      EXPECT_EQ(trial.trial.config.find("COMPILER"), nullptr) << trial.trial.config.text();
      ++counts[trial.toolkit.version];
    }
    return counts;
  }
  [[nodiscard]] DispatcherOptions dispatcher_options() const {
    DispatcherOptions out;
    out.database = database_;
    out.kernels = folder_.path();
    out.spaces = folder_.path();
    out.cache = options_.files.cache;
    return out;
  }
  [[nodiscard]] Plan planned() const {
    const auto device = open_device("emulator");
    return Dispatcher(*device, dispatcher_options()).plan(space_.problem({{"N", "1000"}}));
  }
};

TEST_F(SweepCompilersTest, EveryPairOfConfigurationAndCompilerIsTriedAndStoredUnderItsOwnToolkit) {
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.trials, 6);
  EXPECT_EQ(summary.ok, 6) << "three blocks by two compilers";
  EXPECT_EQ(trials_by_version(TrialStage::search), (std::map<std::string, int>{{"0.1.0", 3}, {usual_.version, 3}}));
  int defaults = 0;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    EXPECT_EQ(trial.trial.is_default, trial.trial.config == toy_config(64));
    defaults += trial.trial.is_default ? 1 : 0;
    EXPECT_EQ(trial.space_hash, space_.hash);
  }
  EXPECT_EQ(defaults, 2);
  EXPECT_TRUE(noted(usual_.name + " " + usual_.version + " and " + usual_.name + " 0.1.0"));
  const Store store(database_, OpenMode::read_only);
  EXPECT_EQ(store.sessions().size(), 1U);
  EXPECT_EQ(store.sessions()[0].toolkit.version, usual_.version);
  EXPECT_EQ(store.plan(store.sessions()[0].run_uuid)->nvrtc, "all");
  expect_sound();
}

TEST_F(SweepCompilersTest, FinalsCompareBothAndEachHasAWinnerOfWhichTheFastestIsDecidedLast) {
  std::string told;
  events_.winner = [&](const std::string&, const SweepProblem&, const FinalsResult& result, int) {
    told = result.shown.compiler;
    EXPECT_EQ(result.trials[result.winner].config.find("COMPILER"), nullptr);
  };
  std::ignore = sweep();
  const auto finals = trials_by_version(TrialStage::finals);
  EXPECT_GE(finals.at("0.1.0"), 1) << "its best and its default, which may be one";
  EXPECT_GE(finals.at(usual_.version), 1);
  const Store store(database_, OpenMode::read_only);
  const std::vector<Winner> winners = store.winners("toy", nullptr);  // the last decision first
  ASSERT_EQ(winners.size(), 2U);
  EXPECT_GT(winners[0].decided_unix_ms, winners[1].decided_unix_ms);
  EXPECT_EQ(told, winners[0].toolkit.compiler + " " + winners[0].toolkit.version);
  ASSERT_TRUE(winners[0].baseline && winners[1].baseline);
  const std::vector<BestTrial> best = store.best_trials({});
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0].stored.id, winners[0].trial_id);
}

TEST_F(SweepCompilersTest, TheDispatcherTakesTheFastestThatIsHereAndNamesAFasterOneThatIsNot) {
  std::ignore = sweep();
  const std::vector<Winner> winners = Store(database_, OpenMode::read_only).winners("toy", nullptr);
  ASSERT_EQ(winners.size(), 2U);
  const Winner& fastest = *std::min_element(winners.begin(), winners.end(), [](const Winner& a, const Winner& b) {
    return a.trial.time->median_us < b.trial.time->median_us;
  });
  const Plan both = planned();
  EXPECT_EQ(both.toolkit, fastest.toolkit);
  EXPECT_EQ(both.config, fastest.trial.config);
  EXPECT_EQ(both.reason, "tuned on this kind of device");
  for (const Winner& winner : winners) {
    name_compilers(winner.toolkit.version == "0.1.0" ? slow_ : usual_.program);
    const Plan alone = planned();
    EXPECT_EQ(alone.toolkit, winner.toolkit);
    EXPECT_EQ(alone.config, winner.trial.config) << "of this compiler the best, not the other's";
    ASSERT_TRUE(alone.expected);
    EXPECT_EQ(alone.expected->median_us, winner.trial.time->median_us);
  }
}

TEST_F(SweepCompilersTest, KernelsOfBothCompilersRunInOneProgram) {
  // A winner of each compiler, for problems of their own.
  name_compilers(usual_.program);
  std::ignore = sweep({"1000"});
  name_compilers(slow_);
  std::ignore = sweep({"77"});
  name_compilers(usual_.program + "," + slow_);
  const auto device = open_device("emulator");
  Dispatcher dispatcher(*device, dispatcher_options());
  for (const std::int64_t n : {1000, 77}) {
    const Prepared& prepared = dispatcher.prepare(space_.problem({{"N", std::to_string(n)}}));
    EXPECT_EQ(prepared.plan.provenance, Provenance::exact);
    EXPECT_EQ(prepared.plan.toolkit.version, n == 77 ? "0.1.0" : usual_.version);
    const std::vector<float> x(static_cast<std::size_t>(n), 2);
    const std::vector<float> y(static_cast<std::size_t>(n), 1);
    std::vector<float> out(static_cast<std::size_t>(n), 0);
    const Buffer a = device->allocate(x.size() * sizeof(float));
    const Buffer b = device->allocate(x.size() * sizeof(float));
    const Buffer c = device->allocate(x.size() * sizeof(float));
    device->upload(a, std::as_bytes(std::span(x)));
    device->upload(b, std::as_bytes(std::span(y)));
    const std::array<void*, 3> buffers{a.data(), b.data(), c.data()};
    dispatcher.launch(prepared, buffers);
    device->synchronize();
    device->download(std::as_writable_bytes(std::span(out)), c);
    EXPECT_EQ(out, std::vector<float>(static_cast<std::size_t>(n), 7));
  }
}

TEST_F(SweepCompilersTest, WhatASweepWithOneCompilerMeasuredIsNotMeasuredAgain) {
  options_.compile.nvrtc = "";
  EXPECT_EQ(sweep().trials, 3);
  options_.compile.nvrtc = "all";
  const SweepSummary both = sweep();
  EXPECT_EQ(both.reused, 3);
  EXPECT_EQ(both.trials, 3);
  EXPECT_EQ(trials_by_version(TrialStage::search), (std::map<std::string, int>{{"0.1.0", 3}, {usual_.version, 3}}));
}

TEST_F(SweepCompilersTest, AResumedRunTellsOfACompilerThatHasGone) {
  const SweepSummary first = sweep();
  name_compilers(usual_.program);
  notes_.clear();
  options_.record.resume_run = first.run;
  const SweepSummary second = sweep();
  EXPECT_TRUE(noted("3 trials of this run used " + usual_.name + " 0.1.0, which is not used now"));
  EXPECT_TRUE(noted("there is one compiler to use here"));
  EXPECT_EQ(second.trials, 6) << "the run's, kept";
  EXPECT_EQ(trials_by_version(TrialStage::search), (std::map<std::string, int>{{"0.1.0", 3}, {usual_.version, 3}}));
}

TEST_F(SweepCompilersTest, ACutSweepGoesOnWithBothCompilers) {
  events_.trial = [this](const Trial&, int done, int, double, double) { stop_ = done >= 2; };
  const SweepSummary first = sweep();
  EXPECT_TRUE(first.interrupted);
  stop_ = false;
  events_.trial = {};
  options_.record.resume_run = first.run;
  EXPECT_EQ(sweep().trials, 6);
  EXPECT_EQ(trials_by_version(TrialStage::search), (std::map<std::string, int>{{"0.1.0", 3}, {usual_.version, 3}}));
  EXPECT_EQ(Store(database_, OpenMode::read_only).sessions().size(), 1U);
  expect_sound();
}

TEST_F(SweepCompilersTest, AListOfNvrtcVersionsIsOfNoUseOnTheEmulatorAndSaid) {
  options_.compile.nvrtc = "11.8,12.9";
  EXPECT_EQ(sweep().trials, 3);
  EXPECT_TRUE(noted("--nvrtc 11.8,12.9 is of no use here"));
}

TEST_F(SweepCompilersTest, ANamedCompilerThatDoesNotWorkIsAFault) {
  name_compilers(usual_.program + ",/no/such/compiler");
  EXPECT_THROW((void)sweep(), EmulatorError);
}

}  // namespace
}  // namespace pascaline::testing
