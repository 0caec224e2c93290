#include "runtime/device/compile.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "runtime/device/cuda/nvrtc.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

constexpr const char* kScale = R"(#ifndef FACTOR
#define FACTOR 2
#endif
extern "C" __global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
)";

std::string toolchain_refusal(const std::string& architecture, const std::string& nvrtc) {
  try {
    (void)Toolchain::find(architecture, nvrtc);
  } catch (const NvrtcError& error) {
    return error.what();
  }
  return {};
}

TEST(Nvrtc, FoundLibrariesAreWholeAndNewestFirst) {
  const std::vector<NvrtcInfo> found = find_nvrtc();
  PASCALINE_NEED_NVRTC(found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_FALSE(found[i].architectures.empty());
    EXPECT_EQ(found[i].path.find(".alt."), std::string::npos);
    for (std::size_t j = i + 1; j < found.size(); ++j) {
      EXPECT_GE(std::stod(found[i].version), std::stod(found[j].version));
      EXPECT_NE(std::filesystem::canonical(found[i].path), std::filesystem::canonical(found[j].path));
    }
  }
}

TEST(Nvrtc, GarbageIsSkippedWhenSearchingAndNamedWhenChosen) {
  const TemporaryFolder folder;
  folder.write("libnvrtc.so.12", "this is no library");
  folder.write("deep/down/libnvrtc.so.11.2", "");
  const std::size_t others = find_nvrtc().size();
  const ScopedVariable variable("PASCALINE_NVRTC", folder.path().c_str());
  EXPECT_EQ(find_nvrtc().size(), others);
  const std::string message = toolchain_refusal("sm_61", {});
  EXPECT_NE(message.find(folder.path().string()), std::string::npos) << message;
  EXPECT_NE(message.find("none was found"), std::string::npos) << message;
  EXPECT_NE(message.find("setup.sh"), std::string::npos) << message;
}

TEST(Nvrtc, AVersionIsAVersionAndNoFolderOfThatName) {
  for (const char* version : {"12.9", "11", "11.8.0", "9"}) {
    EXPECT_TRUE(is_nvrtc_version(version)) << version;
  }
  for (const char* path : {"", ".", "..", "./12.9", "/opt/12.9", "libnvrtc.so.12", "toolkit"}) {
    EXPECT_FALSE(is_nvrtc_version(path)) << path;
  }
}

TEST(Nvrtc, CandidatesAreNamedWithTheirFullPath) {
  const TemporaryFolder folder;
  folder.write("libnvrtc.so.12", "this is no library");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::vector<std::string> named = nvrtc_candidates("libnvrtc.so.12");
  const std::vector<std::string> found = nvrtc_candidates({});
  std::filesystem::current_path(before);
  ASSERT_EQ(named.size(), 1U);
  EXPECT_TRUE(std::filesystem::path(named.front()).is_absolute()) << named.front();
  for (const std::string& candidate : found) {
    EXPECT_EQ(candidate.find(folder.path().string()), std::string::npos) << candidate;
  }
}

// Those of the program's own folders are looked at without being asked for.
TEST(Nvrtc, ToolkitsThatOthersCanChangeAreLeftOut) {
  const TemporaryFolder prefix;
  const std::filesystem::path library = prefix.write("share/pascaline/toolkit/12.9/libnvrtc.so.12", "no library");
  set_installation_prefix(prefix.path());
  const auto is_found = [&] {
    const std::vector<std::string> found = nvrtc_candidates({});
    return std::find(found.begin(), found.end(), library.string()) != found.end();
  };
  EXPECT_TRUE(is_found());
  for (const std::filesystem::path& path : {library, library.parent_path(), library.parent_path().parent_path()}) {
    const std::filesystem::perms before = std::filesystem::status(path).permissions();
    std::filesystem::permissions(path, before | std::filesystem::perms::others_write);
    EXPECT_FALSE(is_found()) << path;
    std::filesystem::permissions(path, before);
    EXPECT_TRUE(is_found());
  }
  set_installation_prefix({});
  EXPECT_FALSE(is_found());
}

TEST(Nvrtc, AnyOtherLibraryIsRefused) {
  const ScopedVariable variable("PASCALINE_NVRTC", "libnosuch.so.1");
  EXPECT_NE(toolchain_refusal("sm_61", {}).find("libnosuch"), std::string::npos);
  EXPECT_NE(toolchain_refusal("sm_61", "/usr/lib/x86_64-linux-gnu/libm.so.6").find("none was found"),
            std::string::npos);
}

TEST(Nvrtc, UnknownArchitectureListsWhatThereIs) {
  const std::string message = toolchain_refusal("sm_13", {});
  for (const NvrtcInfo& info : find_nvrtc()) {
    EXPECT_NE(message.find(info.version + " (" + info.architectures.front() + " to " + info.architectures.back()),
              std::string::npos)
        << message;
  }
  EXPECT_NE(message.find("libnvrtc11.2"), std::string::npos) << message;
}

