#include "runtime/device/cuda/jit_link.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "runtime/device/cubin_info.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

// Holds more in registers than 40 of them take.
constexpr const char* kManyRegisters = R"(
extern "C" __global__ void k(const float* a, float* out, int n) {
  float held[64];
  for (int i = 0; i < 64; ++i) held[i] = a[threadIdx.x * 64 + i];
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int i = 0; i < 64; ++i) held[i] = held[i] * held[(i + 1) % 64] + held[(i * 5 + 2) % 64];
  for (int i = 0; i < 64; ++i) out[threadIdx.x * 64 + i] = held[i];
})";

class JitLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (jit_link_candidates().empty()) {
      GTEST_SKIP() << "no nvJitLink here; ./scripts/setup.sh --dev brings one";
    }
    PASCALINE_NEED_NVRTC(nvrtc_for("sm_61"));
    library_ = jit_link_candidates().front();
  }

  [[nodiscard]] CompileRequest ptx_request(std::vector<std::string> options = {}) const {
    CompileRequest request = request_for(source_, "k", "sm_61", std::move(options));
    request.kind = BinaryKind::ptx;
    request.translation = {"sm_90", library_, JitLink(library_).version()};
    return request;
  }
  [[nodiscard]] static int registers_of(const std::string& cubin) { return cubin_resources(cubin, "k").registers; }

  std::string library_;
  KernelSource source_ = source_of(kManyRegisters);
};

TEST_F(JitLinkTest, IsFoundByItsVersionOnly) {
  const std::string version = JitLink(library_).version();
  const std::string found = find_jit_link(version);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(JitLink(found).version(), version);
  EXPECT_EQ(find_jit_link("1.0"), "");
  EXPECT_EQ(find_jit_link(""), "") << "of a driver that does not tell its version";
}

TEST_F(JitLinkTest, PtxBecomesCodeOfTheNewerGpu) {
  const Toolchain toolchain = Toolchain::find("sm_61");
  const CompileResult result = toolchain.compile(ptx_request());
  ASSERT_TRUE(result.ok) << result.reason;
  EXPECT_EQ(result.binary.target, "compute_61");
  EXPECT_NE(result.binary.code.find(".target sm_61"), std::string::npos);
  ASSERT_TRUE(result.binary.translated.starts_with("\177ELF"));
  EXPECT_EQ(cubin_kernels(result.binary.translated), std::vector<std::string>{"k"});
  EXPECT_GT(registers_of(result.binary.translated), 64);
  CompileRequest untranslated = ptx_request();
  untranslated.translation = {};
  EXPECT_EQ(toolchain.compile(untranslated).binary.translated, "");
  EXPECT_NE(toolchain.cache_key(untranslated), toolchain.cache_key(ptx_request()));
  CompileRequest newer = ptx_request();
  newer.translation.version = "99.0";
  EXPECT_NE(toolchain.cache_key(newer), toolchain.cache_key(ptx_request())) << "another version translates otherwise";
  CompileRequest elsewhere = ptx_request();
  elsewhere.translation.library = "/elsewhere/libnvJitLink.so";
  EXPECT_EQ(toolchain.cache_key(elsewhere), toolchain.cache_key(ptx_request())) << "wherever it lies";
}

TEST_F(JitLinkTest, ACapOnRegistersHolds) {
  const CompileResult result = Toolchain::find("sm_61").compile(ptx_request({"--maxrregcount=40"}));
  ASSERT_TRUE(result.ok) << result.reason;
  ASSERT_FALSE(result.binary.translated.empty());
  EXPECT_LE(registers_of(result.binary.translated), 40);
}

TEST_F(JitLinkTest, TheCacheKeepsIt) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  const Toolchain toolchain = Toolchain::find("sm_61");
  const CompileResult first = cache.get(toolchain, ptx_request());
  const CompileResult again = cache.get(toolchain, ptx_request());
  ASSERT_TRUE(first.ok);
  EXPECT_TRUE(again.binary.from_cache);
  EXPECT_FALSE(again.binary.translated.empty());
  EXPECT_EQ(again.binary.translated, first.binary.translated);
}

TEST_F(JitLinkTest, WhatCannotBeTranslatedIsLeftToTheDriver) {
  const JitLink library(library_);
  EXPECT_EQ(library.cubin("this is no PTX", "sm_90", 0), "");
  CompileRequest request = ptx_request();
  request.translation.architecture = "sm_1";
  const CompileResult unknown = Toolchain::find("sm_61").compile(request);
  EXPECT_TRUE(unknown.ok);
  EXPECT_EQ(unknown.binary.translated, "");
  const TemporaryFolder folder;
  request.translation = {"sm_90", folder.write("libnvJitLink.so.12", "no library").string(), "12.0"};
  const CompileResult broken = Toolchain::find("sm_61").compile(request);
  EXPECT_TRUE(broken.ok);
  EXPECT_EQ(broken.binary.translated, "");
  EXPECT_THROW(JitLink(request.translation.library), Error);
}

}  // namespace
}  // namespace pascaline::testing
