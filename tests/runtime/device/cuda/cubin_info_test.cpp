#include "runtime/device/cubin_info.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "core/error.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

// Kernels that need registers, a stack, shared and constant memory in all mixtures.
constexpr const char* kSource = R"(
#ifndef WORK
#define WORK 8
#endif
__constant__ float coefficients[13];
extern "C" __global__ void registers(const float* a, float* out, int n) {
  float held[WORK];
  for (int i = 0; i < WORK; ++i) held[i] = a[threadIdx.x * WORK + i];
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int i = 0; i < WORK; ++i) held[i] = held[i] * held[(i + 1) % WORK] + held[(i * 5 + 2) % WORK];
  for (int i = 0; i < WORK; ++i) out[threadIdx.x * WORK + i] = held[i];
}
extern "C" __global__ void indexed(const int* a, float* out) {
  float held[WORK];
  for (int i = 0; i < WORK; ++i) held[i] = a[i] * 0.5f;
  for (int i = 0; i < WORK; ++i) held[a[threadIdx.x + i] % WORK] += 1.0f;
  out[threadIdx.x] = held[a[threadIdx.x] % WORK];
}
extern "C" __global__ void tile(const float* a, float* out) {
  __shared__ float row[32 * WORK];
  row[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x ^ 1] * coefficients[threadIdx.x % 13];
}
__device__ __noinline__ float callee(float x, int n) { return n > 0 ? sinf(x) * callee(x, n - 1) : x; }
extern "C" __global__ void calls(float* out, int n) { out[threadIdx.x] = callee(out[threadIdx.x], n); }
)";

struct Reported {
  int registers = -1, frame = -1, spill_stores = -1, spill_loads = -1, shared = 0, constant = 0;
};

int number_in(const std::string& text, const std::string& pattern, int missing) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? std::stoi(match.str(1)) : missing;
}

// What ptxas itself says of the kernel in the log of --ptxas-options=-v.
Reported reported_for(const std::string& log, const std::string& function) {
  const std::size_t begin = log.find("Compiling entry function '" + function + "'");
  std::string part = log.substr(std::min(begin, log.size()));
  part = part.substr(0, part.find("Compiling entry function", 10));
  Reported reported;
  const std::size_t properties = part.find("Function properties for " + function + "\n");
  const std::string own = part.substr(std::min(properties, part.size()));
  reported.frame = number_in(own, "([0-9]+) bytes stack frame", -1);
  reported.spill_stores = number_in(own, "([0-9]+) bytes spill stores", -1);
  reported.spill_loads = number_in(own, "([0-9]+) bytes spill loads", -1);
  reported.registers = number_in(part, "Used ([0-9]+) registers", -1);
  reported.shared = number_in(part, "([0-9]+) bytes smem", 0);
  const std::string module = log.substr(0, log.find("Compiling entry function"));
  for (int bank = 0; bank < 6; ++bank) {
    const std::string pattern = fmt::format("([0-9]+) bytes cmem\\[{}\\]", bank);
    reported.constant += number_in(part, pattern, 0) + number_in(module, pattern, 0);
  }
  return reported;
}

void expect_as_reported(const Toolchain& toolchain, const std::string& function, const std::string& architecture,
                        int work, int cap) {
  const KernelSource source = source_of(kSource);
  CompileRequest request = request_for(source, function, architecture, {"--ptxas-options=-v"});
  request.defines = {fmt::format("WORK={}", work)};
  if (cap > 0) {
    request.options.push_back(fmt::format("--maxrregcount={}", cap));
  }
  const CompileResult result = toolchain.compile(request);
  ASSERT_TRUE(result.ok) << result.log;
  SCOPED_TRACE(fmt::format("NVRTC {} {} {} WORK={} cap={}\n{}", toolchain.version(), architecture, function, work, cap,
                           result.binary.log));
  const Reported reported = reported_for(result.binary.log, function);
  const Resources& read = result.binary.resources;
  EXPECT_EQ(read.registers, reported.registers);
  EXPECT_EQ(read.static_shared_bytes, reported.shared);
  if (reported.constant > 0) {  // ptxas 13 no longer tells
    EXPECT_EQ(read.constant_bytes, reported.constant);
  }
  EXPECT_EQ(result.binary.max_registers, cap);
  EXPECT_GT(read.instructions, 4);
  if (function == "calls") {
    return;  // ptxas tells the frames of caller and callee apart; the binary has the sum of both
  }
  EXPECT_EQ(read.local_bytes, reported.frame);
  EXPECT_EQ(read.local_stores > 0, reported.frame > 0);
  EXPECT_EQ(reported.spill_stores > 0, function == "registers" && work == 48 && cap == 32);
  if (reported.spill_stores > 0) {
    EXPECT_GE(read.local_stores * 16, reported.spill_stores);
  }
  if (reported.spill_loads > 0) {
    EXPECT_GE(read.local_loads * 16, reported.spill_loads);
  }
}

class EveryArchitecture : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryArchitecture, ResourcesAreWhatPtxasReports) {
  const std::string architecture = GetParam();
  const std::vector<NvrtcInfo> libraries = nvrtc_for(architecture);
  PASCALINE_NEED_NVRTC(libraries);
  for (const NvrtcInfo& info : libraries) {
    const Toolchain toolchain = Toolchain::find(architecture, info.path);
    for (const int work : {4, 48}) {
      for (const int cap : {0, 32}) {
        expect_as_reported(toolchain, "registers", architecture, work, cap);
      }
      expect_as_reported(toolchain, "indexed", architecture, work, 0);
      expect_as_reported(toolchain, "tile", architecture, work, 0);
    }
    expect_as_reported(toolchain, "calls", architecture, 4, 0);
  }
}

