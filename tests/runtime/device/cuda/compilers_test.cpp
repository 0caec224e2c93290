#include "runtime/device/compilers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "tests/runtime/device/cuda/nvrtc_here.hpp"

namespace pascaline::testing {
namespace {

const CompileTarget kPascal{"sm_61", BinaryKind::cubin, {}};
const CompileTarget kPascalPtx{"sm_61", BinaryKind::ptx, {}};

std::vector<std::string> versions_of(const CompilerChoice& choice) {
  std::vector<std::string> versions;
  for (const CompilerInfo& compiler : choice.found) {
    EXPECT_EQ(compiler.compiler, "nvrtc");
    versions.push_back(compiler.version);
  }
  return versions;
}

std::string refusal(const std::string& wish, const CompileTarget& target = kPascal, const std::string& driver = {}) {
  try {
    (void)find_compilers(target, driver, wish);
  } catch (const NvrtcError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool any_has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

/// Skips where there are not both.
class TwoNvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::set<std::string> here;
    for (const NvrtcInfo& info : find_nvrtc()) {
      if (compiles_for(info, "sm_61")) {
        here.insert(info.version);
      }
    }
    if (!here.contains("11.8") || !here.contains("12.9")) {
      GTEST_SKIP() << "NVRTC 11.8 and 12.9 are not both here; ./scripts/setup.sh --nvrtc-12.9 --nvrtc-11.8 brings them";
    }
  }
};

TEST(CompilerWishTest, AllAndListsOfVersionsAreChoices) {
  for (const char* wish : {"all", "11.8,12.9", "11,12"}) {
    EXPECT_TRUE(asks_for_compilers(wish)) << wish;
    EXPECT_TRUE(is_compiler_wish(wish)) << wish;
  }
  for (const char* wish : {"", "11.8", "/usr/lib", "all,11.8", "11.8,/usr/lib", "11.8,", ","}) {
    EXPECT_FALSE(asks_for_compilers(wish)) << wish;
  }
  EXPECT_TRUE(is_compiler_wish("11.8"));
  for (const char* wish : {"", "/usr/lib", "11.8,/usr/lib", "11.8,", "all,11.8"}) {
    EXPECT_FALSE(is_compiler_wish(wish)) << wish;
  }
}

// NVIDIA, "CUDA Compatibility": machine code within a major version, PTX no newer than the driver.
TEST(DriverRuleTest, CodeOfANewerMajorVersionAndNewerPtxAreRefused) {
  EXPECT_EQ(why_driver_refuses("12.9", BinaryKind::cubin, "535.54.03 (CUDA 12.2)"), "");
  EXPECT_NE(why_driver_refuses("12.9", BinaryKind::ptx, "535.54.03 (CUDA 12.2)"), "");
  EXPECT_EQ(why_driver_refuses("12.2", BinaryKind::ptx, "535.54.03 (CUDA 12.2)"), "");
  EXPECT_EQ(why_driver_refuses("11.8", BinaryKind::ptx, "12.2"), "");
  EXPECT_NE(why_driver_refuses("12.0", BinaryKind::cubin, "520.61 (CUDA 11.8)"), "");
  EXPECT_EQ(why_driver_refuses("11.8", BinaryKind::cubin, "450.51 (CUDA 11.0)"), "");
  EXPECT_EQ(why_driver_refuses("12.9", BinaryKind::cubin, ""), "") << "a driver that is not known refuses nothing";
  EXPECT_NE(why_driver_refuses("12.9", BinaryKind::ptx, "1 (CUDA 12.2)").find("CUDA 12.2 and older"),
            std::string::npos);
}

TEST_F(TwoNvrtcTest, AllAreFoundNewestFirstAndEachVersionOnce) {
  const CompilerChoice choice = find_compilers(kPascal, {}, "all");
  const std::vector<std::string> versions = versions_of(choice);
  EXPECT_GE(versions.size(), 2U);
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end(),
                             [](const std::string& a, const std::string& b) { return compare_versions(a, b) > 0; }));
  EXPECT_EQ(std::set<std::string>(versions.begin(), versions.end()).size(), versions.size());
  for (const CompilerInfo& compiler : choice.found) {
    const Toolchain toolchain = Toolchain::open("sm_61", compiler.path);
    EXPECT_EQ(toolchain.version(), compiler.version);
    EXPECT_EQ(toolchain.compiler(), compiler.compiler);
  }
  EXPECT_EQ(compilers_at_hand(kPascal, {}, ""), choice.found);
  EXPECT_EQ(compilers_at_hand(kPascal, {}, "11.8").size(), 1U);
}

