#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include "db/stored_probe.hpp"
#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

Probe example_probe(std::int64_t started_unix_ms, double copy_gbps = 400) {
  Probe probe;
  probe.device_uuid = "GPU-1";
  probe.program_version = "0.1.0";
  probe.started_unix_ms = started_unix_ms;
  probe.finished_unix_ms = started_unix_ms + 60'000;
  probe.temperature_c = 61.5;
  probe.throttled = true;
  probe.values = {{ProbeQuantity::sm_clock_mhz, 1500.5, 1499, 1502, 0.004, 30, true},
                  {ProbeQuantity::copy_gbps, copy_gbps, copy_gbps - 1, copy_gbps + 1, 0.01, 20, true},
                  {ProbeQuantity::conflict_slots, 0.97, 0.95, 0.99, 0, 23, true}};
  probe.chains = {{"PAIRS=0 TRIPLES=0 ORDER=0", 0, 1.02, 1.01, 1.03, 9}, {"PAIRS=8", 0.05, 1.07, 1.06, 1.08, 9}};
  probe.left_out = {{ProbePart::latency, "it is 'busy'"}, {ProbePart::arithmetic, "dp4a: none"}};
  return probe;
}

std::int64_t store_probe(Store& store, Probe probe, const DeviceRow& device = example_device()) {
  return store.add_probe(probe, store.device_id(device), store.toolkit_id(example_toolkit()));
}

class StoreProbesTest : public MergeTest {
 protected:
  [[nodiscard]] static std::vector<StoredProbe> probes_in(const std::filesystem::path& file) {
    return Store(file, OpenMode::read_only).probes(nullptr);
  }
};

TEST_F(StoreProbesTest, ComesBackAsItWasStored) {
  Store store(mine_, OpenMode::create);
  Probe probe = example_probe(1000);
  store.add_probe(probe, store.device_id(example_device()), store.toolkit_id(example_toolkit()));
  EXPECT_FALSE(probe.uuid.empty()) << "one is given";
  const auto stored = store.probes(nullptr);
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].probe, probe);
  EXPECT_EQ(stored[0].device.name, example_device().name);
  EXPECT_EQ(stored[0].toolkit, example_toolkit());
}

TEST_F(StoreProbesTest, OfOneDeviceOnlyAndTheLatestFirst) {
  Store store(mine_, OpenMode::create);
  DeviceRow other = example_device();
  other.sm_count += 1;
  store_probe(store, example_probe(1000));
  store_probe(store, example_probe(3000));
  store_probe(store, example_probe(2000), other);
  const DeviceRow device = example_device();
  const auto mine = store.probes(&device);
  ASSERT_EQ(mine.size(), 2U);
  EXPECT_EQ(mine[0].probe.started_unix_ms, 3000);
  EXPECT_EQ(mine[1].probe.started_unix_ms, 1000);
  EXPECT_EQ(store.probes(nullptr).size(), 3U);
}

TEST_F(StoreProbesTest, RatesAreTheLatestSteadyValuesOfTheDevice) {
  Store store(mine_, OpenMode::create);
  Probe newer = example_probe(2000, 300);
  newer.values.erase(newer.values.begin());  // without the clock
  Probe disturbed = example_probe(3000, 100);
  for (ProbeValue& value : disturbed.values) {
    value.steady = false;
  }
  store_probe(store, newer);
  store_probe(store, example_probe(1000, 400));
  store_probe(store, disturbed);
  const MeasuredRates rates = store.measured_rates(example_device());
  EXPECT_EQ(rates.of(ProbeQuantity::copy_gbps), 300);
  EXPECT_EQ(rates.of(ProbeQuantity::sm_clock_mhz), 1500.5);
  EXPECT_FALSE(rates.of(ProbeQuantity::read_gbps));
  EXPECT_EQ(rates.measured_unix_ms, 2000);
  DeviceRow other = example_device();
  other.name += " Ti";
  EXPECT_TRUE(store.measured_rates(other).empty());
}

TEST_F(StoreProbesTest, HalfAProbeIsNotStored) {
  Store store(mine_, OpenMode::create);
  Probe probe = example_probe(1000);
  probe.values.push_back(probe.values.front());  // twice the same
  const std::int64_t device = store.device_id(example_device());
  const std::int64_t toolkit = store.toolkit_id(example_toolkit());
  EXPECT_NE(store_error([&] { store.add_probe(probe, device, toolkit); }), "");
  EXPECT_TRUE(store.probes(nullptr).empty());
  EXPECT_EQ(count(mine_, "probe_values"), 0);
}

TEST_F(StoreProbesTest, MergeBringsEachOnce) {
  Store mine(mine_, OpenMode::create);
  store_probe(mine, example_probe(500));
  {
    Store other(other_, OpenMode::create);
    store_probe(other, example_probe(1000));
  }
  const MergeCounts first = merge_database(other_, mine);
  EXPECT_EQ(first.probes, 1);
  EXPECT_TRUE(first.changed());
  EXPECT_EQ(mine.probes(nullptr).size(), 2U);
  EXPECT_EQ(mine.probes(nullptr)[0].probe, probes_in(other_)[0].probe);
  const MergeCounts again = merge_database(other_, mine);
  EXPECT_EQ(again.probes, 0);
  EXPECT_EQ(again.probes_known, 1);
  EXPECT_FALSE(again.changed());
  EXPECT_EQ(count(mine_, "imports"), 1);
  expect_sound(mine_);
}

TEST_F(StoreProbesTest, MergeRefusesWhatCouldNotBeReadLater) {
  {
    Store other(other_, OpenMode::create);
    store_probe(other, example_probe(1000));
  }
  for (const char* damage : {"UPDATE probes SET left_out = '[[7]]'",
                             "UPDATE probe_values SET quantity = 'charm' WHERE quantity = 'copy_gbps'"}) {
    SQLite::Database(other_.string(), SQLite::OPEN_READWRITE).exec(damage);
    Store mine(mine_, OpenMode::create);
    EXPECT_NE(store_error([&] { (void)merge_database(other_, mine); }), "") << damage;
    EXPECT_TRUE(mine.probes(nullptr).empty());
    SQLite::Database(other_.string(), SQLite::OPEN_READWRITE).exec("UPDATE probes SET left_out = '[]'");
  }
}

TEST_F(StoreProbesTest, ADatabaseWithAProbeIsInUse) {
  {
    Store store(mine_, OpenMode::create);
    store_probe(store, example_probe(1000));
  }
  remove_if_unused(mine_);
  EXPECT_TRUE(std::filesystem::exists(mine_));
  Store(other_, OpenMode::create);
  remove_if_unused(other_);
  EXPECT_FALSE(std::filesystem::exists(other_));
}

}  // namespace
}  // namespace pascaline::testing
