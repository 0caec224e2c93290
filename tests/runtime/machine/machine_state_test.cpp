#include "runtime/machine/machine_state.hpp"

#include <gtest/gtest.h>

#include "tests/db/fixtures.hpp"
#include "tests/runtime/machine/small_file.hpp"

namespace pascaline::testing {
namespace {

class MachineState : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& line) const { put_file(folder_ / file, line); }
  [[nodiscard]] const std::filesystem::path& root() const { return folder_.path(); }

  TemporaryFolder folder_;
};

TEST_F(MachineState, AFolderWithoutAnythingTellsNothing) {
  EXPECT_FALSE(is_laptop(root()));
  EXPECT_FALSE(on_battery(root()));
  EXPECT_FALSE(lid_closed(root()));
  EXPECT_FALSE(processor_temperature(root()));
  EXPECT_FALSE(on_battery(root() / "none"));
}

TEST_F(MachineState, ALaptopIsKnownByItsCaseAndElseByItsBattery) {
  put("sys/class/power_supply/hidpp_battery_0/type", "Battery");
  put("sys/class/power_supply/hidpp_battery_0/scope", "Device");
  EXPECT_FALSE(is_laptop(root())) << "the battery of a mouse";
  put("sys/class/power_supply/BAT0/type", "Battery");
  EXPECT_TRUE(is_laptop(root()));
  put("sys/class/dmi/id/chassis_type", "3");
  EXPECT_FALSE(is_laptop(root())) << "a desktop with an uninterruptible supply";
  put("sys/class/dmi/id/chassis_type", "10");
  EXPECT_TRUE(is_laptop(root()));
  put("sys/class/dmi/id/chassis_type", "1");
  EXPECT_TRUE(is_laptop(root())) << "'other' says nothing, the battery does";
}

TEST_F(MachineState, ItIsOnItsBatteryWhenNoSupplyIsOnline) {
  put("sys/class/power_supply/AC/type", "Mains");
  put("sys/class/power_supply/AC/online", "1");
  EXPECT_EQ(on_battery(root()), false);
  put("sys/class/power_supply/AC/online", "0");
  EXPECT_EQ(on_battery(root()), true);
  put("sys/class/power_supply/ucsi-source/type", "USB");
  put("sys/class/power_supply/ucsi-source/online", "1");
  EXPECT_EQ(on_battery(root()), false) << "charged by USB-C";
}

TEST_F(MachineState, WithoutASupplyTheBatterySaysThatItDischarges) {
  put("sys/class/power_supply/ucsi-source/type", "USB");
  put("sys/class/power_supply/ucsi-source/online", "0");
  EXPECT_FALSE(on_battery(root()));
  put("sys/class/power_supply/BAT0/type", "Battery");
  put("sys/class/power_supply/BAT0/status", "Full");
  EXPECT_FALSE(on_battery(root()));
  put("sys/class/power_supply/BAT0/status", "Discharging");
  EXPECT_EQ(on_battery(root()), true);
}

TEST_F(MachineState, NonsenseOfASupplyIsNotBelieved) {
  put("sys/class/power_supply/AC/type", "Mains");
  put("sys/class/power_supply/AC/online", "maybe");
  EXPECT_FALSE(on_battery(root()));
  std::filesystem::create_directories(root() / "sys/class/power_supply/AC2/type");
  EXPECT_FALSE(on_battery(root()));
}

TEST_F(MachineState, TheLidTells) {
  put("proc/acpi/button/lid/LID0/state", "state:      open");
  EXPECT_EQ(lid_closed(root()), false);
  put("proc/acpi/button/lid/LID0/state", "state:      closed");
  EXPECT_EQ(lid_closed(root()), true);
  put("proc/acpi/button/lid/LID0/state", "state:      unsupported");
  EXPECT_FALSE(lid_closed(root()));
}

TEST_F(MachineState, TheProcessorsPackageIsReadWithItsCriticalTemperature) {
  put("sys/class/thermal/thermal_zone0/type", "acpitz");
  put("sys/class/thermal/thermal_zone0/temp", "99000");
  EXPECT_FALSE(processor_temperature(root()));
  put("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp");
  put("sys/class/thermal/thermal_zone1/temp", "61000");
  ASSERT_TRUE(processor_temperature(root()));
  EXPECT_EQ(processor_temperature(root())->temperature_c, 61);
  EXPECT_FALSE(processor_temperature(root())->critical_c);
  put("sys/class/thermal/thermal_zone1/trip_point_1_type", "critical");
  put("sys/class/thermal/thermal_zone1/trip_point_1_temp", "105000");
  EXPECT_EQ(processor_temperature(root())->critical_c, 105);

  put("sys/class/hwmon/hwmon3/name", "coretemp");
  put("sys/class/hwmon/hwmon3/temp2_label", "Core 0");
  put("sys/class/hwmon/hwmon3/temp2_input", "90000");
  EXPECT_EQ(processor_temperature(root())->temperature_c, 61) << "a core is not the package";
  put("sys/class/hwmon/hwmon3/temp1_label", "Package id 0");
  put("sys/class/hwmon/hwmon3/temp1_input", "72500");
  put("sys/class/hwmon/hwmon3/temp1_crit", "100000");
  EXPECT_EQ(processor_temperature(root())->temperature_c, 72.5);
  EXPECT_EQ(processor_temperature(root())->critical_c, 100);
}

TEST_F(MachineState, OfSeveralPackagesTheOneNearestToItsLimitCountsAndNonsenseDoesNot) {
  for (const auto& [chip, temperature, critical] : {std::tuple("hwmon1", "80000", "110000"),
                                                    {"hwmon2", "75000", "90000"},
                                                    {"hwmon3", "-40000", "90000"},
                                                    {"hwmon4", "300000", "90000"},
                                                    {"hwmon5", "hot", "90000"}}) {
    const std::string folder = std::string("sys/class/hwmon/") + chip;
    put(folder + "/name", "coretemp");
    put(folder + "/temp1_label", "Package id 0");
    put(folder + "/temp1_input", temperature);
    put(folder + "/temp1_crit", critical);
  }
  ASSERT_TRUE(processor_temperature(root()));
  EXPECT_EQ(processor_temperature(root())->temperature_c, 75);
}

}  // namespace
}  // namespace pascaline::testing