TEST_F(TwoNvrtcTest, OneThatTheDriverIsTooOldForIsLeftOutWithAReason) {
  const CompilerChoice ptx = find_compilers(kPascalPtx, "535.54.03 (CUDA 12.2)", "11.8,12.9");
  EXPECT_EQ(versions_of(ptx), std::vector<std::string>{"11.8"});
  ASSERT_EQ(ptx.left_out.size(), 1U);
  EXPECT_NE(ptx.left_out[0].find("NVRTC 12.9 is left out: this driver reads PTX of CUDA 12.2 and older"),
            std::string::npos)
      << ptx.left_out[0];
  EXPECT_EQ(versions_of(find_compilers(kPascal, "535.54.03 (CUDA 12.2)", "11.8,12.9")),
            (std::vector<std::string>{"12.9", "11.8"}));
  EXPECT_EQ(versions_of(find_compilers(kPascalPtx, "535.54.03 (CUDA 12.2)", "")), std::vector<std::string>{"11.8"})
      << "where any will do, one that the driver takes";
  EXPECT_EQ(versions_of(find_compilers(kPascalPtx, "535.54.03 (CUDA 12.2)", "12.9")), std::vector<std::string>{"12.9"})
      << "the user's own choice";
  EXPECT_NE(refusal("12.9,12.9", kPascalPtx, "11.0").find("no NVRTC can be used"), std::string::npos);
  EXPECT_FALSE(compilers_at_hand(kPascalPtx, "1.0", "").empty()) << "the usual one is tried all the same";
}

TEST_F(TwoNvrtcTest, AListNamesWhatCountsAndEachOnce) {
  EXPECT_EQ(versions_of(find_compilers(kPascal, {}, "11.8,12.9")), (std::vector<std::string>{"12.9", "11.8"}));
  const CompilerChoice twice = find_compilers(kPascal, {}, "11.8,12.9,11.8,11");
  EXPECT_EQ(versions_of(twice), (std::vector<std::string>{"12.9", "11.8"}));
  EXPECT_TRUE(any_has(twice.left_out, "NVRTC 11.8 is named twice"));
}

TEST_F(TwoNvrtcTest, AVersionThatIsNotHereOrLacksTheTargetIsAFaultUnlessItWasHereOnce) {
  EXPECT_NE(refusal("11.8,9.9").find("no NVRTC that is '9.9' compiles for sm_61"), std::string::npos);
  EXPECT_NE(refusal("11.8,12.9", {"sm_120", BinaryKind::cubin, {}}).find("'11.8' compiles for sm_120"),
            std::string::npos);
  EXPECT_NE(refusal("all", {"sm_13", BinaryKind::cubin, {}}).find("no NVRTC compiles for sm_13"), std::string::npos);
  const CompilerChoice left = find_compilers(kPascal, {}, "11.8,9.9", MissingCompiler::left_out);
  EXPECT_EQ(versions_of(left), std::vector<std::string>{"11.8"});
  EXPECT_TRUE(any_has(left.left_out, "NVRTC 9.9 is not here any more"));
  EXPECT_THROW((void)find_compilers(kPascal, {}, "9.8,9.9", MissingCompiler::left_out), NvrtcError);
}

}  // namespace
}  // namespace pascaline::testing