// Every operand form of FFMA, as many as the source has multiply-adds.
TEST_P(EveryArchitecture, CountsFusedMultiplyAddsOfEveryForm) {
  const std::string architecture = GetParam();
  const std::vector<NvrtcInfo> libraries = nvrtc_for(architecture);
  PASCALINE_NEED_NVRTC(libraries);
  const KernelSource source = source_of(R"(
extern "C" __global__ void empty() {}
extern "C" __global__ void none(float* a) { a[threadIdx.x] = a[threadIdx.x] + a[threadIdx.x + 32]; }
extern "C" __global__ void forms(float* a, float p) {
  float x = a[threadIdx.x], y = a[threadIdx.x + 32], z = a[threadIdx.x + 64];
  a[threadIdx.x] = fmaf(x, y, z);
  a[threadIdx.x + 32] = fmaf(x, p, y);
  a[threadIdx.x + 64] = fmaf(x, y, p);
  a[threadIdx.x + 96] = fmaf(x, 2.5f, y);
  a[threadIdx.x + 128] = fmaf(x, -2.5f, z);
  a[threadIdx.x + 160] = fmaf(-x, y, -z);
  a[threadIdx.x + 192] = __saturatef(fmaf(y, y, z));
  a[threadIdx.x + 224] = fmaf(z, 1.2345678f, y);
  a[threadIdx.x + 256] = __fmaf_rz(x, y, z);
})");
  for (const NvrtcInfo& info : libraries) {
    SCOPED_TRACE(architecture + " with NVRTC " + info.version);
    const Toolchain toolchain = Toolchain::find(architecture, info.path);
    const auto resources = [&](const char* function) {
      const CompileResult result = toolchain.compile(request_for(source, function, architecture));
      EXPECT_TRUE(result.ok) << result.reason;
      return result.binary.resources;
    };
    EXPECT_LE(resources("empty").instructions, 3);
    EXPECT_GE(resources("empty").instructions, 1);
    EXPECT_EQ(resources("none").ffma, 0);
    EXPECT_EQ(resources("forms").ffma, 9);
    EXPECT_EQ(resources("forms").local_loads, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cubin, EveryArchitecture, ::testing::Values("sm_61", "sm_75", "sm_90"),
                         [](const auto& parameter) { return std::string(parameter.param); });

std::string sample_cubin() {
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  if (libraries.empty()) {
    return {};
  }
  const KernelSource source = source_of(kSource);
  const CompileResult result = Toolchain::find("sm_61", libraries.back().path).compile(request_for(source, "indexed"));
  return result.binary.code;
}

// Whatever the bytes are, the reader either answers or throws Error.
void read_all(const std::string& bytes) {
  try {
    for (const std::string& kernel : cubin_kernels(bytes)) {
      (void)cubin_resources(bytes, kernel);
    }
    (void)cubin_resources(bytes, "indexed");
  } catch (const Error&) {
  }
}

TEST(CubinInfo, ListsKernelsButNotDeviceFunctions) {
  const std::string cubin = sample_cubin();
  if (cubin.empty()) GTEST_SKIP() << "no NVRTC for sm_61";
  std::vector<std::string> kernels = cubin_kernels(cubin);
  std::sort(kernels.begin(), kernels.end());
  EXPECT_EQ(kernels, (std::vector<std::string>{"calls", "indexed", "registers", "tile"}));
  EXPECT_THROW((void)cubin_resources(cubin, "nosuch"), Error);
}

TEST(CubinInfo, RefusesWhatIsNoCubin) {
  for (const std::string& bytes : {std::string(),
                                   std::string("\x7f"
                                               "ELF"),
                                   std::string(4096, '\0'), read_file("/proc/self/exe")}) {
    EXPECT_THROW((void)cubin_kernels(bytes), Error);
    EXPECT_THROW((void)cubin_resources(bytes, "k"), Error);
  }
}

TEST(CubinInfo, EveryTruncationIsSurvived) {
  const std::string cubin = sample_cubin();
  if (cubin.empty()) GTEST_SKIP() << "no NVRTC for sm_61";
  for (std::size_t length = 0; length < cubin.size(); ++length) {
    read_all(cubin.substr(0, length));
  }
}

TEST(CubinInfo, FlippedBytesAreSurvived) {
  const std::string cubin = sample_cubin();
  if (cubin.empty()) GTEST_SKIP() << "no NVRTC for sm_61";
  std::mt19937 random(61);
  const std::size_t table = *reinterpret_cast<const std::uint64_t*>(cubin.data() + 40);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = cubin;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      // Half of them in the headers, where a wrong byte does most.
      const std::size_t begin = random() % 2 == 0 ? 0 : table;
      const std::size_t length = begin == 0 ? (random() % 2 == 0 ? 64 : cubin.size()) : cubin.size() - table;
      damaged[begin + random() % length] = static_cast<char>(random());
    }
    read_all(damaged);
  }
}

}  // namespace
}  // namespace pascaline::testing