TEST(Nvrtc, VersionPathAndEnvironmentNarrowTheChoice) {
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  PASCALINE_NEED_NVRTC(libraries);
  EXPECT_EQ(Toolchain::find("sm_61").path(), libraries.front().path);
  for (const NvrtcInfo& info : libraries) {
    EXPECT_EQ(Toolchain::find("sm_61", info.version).version(), info.version);
    EXPECT_EQ(Toolchain::find("sm_61", info.path).version(), info.version);
    EXPECT_EQ(Toolchain::find("sm_61", std::filesystem::path(info.path).parent_path()).version(), info.version);
    const ScopedVariable variable("PASCALINE_NVRTC", info.path.c_str());
    EXPECT_EQ(Toolchain::find("sm_61").version(), info.version);
  }
  EXPECT_NE(toolchain_refusal("sm_61", "1"), "");
  EXPECT_NE(toolchain_refusal("sm_61", "11.88"), "");
}

class EveryNvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
    PASCALINE_NEED_NVRTC(libraries);
    // All of them at once, so that versions beside each other in a process are tested too.
    for (const NvrtcInfo& info : libraries) {
      toolchains_.push_back(Toolchain::find("sm_61", info.path));
    }
  }
  std::vector<Toolchain> toolchains_;
};

TEST_F(EveryNvrtc, NativeCodeAndPtxOfOneSource) {
  const KernelSource source = source_of(kScale);
  for (const Toolchain& toolchain : toolchains_) {
    SCOPED_TRACE(toolchain.version());
    CompileRequest request = request_for(source, "scale", "sm_61", {"--maxrregcount=40"});
    const CompileResult native = toolchain.compile(request);
    request.kind = BinaryKind::ptx;
    const CompileResult ptx = toolchain.compile(request);
    ASSERT_TRUE(native.ok && ptx.ok) << native.reason << ptx.reason;
    EXPECT_EQ(native.binary.target, "sm_61");
    EXPECT_EQ(native.binary.code.substr(1, 3), "ELF");
    EXPECT_EQ(ptx.binary.target, "compute_61");
    EXPECT_NE(ptx.binary.code.find(".target sm_61"), std::string::npos);
    EXPECT_EQ(ptx.binary.code.find('\0'), std::string::npos);
    EXPECT_EQ(ptx.binary.resources.registers, native.binary.resources.registers);
    EXPECT_GT(ptx.binary.resources.registers, 3);
    EXPECT_EQ(ptx.binary.max_registers, 40);
    EXPECT_GT(native.binary.compile_ms, 0);
    EXPECT_FALSE(native.binary.from_cache);
  }
}

TEST_F(EveryNvrtc, RegisterCapIsReadInEverySpelling) {
  const KernelSource source = source_of(kScale);
  const std::vector<std::vector<std::string>> spellings{{"--maxrregcount=48"},
                                                        {"-maxrregcount=48"},
                                                        {"--maxrregcount", "48"},
                                                        {"--maxrregcount=64", "--maxrregcount=48"}};
  for (const auto& options : spellings) {
    const CompileResult result = toolchains_.front().compile(request_for(source, "scale", "sm_61", options));
    if (result.ok) {  // NVRTC itself refuses an option given twice
      EXPECT_EQ(result.binary.max_registers, 48) << options.front();
    }
  }
}

TEST_F(EveryNvrtc, ReasonIsTheFirstErrorWithItsLine) {
  const KernelSource source = source_of("\nextern \"C\" __global__ void k(float* x) {\n  *x = missing;\n  also;\n}\n");
  for (const Toolchain& toolchain : toolchains_) {
    const CompileResult result = toolchain.compile(request_for(source, "k"));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, "test.cu(3): error: identifier \"missing\" is undefined");
    EXPECT_NE(result.log.find("also"), std::string::npos);
  }
}

TEST_F(EveryNvrtc, OtherFailuresAreResultsToo) {
  const KernelSource shared = source_of(
      "extern \"C\" __global__ void k(float* x) { __shared__ float s[20000]; s[threadIdx.x] = *x; __syncthreads(); "
      "*x = s[threadIdx.x ^ 1]; }");
  const KernelSource scale = source_of(kScale);
  const KernelSource fails = source_of("static_assert(FACTOR == 3, \"odd\");\n");
  for (const Toolchain& toolchain : toolchains_) {
    EXPECT_NE(toolchain.compile(request_for(shared, "k")).reason.find("shared data"), std::string::npos);
    EXPECT_NE(toolchain.compile(request_for(scale, "nosuch")).reason.find("scale"), std::string::npos);
    EXPECT_NE(toolchain.compile(request_for(scale, "scale", "sm_61", {"--nosuch"})).reason.find("nosuch"),
              std::string::npos);
    CompileRequest request = request_for(fails, "k");
    request.defines = {"FACTOR=4"};
    EXPECT_NE(toolchain.compile(request).reason.find("odd"), std::string::npos);
    EXPECT_THROW((void)toolchain.compile(request_for(scale, "scale", "host")), NvrtcError);
  }
}

