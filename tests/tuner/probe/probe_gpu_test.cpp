#include <gtest/gtest.h>

#include "core/device/device_rates.hpp"
#include "core/util/paths.hpp"
#include "runtime/device/cuda/cuda_device.hpp"
#include "runtime/device/sm61/kernel_code.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/probe/probe_report.hpp"
#include "tuner/probe/probe_run.hpp"

namespace pascaline::testing {
namespace {

/// The real probe on the first GPU, once with its own code and once with that of sm_61.
class GpuProbeTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string note;
    if (list_cuda_devices(&note).empty()) {
      GTEST_SKIP() << "no CUDA device: " << note;
    }
  }
};

TEST_P(GpuProbeTest, ValuesArePlausible) {
  const auto device = open_device("cuda:0");
  ProbeOptions options;
  options.seconds = 20;
  options.target = GetParam();
  options.kernels = data_folder("kernel_templates") / "probe";
  options.cache = test_cache();
  const std::atomic<bool> stop{false};
  const auto outcome = run_probe(*device, options, stop);
  ASSERT_TRUE(outcome);
  const DeviceRow row = device_row(device->info());
  const Probe& probe = outcome->probe;
  const std::string shown = probe_text({0, probe, row, outcome->toolkit});
  SCOPED_TRACE(shown);
  const auto of = [&](ProbeQuantity quantity) {
    const ProbeValue* value = probe.find(quantity);
    return value != nullptr ? value->median : -1;
  };
  const DeviceRates table = typical_rates(row.compute_capability, device->info().limits).value();
  EXPECT_GT(of(ProbeQuantity::sm_clock_mhz), 200);
  EXPECT_LT(of(ProbeQuantity::sm_clock_mhz), 4000);
  EXPECT_GT(of(ProbeQuantity::ffma_per_clock), 0.8 * table.fp32_lanes);
  EXPECT_LT(of(ProbeQuantity::ffma_per_clock), 1.02 * table.fp32_lanes);
  if (table.dp4a_lanes && of(ProbeQuantity::dp4a_per_clock) > 0) {
    EXPECT_GT(of(ProbeQuantity::dp4a_per_clock), 0.5 * *table.dp4a_lanes);
    EXPECT_LT(of(ProbeQuantity::dp4a_per_clock), 1.05 * *table.dp4a_lanes);
  }
  EXPECT_GT(of(ProbeQuantity::shared_bytes_per_clock), 64);
  EXPECT_LT(of(ProbeQuantity::shared_bytes_per_clock), 132);
  EXPECT_GT(of(ProbeQuantity::l2_bytes_per_clock), 8);
  EXPECT_LT(of(ProbeQuantity::l2_bytes_per_clock), 130);
  EXPECT_GT(of(ProbeQuantity::copy_gbps), 0.5 * table.memory_gbps);
  EXPECT_LT(of(ProbeQuantity::copy_gbps), 1.1 * table.memory_gbps);
  EXPECT_GT(of(ProbeQuantity::read_gbps), 0.5 * table.memory_gbps);
  EXPECT_LT(of(ProbeQuantity::read_gbps), 1.1 * table.memory_gbps);
  EXPECT_GT(of(ProbeQuantity::launch_us), 0.2);
  EXPECT_LT(of(ProbeQuantity::launch_us), 50);
  EXPECT_LT(of(ProbeQuantity::graph_launch_us), of(ProbeQuantity::queued_launch_us) * 1.5);
  EXPECT_GT(of(ProbeQuantity::ffma_latency), 3.5);
  EXPECT_LT(of(ProbeQuantity::ffma_latency), 7);
  EXPECT_GT(of(ProbeQuantity::shared_latency), 15);
  EXPECT_LT(of(ProbeQuantity::shared_latency), 60);
  EXPECT_GT(of(ProbeQuantity::l2_latency), 100);
  EXPECT_LT(of(ProbeQuantity::l2_latency), of(ProbeQuantity::memory_latency));
  EXPECT_LT(of(ProbeQuantity::memory_latency), 3000);
  const bool has_banks = GetParam().empty() && row.compute_capability >= "5.0" && row.compute_capability <= "6.2" &&
                         row.compute_capability.size() == 3;
  EXPECT_EQ(probe.find(ProbeQuantity::conflict_slots) != nullptr, has_banks);
  EXPECT_EQ(probe.chains.empty(), !has_banks);
}

INSTANTIATE_TEST_SUITE_P(Targets, GpuProbeTest, ::testing::Values("", "sm_61"),
                         [](const auto& tested) { return tested.param.empty() ? "native" : tested.param; });

}  // namespace
}  // namespace pascaline::testing
