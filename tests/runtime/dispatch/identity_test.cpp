#include "runtime/dispatch/identity.hpp"

#include <gtest/gtest.h>

namespace pascaline::testing {
namespace {

DeviceInfo card(const std::string& architecture) {
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.name = "NVIDIA GeForce GTX 1080";
  info.architecture = architecture;
  info.driver_version = "12.2";
  info.memory_bytes = 8;
  info.limits.sm_count = 20;
  return info;
}

TEST(IdentityTest, ADeviceIsKeptUnderItsKindNameCapabilityAndSize) {
  const DeviceRow row = device_row(card("sm_61"));
  EXPECT_EQ(row.kind, "cuda");
  EXPECT_EQ(row.name, "NVIDIA GeForce GTX 1080");
  EXPECT_EQ(row.compute_capability, "6.1");
  EXPECT_EQ(row.sm_count, 20);
  EXPECT_EQ(row.memory_bytes, 8U);
  EXPECT_NE(row.limits_json.find(R"("sm_count":20)"), std::string::npos) << row.limits_json;
  EXPECT_EQ(device_row(card("sm_90")).compute_capability, "9.0");
  EXPECT_EQ(device_row(card("sm_120")).compute_capability, "12.0");
  EXPECT_EQ(device_row(card("sm_90a")).compute_capability, "9.0a");
}

TEST(IdentityTest, TheHostHasNoComputeCapability) {
  DeviceInfo info = card("host");
  info.kind = DeviceKind::emulator;
  EXPECT_EQ(device_row(info).kind, "host");
  EXPECT_EQ(device_row(info).compute_capability, "");
}

TEST(IdentityTest, MemoryAndLimitsAreNotPartOfIt) {
  const DeviceRow row = device_row(card("sm_61"));
  DeviceRow other = row;
  other.memory_bytes = 11;
  other.limits_json = "{}";
  EXPECT_TRUE(same_identity(row, other));
  other.sm_count = 28;
  EXPECT_FALSE(same_identity(row, other));
}

TEST(IdentityTest, TheTargetSaysWhatTheCodeIs) {
  const Toolchain toolchain = Toolchain::find("host");
  const DeviceInfo info = card("sm_90");
  EXPECT_EQ(toolkit_row(toolchain, {"sm_90", BinaryKind::cubin, {}}, info).target, "sm_90");
  EXPECT_EQ(toolkit_row(toolchain, {"sm_61", BinaryKind::ptx, {}}, info).target, "compute_61");
  const ToolkitRow row = toolkit_row(toolchain, {"host", BinaryKind::host_object, {}}, info);
  EXPECT_EQ(row.target, "host");
  EXPECT_EQ(row.compiler, toolchain.compiler());
  EXPECT_EQ(row.version, toolchain.version());
  EXPECT_EQ(row.driver_version, "12.2");
}

}  // namespace
}  // namespace pascaline::testing
