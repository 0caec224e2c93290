#include "runtime/dispatch/kernel_supply.hpp"

#include <gtest/gtest.h>

#include "runtime/device/cuda/nvrtc.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

/// What makes code for a Pascal card that is described and not there, with both NVRTC libraries.
class PascalSupplyTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  DispatcherOptions options_;
  DeviceInfo card_;

  void SetUp() override {
    bool newer = false;
    bool older = false;
    for (const NvrtcInfo& info : find_nvrtc()) {
      newer = newer || (info.version == "12.9" && compiles_for(info, "sm_61"));
      older = older || (info.version == "11.8" && compiles_for(info, "sm_61"));
    }
    if (!newer || !older) {
      GTEST_SKIP() << "NVRTC 11.8 and 12.9 are not both here; ./scripts/setup.sh --nvrtc-all brings them";
    }
    write_scale_kernel(folder_.path());
    options_.kernels = options_.spaces = folder_.path();
    options_.cache = folder_ / "cache";
    card_.kind = DeviceKind::cuda;
    card_.name = "a Pascal card";
    card_.architecture = "sm_61";
    card_.driver_version = "575.57 (CUDA 12.9)";
    card_.limits = limits_of_architecture("sm_61").value();
  }
  [[nodiscard]] std::vector<std::string> versions() const {
    const KernelSupply supply(card_, options_);
    std::vector<std::string> versions;
    for (const ToolkitRow& toolkit : supply.toolkits()) {
      EXPECT_EQ(toolkit.target, "sm_61");
      EXPECT_EQ(toolkit.driver_version, card_.driver_version);
      versions.push_back(toolkit.version);
    }
    return versions;
  }
  [[nodiscard]] static bool has(const std::vector<std::string>& versions, const std::string& version) {
    return std::find(versions.begin(), versions.end(), version) != versions.end();
  }
};

TEST_F(PascalSupplyTest, EveryCompilerThatTheDriverTakesIsAtHandNewestFirst) {
  EXPECT_TRUE(has(versions(), "12.9"));
  EXPECT_TRUE(has(versions(), "11.8"));
  EXPECT_GE(compare_versions(versions().front(), "12.9"), 0);
  card_.driver_version = "470.82 (CUDA 11.4)";
  EXPECT_FALSE(has(versions(), "12.9"));
  EXPECT_TRUE(has(versions(), "11.8"));
  options_.nvrtc = "12.9";
  EXPECT_EQ(versions(), std::vector<std::string>{"12.9"}) << "the user's own choice";
}

TEST_F(PascalSupplyTest, CodeIsThatOfTheCompilerThatIsAskedForAndKeptApart) {
  const KernelSupply supply(card_, options_);
  const Space space = Space::parse(scale_json(), "scale.json");
  const KernelSource source = KernelSource::load(folder_ / "scale.cu");
  const BoundSpace bound(space, scale_problem(8, 20), card_.limits);
  const CompileRequest request = compile_request(bound, space.general_default(), source, BinaryKind::cubin, "sm_61");
  std::vector<std::string> keys;
  std::vector<std::string> codes;
  for (const ToolkitRow& toolkit : supply.toolkits()) {
    if (toolkit.version != "12.9" && toolkit.version != "11.8") {
      continue;
    }
    keys.push_back(supply.key(request, toolkit));
    const Binary first = supply.code(request, toolkit);
    EXPECT_FALSE(first.from_cache);
    const Binary again = supply.code(request, toolkit);
    EXPECT_TRUE(again.from_cache);
    EXPECT_EQ(first.code, again.code);
    EXPECT_EQ(first.code, Toolchain::find("sm_61", toolkit.version).compile(request).binary.code) << toolkit.version;
    codes.push_back(first.code);
  }
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(codes[0], codes[1]);
}

}  // namespace
}  // namespace pascaline::testing
