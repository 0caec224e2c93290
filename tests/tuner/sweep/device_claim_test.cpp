#include "tuner/sweep/device_claim.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

TEST(DeviceClaimTest, TheSecondSeesWhoTheFirstIs) {
  const TemporaryFolder folder;
  const auto place = folder / "claims";
  std::optional<DeviceClaim> first(std::in_place, place, "GPU-1", "/data/tuned.db");
  EXPECT_EQ(first->other(), "");
  const DeviceClaim second(place, "GPU-1", "/data/other.db");
  EXPECT_EQ(second.other(), "process " + std::to_string(::getpid()) + ", into /data/tuned.db");
  EXPECT_EQ(DeviceClaim(place, "GPU-2", "/data/other.db").other(), "") << "another card";
  const DeviceClaim moved(std::move(*first));
  first.reset();
  EXPECT_NE(DeviceClaim(place, "GPU-1", "x.db").other(), "") << "the claim moved";
}

TEST(DeviceClaimTest, AClaimThatWasGivenUpIsFree) {
  const TemporaryFolder folder;
  { const DeviceClaim first(folder.path(), "GPU-1", "a name that is longer than the next one.db"); }
  const DeviceClaim second(folder.path(), "GPU-1", "b.db");
  EXPECT_EQ(second.other(), "");
  EXPECT_EQ(DeviceClaim(folder.path(), "GPU-1", "c.db").other(),
            "process " + std::to_string(::getpid()) + ", into b.db");
}

TEST(DeviceClaimTest, AFolderThatCannotBeMadeClaimsNothing) {
  EXPECT_EQ(DeviceClaim("/proc/nowhere", "GPU-1", "a.db").other(), "");
}

}  // namespace
}  // namespace pascaline::testing
