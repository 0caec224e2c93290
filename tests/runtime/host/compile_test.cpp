#include <cstdlib>

#include "support.hpp"

namespace pascaline::testing {
namespace {

TEST(HostCompile, AKernelErrorIsAResultThatNamesTheLine) {
  const CompileResult result =
      compile(source_of_text("extern \"C\" __global__ void k(int* out) {\n  extern __shared__ \n int s[];\n  out[0] = "
                             "missing;\n}\n"),
              "k");
  EXPECT_FALSE(result.ok);
  EXPECT_TRUE(result.reason.starts_with("given.cu:4:")) << result.reason;
  EXPECT_NE(result.reason.find("missing"), std::string::npos) << result.reason;
  EXPECT_FALSE(result.log.empty());
}

TEST(HostCompile, AFunctionThatIsNotThereIsAnError) {
  const CompileResult result =
      compile(source_of_text("extern \"C\" __global__ void k(int* out) { *out = 1; }\n"), "other");
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.reason.find("other"), std::string::npos) << result.reason;
}

TEST(HostCompile, MoreStaticSharedMemoryThanABlockMayHaveIsAnError) {
  const CompileResult result = compile(kernel_source("block.cu"), "too_much_shared");
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.reason, "too_much_shared has 52000 bytes of static shared memory, a block may have 49152");
}

TEST(HostCompile, DefinesReachTheKernelAndHeadersAreRewritten) {
  KernelSource source = source_of_text(
      "#include \"../made/up.cuh\"\n#include \"inner/tile.cuh\"\n"
      "extern \"C\" __global__ void k(int* out) { out[threadIdx.x] = SCALE * up() + tile()[0]; }\n");
  source.headers = {
      {"../made/up.cuh", "#pragma once\n__device__ inline int up() { return 2; }\n"},
      {"inner/tile.cuh",
       "#pragma once\n__device__ inline int* tile() { extern __shared__ int t[]; t[0] = 1; return t; }\n"}};
  const CompileResult result = compile(source, "k", false, {"SCALE=20"});
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_EQ(result.binary.log, "");
  const auto device = open_host_device();
  const Buffer out = device->allocate(4);
  run(*device, device->load(result.binary), {{1, 1, 1}, {1, 1, 1}, 4}, out.data());
  EXPECT_EQ(to_host<int>(*device, out)[0], 41);
}

TEST(HostCompile, ACompilerThatIsMissingIsNamed) {
  const HostCompiler& working = compiler();
  const char* chosen = std::getenv("PASCALINE_HOST_CXX");
  const std::string before = chosen != nullptr ? chosen : "";
  ASSERT_EQ(::setenv("PASCALINE_HOST_CXX", "/no/such/compiler", 1), 0);
  EXPECT_THROW(
      {
        try {
          (void)HostCompiler::find();
        } catch (const HostDeviceError& error) {
          EXPECT_NE(std::string(error.what()).find("/no/such/compiler"), std::string::npos) << error.what();
          throw;
        }
      },
      HostDeviceError);
  ::setenv("PASCALINE_HOST_CXX", before.c_str(), 1);
  EXPECT_FALSE(working.version.empty());
}

TEST(HostCompile, TheShimHasAHash) { EXPECT_EQ(host_shim_hash().size(), 32U); }

}  // namespace
}  // namespace pascaline::testing