TEST_F(EveryNvrtc, CudaHeadersAreFoundBesideTheLibrary) {
  const KernelSource source = source_of(
      "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* x) { *x = __float2half(__half2float(*x)); }");
  int compiled = 0;
  for (const Toolchain& toolchain : toolchains_) {
    compiled += toolchain.compile(request_for(source, "k")).ok ? 1 : 0;
  }
  if (compiled == 0) {
    GTEST_SKIP() << "no NVRTC here has CUDA's headers beside it";
  }
}

TEST_F(EveryNvrtc, RepeatsGiveTheSameCode) {
  const KernelSource source = source_of(kScale);
  for (const Toolchain& toolchain : toolchains_) {
    const std::string code = toolchain.compile(request_for(source, "scale")).binary.code;
    EXPECT_EQ(code, toolchain.compile(request_for(source, "scale")).binary.code);
    CompileRequest request = request_for(source, "scale");
    request.defines = {"FACTOR=3"};
    EXPECT_NE(code, toolchain.compile(request).binary.code);
  }
}

TEST_F(EveryNvrtc, KeyTellsRequestsApart) {
  const KernelSource source = source_of(kScale);
  const Toolchain& toolchain = toolchains_.front();
  const CompileRequest request = request_for(source, "scale");
  const std::string key = toolchain.cache_key(request);
  std::vector<CompileRequest> others(7, request);
  const KernelSource changed = source_of("// another\n");
  others[0].source = &changed;
  others[1].function = "scala";
  others[2].defines = {"A=1", "B=2"};
  others[3].options = {"A=1", "B=2"};
  others[4].kind = BinaryKind::ptx;
  others[5].architecture = "sm_60";
  others[6].defines = {"A=1 B=2"};
  std::vector<std::string> keys{key};
  for (const CompileRequest& other : others) {
    keys.push_back(toolchain.cache_key(other));
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
  CompileRequest reordered = others[2];
  std::reverse(reordered.defines.begin(), reordered.defines.end());
  EXPECT_EQ(toolchain.cache_key(reordered), toolchain.cache_key(others[2]));
  EXPECT_EQ(toolchain.cache_key(request), key);
  if (toolchains_.size() > 1) {
    EXPECT_NE(toolchains_[1].cache_key(request), key);
  }
}

TEST(CompileTarget, OwnArchitectureIsNativeAndOlderOnesArePtx) {
  DeviceInfo device;
  device.kind = DeviceKind::cuda;
  device.id = "cuda:0";
  device.architecture = "sm_90";
  device.limits = *limits_of_architecture("sm_90");
  EXPECT_EQ(compile_target(device, "").kind, BinaryKind::cubin);
  EXPECT_EQ(compile_target(device, "sm_90").architecture, "sm_90");
  const CompileTarget older = compile_target(device, "sm_61");
  EXPECT_EQ(older.kind, BinaryKind::ptx);
  EXPECT_EQ(older.architecture, "sm_61");
  EXPECT_EQ(older.limits.max_shared_bytes_per_sm, 96 * 1024);
  EXPECT_EQ(older.limits.sm_count, device.limits.sm_count);
  device.architecture = "sm_61";
  EXPECT_THROW((void)compile_target(device, "sm_90"), Error);
  EXPECT_THROW((void)compile_target(device, "sm_6x"), Error);
  EXPECT_THROW((void)compile_target(device, "sm_"), Error);
  device.kind = DeviceKind::emulator;
  device.architecture = "host";
  for (const char* target : {"", "emulator", "host"}) {
    EXPECT_EQ(compile_target(device, target).kind, BinaryKind::host_object) << target;
    EXPECT_EQ(compile_target(device, target).architecture, "host") << target;
  }
}

TEST(OpenDevice, SaysWhichDevicesThereAre) {
  for (const char* id : {"", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0x", "gpu:0", "HOST"}) {
    try {
      (void)open_device(id);
      FAIL() << id;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("emulator"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("cpu"), std::string::npos) << "kernels do not run there";
    }
  }
  EXPECT_THROW((void)open_device("cuda:4096"), CudaError);
  std::string note;
  const std::vector<DeviceInfo> devices = list_devices(&note);
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices.back().id, "emulator");
  EXPECT_EQ(devices.size() == 1, !note.empty());
}

}  // namespace
}  // namespace pascaline::testing
