#include "tuner/probe/probe_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/util/paths.hpp"
#include "db/stored_probe.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/probe/probe_report.hpp"
#include "tuner/probe/probe_sampler.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

ProbeOptions quick_probe() {
  ProbeOptions options;
  options.seconds = 0.1;
  options.kernels = data_folder("kernel_templates") / "probe";
  options.cache = test_cache();
  return options;
}

class EmulatorProbeTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_device("emulator");
  std::atomic<bool> stop_{false};
};

TEST_F(EmulatorProbeTest, MeasuresMemoryAndLaunchesAndSaysWhyNothingElse) {
  ProbeOptions options = quick_probe();
  std::vector<ProbePart> begun;
  options.on_part = [&](ProbePart part) { begun.push_back(part); };
  const auto outcome = run_probe(*device_, options, stop_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(begun, (std::vector{ProbePart::memory, ProbePart::launch}));
  const Probe& probe = outcome->probe;
  std::vector<ProbeQuantity> measured;
  for (const ProbeValue& value : probe.values) {
    measured.push_back(value.quantity);
    EXPECT_GT(value.median, 0) << info_of(value.quantity).name;
    EXPECT_LE(value.low, value.median);
    EXPECT_GE(value.high, value.median);
    EXPECT_GE(value.samples, 5);
  }
  EXPECT_EQ(measured, (std::vector{ProbeQuantity::read_gbps, ProbeQuantity::copy_gbps, ProbeQuantity::launch_us,
                                   ProbeQuantity::queued_launch_us, ProbeQuantity::graph_launch_us}));
  ASSERT_EQ(probe.left_out.size(), 6U);
  for (const auto& [part, reason] : probe.left_out) {
    EXPECT_NE(reason.find("processor"), std::string::npos) << name_of(part);
  }
  EXPECT_EQ(outcome->toolkit.target, "host");
  EXPECT_GT(probe.started_unix_ms, 0);
  EXPECT_GE(probe.finished_unix_ms, probe.started_unix_ms);
}

TEST_F(EmulatorProbeTest, OnlyWhatIsAskedForIsMeasured) {
  ProbeOptions options = quick_probe();
  options.only = {ProbePart::launch, ProbePart::conflicts};
  const auto outcome = run_probe(*device_, options, stop_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->probe.values.size(), 3U);
  ASSERT_EQ(outcome->probe.left_out.size(), 1U);
  EXPECT_EQ(outcome->probe.left_out[0].first, ProbePart::conflicts);
  EXPECT_TRUE(outcome->probe.chains.empty());
}

TEST_F(EmulatorProbeTest, AKernelThatDoesNotCompileCostsItsPart) {
  const TemporaryFolder folder;
  ProbeOptions options = quick_probe();
  fs::copy(options.kernels, folder / "probe");
  fs::copy(options.kernels / ".." / "common", folder / "common");
  std::ofstream(folder / "probe" / "memory.cu") << "this is no kernel";
  options.kernels = folder / "probe";
  const auto outcome = run_probe(*device_, options, stop_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->probe.values.size(), 3U) << "those of launches";
  const auto& left_out = outcome->probe.left_out;
  const auto memory =
      std::find_if(left_out.begin(), left_out.end(), [](const auto& each) { return each.first == ProbePart::memory; });
  ASSERT_NE(memory, left_out.end());
  EXPECT_NE(memory->second.find("does not compile"), std::string::npos) << memory->second;
}

TEST_F(EmulatorProbeTest, AProbeThatIsStoppedIsNone) {
  ProbeOptions options = quick_probe();
  options.seconds = 60;
  options.on_part = [&](ProbePart part) { stop_ = part == ProbePart::launch; };
  EXPECT_FALSE(run_probe(*device_, options, stop_));
}

TEST(ProbeSamplerTest, SpreadIsThatOfTheMiddleAndSaysWhatIsSteady) {
  std::vector<double> samples(100, 200.0);
  samples[3] = 1;  // one in a hundred does not count
  EXPECT_EQ(probe_value(ProbeQuantity::read_gbps, samples).spread, 0);
  EXPECT_TRUE(probe_value(ProbeQuantity::read_gbps, samples).steady);
  EXPECT_EQ(probe_value(ProbeQuantity::read_gbps, samples).median, 200);
  for (std::size_t i = 0; i < 40; ++i) {
    samples[i] = 180;  // another used the device for a while
  }
  const ProbeValue disturbed = probe_value(ProbeQuantity::read_gbps, samples);
  EXPECT_NEAR(disturbed.spread, 0.1, 1e-12);
  EXPECT_FALSE(disturbed.steady);
  EXPECT_EQ(disturbed.samples, 100);
}

StoredProbe pascal_probe() {
  StoredProbe stored;
  stored.device = example_device();
  stored.device.kind = "cuda";
  stored.device.name = "A Pascal card";
  stored.device.compute_capability = "6.1";
  stored.device.sm_count = 3;
  stored.toolkit = {"nvrtc", "12.9", "sm_61", "550.1"};
  stored.probe.uuid = "u";
  stored.probe.values = {{ProbeQuantity::sm_clock_mhz, 1240, 1239, 1241, 0.01, 20, true},
                         {ProbeQuantity::read_gbps, 40, 39, 41, 0.2, 20, false},
                         {ProbeQuantity::conflict_slots, 0.98, 0.97, 0.99, 0, 12, true}};
  for (int i = 0; i < 12; ++i) {
    stored.probe.chains.push_back({"PAIRS=1", 0.1 * i, 1.02 + 0.098 * i, 1, 2, 9});
  }
  stored.probe.left_out = {{ProbePart::latency, "it is busy"}};
  stored.probe.throttled = true;
  return stored;
}

TEST(ProbeReportTest, TextShowsTheTablesAndFlagsWhatIsUnsteady) {
  const std::string text = probe_text(pascal_probe());
  for (const char* piece : {"A Pascal card (compute capability 6.1, 3 SMs)", "1240", "1550", "0.80", "20.0 %  ",
                            "unsteady", "a register bank conflict costs 0.980 issue slots",
                            "Left out: latency: it is "
                            "busy.",
                            "slowed down"}) {
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
  }
}

TEST(ProbeReportTest, JsonHoldsEverything) {
  const StoredProbe stored = pascal_probe();
  const nlohmann::ordered_json json = probe_json(stored);
  EXPECT_EQ(json["device"]["name"], "A Pascal card");
  EXPECT_EQ(json["values"]["sm_clock_mhz"]["table"], 1550);
  EXPECT_EQ(json["values"]["sm_clock_mhz"]["ratio"], 0.8);
  EXPECT_EQ(json["values"]["read_gbps"]["steady"], false);
  EXPECT_EQ(json["values"]["conflict_slots"]["table"], 1);
  EXPECT_EQ(json["chains"].size(), 12U);
  EXPECT_NEAR(json["conflict_fit"]["slots"].get<double>(), 0.98, 1e-9);
  EXPECT_NEAR(json["conflict_fit"]["slots_without_conflicts"].get<double>(), 1.02, 1e-9);
  EXPECT_EQ(json["left_out"][0]["part"], "latency");
  EXPECT_TRUE(json["throttled"].get<bool>());
}

TEST(ProbeReportTest, NothingIsAssumedOfAnEmulator) {
  DeviceRow emulator;
  emulator.kind = "host";
  for (const ProbeQuantityInfo& info : probe_quantities()) {
    EXPECT_FALSE(assumed_value(info.quantity, emulator)) << info.name;
  }
}

}  // namespace
}  // namespace pascaline::testing
