#include "core/device/probe.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/device/device_rates.hpp"

namespace pascaline {
namespace {

TEST(ProbeTest, NamesOfQuantitiesAndPartsAreUniqueAndRead) {
  std::set<std::string_view> names;
  std::size_t at = 0;
  for (const ProbeQuantityInfo& info : probe_quantities()) {
    EXPECT_EQ(static_cast<std::size_t>(info.quantity), at++) << info.name;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(probe_quantity_from(info.name), info.quantity);
    EXPECT_EQ(&info_of(info.quantity), &info);
    EXPECT_FALSE(info.unit.empty());
    EXPECT_FALSE(info.words.empty());
  }
  EXPECT_FALSE(probe_quantity_from("charm"));
  for (const ProbePart part : probe_parts()) {
    EXPECT_EQ(probe_part_from(name_of(part)), part);
  }
  EXPECT_FALSE(probe_part_from(""));
}

Probe probe_of(std::int64_t at, std::vector<ProbeValue> values) {
  Probe probe;
  probe.started_unix_ms = at;
  probe.values = std::move(values);
  return probe;
}

TEST(ProbeTest, ValuesThatMakeNoSenseAreNoRates) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Probe> probes{probe_of(
      1, {{ProbeQuantity::sm_clock_mhz, 0, 0, 0, 0, 5, true}, {ProbeQuantity::read_gbps, nan, 0, 0, 0, 5, true}})};
  EXPECT_TRUE(measured_rates(probes).empty());
  EXPECT_TRUE(measured_rates({}).empty());
}

TEST(ProbeTest, AConflictMayCostNothing) {
  const std::vector<Probe> probes{probe_of(1, {{ProbeQuantity::conflict_slots, -0.001, -0.01, 0.01, 0, 24, true}})};
  EXPECT_EQ(measured_rates(probes).of(ProbeQuantity::conflict_slots), -0.001);
}

DeviceRates table_rates() {
  DeviceLimits limits = limits_of_architecture("sm_61").value();
  limits.sm_count = 3;
  return typical_rates("6.1", limits).value();
}

MeasuredRates some_measured(std::vector<std::pair<ProbeQuantity, double>> values) {
  MeasuredRates measured;
  measured.measured_unix_ms = 1;
  for (const auto& [quantity, value] : values) {
    measured.values[static_cast<std::size_t>(quantity)] = value;
  }
  return measured;
}

TEST(ProbeTest, WithoutMeasurementsTheTablesStay) {
  DeviceRates rates = table_rates();
  use_measured(rates, {});
  const DeviceRates table = table_rates();
  EXPECT_EQ(rates.clock_mhz, table.clock_mhz);
  EXPECT_EQ(rates.memory_gbps, table.memory_gbps);
  EXPECT_EQ(rates.global_latency, table.global_latency);
  EXPECT_EQ(rates.dp4a_lanes, table.dp4a_lanes);
  EXPECT_EQ(source_of(rates, "6.1"), "boost clock and memory of the common product of that size; not measured");
}

TEST(ProbeTest, MeasuredRatesTakeThePlaceOfTables) {
  DeviceRates rates = table_rates();
  use_measured(rates, some_measured({{ProbeQuantity::sm_clock_mhz, 1240},
                                     {ProbeQuantity::ffma_per_clock, 127},
                                     {ProbeQuantity::dp4a_per_clock, 126},
                                     {ProbeQuantity::shared_bytes_per_clock, 125},
                                     {ProbeQuantity::l2_bytes_per_clock, 40},
                                     {ProbeQuantity::read_gbps, 41},
                                     {ProbeQuantity::copy_gbps, 39},
                                     {ProbeQuantity::launch_us, 4},
                                     {ProbeQuantity::ffma_latency, 6.01},
                                     {ProbeQuantity::shared_latency, 25},
                                     {ProbeQuantity::l2_latency, 220},
                                     {ProbeQuantity::memory_latency, 520}}));
  EXPECT_NEAR(rates.peak_gflops(), 2 * 127 * 3 * 1.24, 1e-9);
  EXPECT_NEAR(*rates.peak_int8_gops(), 8 * 126 * 3 * 1.24, 1e-9);
  EXPECT_EQ(rates.memory_gbps, 41) << "the higher of both";
  EXPECT_EQ(rates.global_latency, 370) << "between a hit and a miss";
  EXPECT_EQ(rates.shared_bytes, 125);
  EXPECT_EQ(rates.l2_bytes, 40);
  EXPECT_EQ(rates.launch_us, 4);
  EXPECT_EQ(rates.arithmetic_latency, 6.01);
  EXPECT_EQ(rates.shared_latency, 25);
  EXPECT_EQ(source_of(rates, "6.1"), "measured by pascaline probe");
}

TEST(ProbeTest, TheSourceSaysWhichPartWasMeasured) {
  DeviceRates clock = table_rates();
  use_measured(clock, some_measured({{ProbeQuantity::sm_clock_mhz, 1240}, {ProbeQuantity::l2_latency, 220}}));
  EXPECT_EQ(clock.global_latency, 400) << "a half is not enough";
  EXPECT_EQ(source_of(clock, "6.1"),
            "clock measured by pascaline probe, memory of the common product of that size; memory not measured");
  DeviceRates memory = table_rates();
  use_measured(memory, some_measured({{ProbeQuantity::copy_gbps, 39}}));
  EXPECT_EQ(memory.memory_gbps, 39);
  EXPECT_EQ(source_of(memory, "6.1"),
            "memory measured by pascaline probe, boost clock of the common product of that size; clock not measured");
}

}  // namespace
}  // namespace pascaline
