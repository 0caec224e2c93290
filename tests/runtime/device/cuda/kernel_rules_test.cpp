#include <gtest/gtest.h>

#include "tests/runtime/device/cuda/support.hpp"

// Rules that `check` (the emulated device) and `compile` (NVRTC) share: each kernel here goes to all compilers.
namespace pascaline::testing {
namespace {

void expect_all_compile(const std::string& text, const std::vector<std::string>& defines = {}, std::int64_t threads = 0,
                        const std::string& function = "k") {
  const KernelSource source = source_of(text);
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, function, defines, threads);
    EXPECT_TRUE(result.ok) << toolchain.compiler() << " " << toolchain.version() << ": " << result.reason << "\n"
                           << text << result.log;
  }
}

void expect_all_refuse(const std::string& text, const std::string& reason, std::int64_t threads = 0,
                       const std::string& function = "k", const std::vector<std::string>& defines = {}) {
  const KernelSource source = source_of(text);
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, function, defines, threads);
    EXPECT_FALSE(result.ok) << toolchain.compiler() << " " << toolchain.version();
    EXPECT_TRUE(result.reason.starts_with(reason)) << toolchain.version() << ": " << result.reason;
  }
}

TEST(KernelRules, AKernelNeedsNoCLinkage) {
  expect_all_compile("__global__ void k(float* x) { *x = 1; }");
  expect_all_compile("static __global__ void k(float* x) { *x = 1; }");
  expect_all_compile("namespace { __global__ void k(float* x) { *x = 1; } }");
  expect_all_compile("namespace app { __global__ void k(float* x, int m = 3) { *x = m; } }");
  expect_all_compile("#define KERNEL(name) __global__ void name\nKERNEL(k)(float* x) { *x = 1; }");
}

// The name under which it is loaded is the compiler's.
TEST(KernelRules, AKernelIsNamedByAnExpression) {
  const std::string text =
      "namespace app { namespace deep {\ntemplate <typename E, int B> __global__ void __launch_bounds__(B) k(E* x) {\n"
      "  __shared__ E s[B]; s[threadIdx.x] = B; __syncthreads(); *x = s[(threadIdx.x + 1) % B]; }\n"
      "template __global__ void k<double, 8>(double*);\n} }\n";
  for (const std::string& function :
       {std::string("app::deep::k<T, TILE>"), std::string("k<float, 2 * HALF>"), std::string("deep::k<T, TILE>")}) {
    expect_all_compile(text, {"T=float32", "TILE=64", "HALF=32"}, 64, function);
  }
  expect_all_refuse(text, "test.cu: error: k<T, TILE> has __launch_bounds__ of 64 threads, but its blocks have 128",
                    128, "k<T, TILE>", {"T=float32", "TILE=64"});
  for (const NvrtcInfo& info : nvrtc_for("sm_61")) {
    const CompileResult result =
        compiled(Toolchain::find("sm_61", info.path), source_of(text), "k<T, TILE>", {"T=float32", "TILE=64"}, 64);
    EXPECT_EQ(result.binary.function, "_ZN3app4deep1kIfLi64EEEvPT_");
    EXPECT_EQ(result.binary.resources.static_shared_bytes, 64 * 4);
  }
}

TEST(KernelRules, ANameMustStandForOneKernel) {
  const std::string file = "test.cu: error: ";
  expect_all_refuse("__global__ void k(float* x) {}\n__global__ void k(int* x) {}",
                    file + "k is overloaded; give each");
  const std::string text = "template <int B, typename E> __global__ void k(E* x) { *x = B; }";
  expect_all_refuse(text, file + "k is a template; name it with all its arguments, such as k<");
  expect_all_refuse(text, file + "k<4> is a template; name it with all its arguments, such as k<", 0, "k<4>");
  expect_all_refuse(text, file + "the name k<4, unknown>: ", 0, "k<4, unknown>");
  expect_all_refuse(text, file + "it has no __global__ function app::k<4, int>", 0, "app::k<4, int>");
  expect_all_refuse("template <int B> __device__ void k(int* x) { *x = B; }",
                    file + "it has no __global__ function k<4>", 0, "k<4>");
  expect_all_refuse("__global__ void k(float* x);\n__global__ void other(float* x) {}",
                    file + "it has no __global__ function k");
}

TEST(KernelRules, ArgumentsOfATemplateAreChecked) {
  const KernelSource source =
      source_of("namespace app { template <typename E> __global__ void k(const E* x, E* y, int n) { y[n] = x[n]; } }");
  const auto argument = [](const char* name, LaunchedArgument::Role role, ElementType type) {
    return LaunchedArgument{name, role, type};
  };
  using Role = LaunchedArgument::Role;
  const auto result = [&](const Toolchain& toolchain, ElementType type, bool swapped) {
    CompileRequest request = request_for(source, "k<T>", toolchain.compiler() == "nvrtc" ? "sm_61" : "host");
    request.kind = toolchain.compiler() == "nvrtc" ? BinaryKind::cubin : BinaryKind::host_object;
    request.defines = {"T=float64"};
    request.arguments = {argument(swapped ? "y" : "x", swapped ? Role::output : Role::input, type),
                         argument(swapped ? "x" : "y", swapped ? Role::input : Role::output, type),
                         argument("n", Role::scalar, ElementType::int32)};
    return toolchain.compile(request);
  };
  for (const Toolchain& toolchain : every_toolchain()) {
    EXPECT_TRUE(result(toolchain, ElementType::float64, false).ok);
    const std::string reason = result(toolchain, ElementType::float32, false).reason;
    EXPECT_NE(reason.find("* as its argument 1, the search space gives 'x', a buffer of float32"), std::string::npos)
        << reason;
    EXPECT_FALSE(result(toolchain, ElementType::float64, true).ok);
  }
}

TEST(KernelRules, AKernelMustBeThere) {
  const std::string reason = "test.cu: error: it has no __global__ function k";
  expect_all_refuse("extern \"C\" __global__ void other(float* x) { *x = 1; }", reason);
  expect_all_refuse("extern \"C\" __device__ void k(float* x) { *x = 1; }", reason);
}

TEST(KernelRules, AKernelMayBeInANamespace) {
  expect_all_compile("namespace app { namespace deep { extern \"C\" __global__ void k(float* x) { *x = 1; } } }");
  expect_all_compile("namespace app::deep { extern \"C\" { __global__ void k(float* x) { *x = 1; } } }");
}

TEST(KernelRules, ParametersMayHaveDefaults) {
  expect_all_compile("extern \"C\" __global__ void k(float* x, int m = 3) { *x = m; }");
  expect_all_compile("namespace a { extern \"C\" __global__ void k(float* x = nullptr, int m = 1 + 2) { *x = m; } }");
  expect_all_compile(
      "extern \"C\" __global__ void k(float* x, int m = 3);\n"
      "extern \"C\" __global__ void k(float* x, int m) { *x = m; }");
}

TEST(KernelRules, BlocksBeyondTheLaunchBoundsAreRefused) {
  const std::string reason = "test.cu: error: k has __launch_bounds__ of 128 threads, but its blocks have 256";
  const std::string body = "k(float* x) { *x = 1; }";
  for (const std::string& head : {std::string("extern \"C\" __global__ void __launch_bounds__(128) "),
                                  std::string("constexpr int kHalf = 64;\nextern \"C\" __launch_bounds__(2 * kHalf,\n"
                                              "2 /* blocks */) __global__ void "),
                                  std::string("namespace a { enum { kThreads = 128 }; extern \"C\" __global__ "
                                              "__launch_bounds__(kThreads) void ")}) {
    const std::string text = head + body + (head.starts_with("namespace") ? "}" : "");
    expect_all_refuse(text, reason, 256);
    expect_all_compile(text, {}, 128);
  }
  expect_all_compile(
      "extern \"C\" __global__ void __launch_bounds__(32) other(float* x) { *x = 2; }\n"
      "extern \"C\" __global__ void " +
          body,
      {}, 256);
}

TEST(KernelRules, StaticSharedMemoryHasALimit) {
  const std::string text =
      "extern \"C\" __global__ void k(float* x) { __shared__ float big[KB * 256];\n"
      "for (int i = threadIdx.x; i < KB * 256; i += 64) big[i] = x[i];\n__syncthreads(); *x = big[threadIdx.x * 7]; }";
  const KernelSource source = source_of(text);
  for (const Toolchain& toolchain : every_toolchain()) {
    EXPECT_TRUE(compiled(toolchain, source, "k", {"KB=48"}).ok);
    EXPECT_FALSE(compiled(toolchain, source, "k", {"KB=49"}).ok);
  }
  CompileRequest request = request_for(source, "k", "host");
  request.kind = BinaryKind::host_object;
  request.address_sanitizer = true;
  request.defines = {"KB=3"};
  const Toolchain host = Toolchain::find("host");
  EXPECT_EQ(host.compile(request).binary.resources.static_shared_bytes, 3 * 1024);
  request.defines = {"KB=49"};
  EXPECT_NE(host.compile(request).reason.find("50176 bytes of static shared memory"), std::string::npos);
}

TEST(KernelRules, WarpIntrinsicsWithoutMasksAreKnown) {
  expect_all_compile(R"(extern "C" __global__ void k(float* x) {
  float v = x[threadIdx.x];
  v += __shfl_down(v, 1) + __shfl_up(v, 1, 16) + __shfl_xor(v, 2) + __shfl(v, 0);
  if (__any(v > 1.0f) || __all(v > 2.0f) || __ballot(1) == 0) { x[threadIdx.x] = v; }
})");
}

// A parameter's macro is a kernel's own: neither the compiler's headers nor CUDA's may see it.
TEST(KernelRules, ParametersMayHaveEveryName) {
  const std::vector<std::string> names{"width", "height", "size", "T",     "x",     "w",         "value",   "type",
                                       "array", "begin",  "end",  "index", "lane",  "block",     "current", "mask",
                                       "data",  "N",      "a",    "b",     "count", "predicate", "self",    "message"};
  std::vector<std::string> all;
  std::string sum;
  for (const std::string& name : names) {
    all.push_back(name + "=3");
    sum += " + " + name;
  }
  const std::string kernel =
      "extern \"C\" __global__ void k(float* out) {\n  extern __shared__ float s[];\n"
      "  s[threadIdx.x] = __activemask() + blockIdx.x * blockDim.x;\n  __syncthreads();\n  assert(width == 3);\n"
      "  out[threadIdx.x] = __any(1) * s[threadIdx.x] * gridDim.x" +
      sum + ";\n}\n";
  expect_all_compile(kernel, all);
  expect_all_compile("#include <math.h>\n#include <stdint.h>\n#include <assert.h>\n#include <limits>\n" + kernel, all);
}

TEST(KernelRules, ParametersMayBeTypesAndLists) {
  expect_all_compile(
      "template <int Rows, int Columns> struct Shape { static constexpr int kSize = Rows * Columns; };\n"
      "extern \"C\" __global__ void k(T* out) { *out = SHAPE::kSize; }\n",
      {"T=unsigned int", "SHAPE=Shape<4, 8>"});
}

TEST(KernelRules, LinesKeepTheirNumbers) {
  const KernelSource source =
      source_of("#include <stdint.h>\nextern \"C\" __global__ void k(float* out) {\n  *out = wrong;\n}\n");
  for (const Toolchain& toolchain : every_toolchain()) {
    const std::string reason = compiled(toolchain, source, "k", {"A=1", "B=2"}).reason;
    EXPECT_NE(reason.find(toolchain.compiler() == "nvrtc" ? "test.cu(3): error" : "test.cu:3:"), std::string::npos)
        << reason;
  }
}

// Functions of the host's C library are no names of CUDA.
TEST(KernelRules, NamesOfTheHostsLibraryAreFree) {
  expect_all_compile(
      "__device__ int index;\n__constant__ float gamma[4];\n__device__ float time(float t) { return t; }\n"
      "struct Step { int index; };\nextern \"C\" __global__ void k(float* out) {\n  Step step{index};\n"
      "  *out = step.index + gamma[0] + time(1.0f);\n}\n");
}

TEST(KernelRules, StandardHeadersOfKernelsAreThere) {
  std::string includes;
  for (const char* header :
       {"stdint.h",  "cstdint",   "stddef.h", "cstddef",     "math.h",        "cmath",     "assert.h",
        "cassert",   "float.h",   "cfloat",   "limits.h",    "climits",       "stdbool.h", "string.h",
        "cstring",   "stdio.h",   "cstdio",   "stdlib.h",    "cstdlib",       "limits",    "inttypes.h",
        "cinttypes", "algorithm", "utility",  "type_traits", "cuda_runtime.h"}) {
    includes += std::string("#include <") + header + ">\n#include <" + header + ">\n";
  }
  expect_all_compile(includes + "extern \"C\" __global__ void k(float* x) { *x = 1; }\n");
  expect_all_compile(R"(#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>
template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
__device__ T twice(T value) { return 2 * value; }
extern "C" __global__ void k(float* x, const int32_t* from, uint8_t* bytes) {
  static_assert(std::numeric_limits<int>::min() == INT_MIN && std::is_same<int32_t, int>::value, "");
  float v = std::sqrt(*x) + std::max(1.0f, 2.0f) + std::abs(-1.0f) + INFINITY + static_cast<float>(M_PI) + FLT_MAX;
  std::memcpy(x, from, sizeof(int64_t));
  printf("%d\n", twice(from[0]));
  bytes[0] = static_cast<uint8_t>(std::isnan(v) ? UINT8_MAX : INT8_MAX);
})");
}

TEST(KernelRules, OtherHeadersAreNamedWithAdvice) {
  const KernelSource source = source_of("#include <iostream>\nextern \"C\" __global__ void k(float* x) { *x = 1; }\n");
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  PASCALINE_NEED_NVRTC(libraries);
  for (const NvrtcInfo& info : libraries) {
    const std::string reason = Toolchain::find("sm_61", info.path).compile(request_for(source, "k")).reason;
    EXPECT_NE(reason.find("has iostream: leave it out where __CUDACC_RTC__ is defined"), std::string::npos) << reason;
  }
}

// A toolkit of another version would have headers that this NVRTC cannot read.
TEST(KernelRules, CudaHeadersMustBeOfNvrtcsVersion) {
  const TemporaryFolder toolkit;
  toolkit.write("include/cuda_fp16.h", "#error of another toolkit\n");
  toolkit.write("include/cuda_runtime_api.h", "#define CUDART_VERSION  13000\n");
  toolkit.write("include/only_there.h", "#error of another toolkit\n");
  const ScopedVariable home("CUDA_HOME", toolkit.path().c_str());
  const KernelSource source =
      source_of("#include <only_there.h>\nextern \"C\" __global__ void k(float* x) { *x = 1; }\n");
  const KernelSource half =
      source_of("#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* x) { *x = 1; }\n");
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  PASCALINE_NEED_NVRTC(libraries);
  for (const NvrtcInfo& info : libraries) {
    const Toolchain toolchain = Toolchain::find("sm_61", info.path);
    EXPECT_NE(toolchain.compile(request_for(source, "k")).reason.find("open source file"), std::string::npos);
    const CompileResult result = toolchain.compile(request_for(half, "k"));
    EXPECT_TRUE(result.ok ||
                result.reason.find("no headers of CUDA " + info.version + " are here") != std::string::npos)
        << result.reason;
  }
}

// CUDA's own are for the host, and a toolkit has them on the way to those that kernels need.
TEST(KernelRules, HeadersOfTheHostAreReplaced) {
  const TemporaryFolder toolkit;
  for (const char* name : {"cuda.h", "cuda_runtime.h", "device_launch_parameters.h", "vector_types.h", "mma.h",
                           "math_functions.h", "cuComplex.h"}) {
    toolkit.write(std::string("include/") + name, "#include <crt/of_the_host.h>\n");
  }
  toolkit.write("include/cuda_fp16.h", "#pragma once\n");
  const ScopedVariable home("CUDA_HOME", toolkit.path().c_str());
  const std::string text =
      "#include <cuda.h>\n#include <cuda_runtime.h>\n#include <cuda_runtime_api.h>\n#include <mma.h>\n"
      "#include <math_functions.h>\n#include <sm_61_intrinsics.h>\n#include <cuComplex.h>\n"
      "#include <device_launch_parameters.h>\n#include <vector_types.h>\n#include <vector_functions.h>\n"
      "static_assert(CUDA_VERSION >= 11000 && CUDART_VERSION == CUDA_VERSION, \"\");\n"
      "extern \"C\" __global__ void k(float* x) { *x = make_float2(1, 2).x; }\n";
  for (const NvrtcInfo& info : nvrtc_for("sm_61")) {
    const std::string number = std::to_string(std::stoi(info.version) * 1000 + info.version.back() % 16 * 10);
    toolkit.write("include/cuda_runtime_api.h",
                  "#define CUDART_VERSION  " + number + "\n#include <crt/of_the_host.h>\n");
    const CompileResult result = compiled(Toolchain::find("sm_61", info.path), source_of(text), "k");
    EXPECT_TRUE(result.ok) << info.version << ": " << result.reason;
  }
  expect_all_compile(text);
}

TEST(KernelRules, TensorCoresNeedANewerGpu) {
  const std::string text = R"(#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(float* x) {
#ifdef USE
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::store_matrix_sync(x, sum, 16, wmma::mem_row_major);
#endif
  *x = 1;
})";
  expect_all_compile(text);
  const KernelSource source = source_of("#define USE\n" + text);
  for (const Toolchain& toolchain : every_toolchain()) {
    const std::string reason = compiled(toolchain, source, "k").reason;
    EXPECT_NE(reason.find("tensor cores, which only sm_70 and newer have"), std::string::npos) << reason;
  }
}

TEST(KernelRules, ComplexNumbers) {
  expect_all_compile(R"(#include <cuComplex.h>
extern "C" __global__ void k(cuComplex* x, cuDoubleComplex* y) {
  *x = cuCdivf(cuCmulf(*x, cuConjf(*x)), cuCsubf(make_cuComplex(cuCabsf(*x), 1.0f), cuCfmaf(*x, *x, *x)));
  *y = cuCadd(cuCdiv(*y, cuCmul(*y, *y)), cuComplexFloatToDouble(make_cuFloatComplex(cuCrealf(*x), cuCimagf(*x))));
})");
}

// Headers for the host that are on the emulator's way would make `check` take what `compile` refuses.
TEST(KernelRules, HeadersOfOtherFoldersAreNoKernels) {
  const TemporaryFolder toolkit;
  for (const char* name : {"curand_kernel.h", "of_my_library.h", "cuComplex.h", "vector_types.h"}) {
    toolkit.write(name, "#error of another toolkit\n");
  }
  const std::string kernel = "extern \"C\" __global__ void k(float* x) { *x = 1; }\n";
  const ScopedVariable all("CPATH", toolkit.path().c_str());
  const ScopedVariable cpp("CPLUS_INCLUDE_PATH", toolkit.path().c_str());
  for (const Toolchain& toolchain : every_toolchain()) {
    for (const char* name : {"curand_kernel.h", "of_my_library.h"}) {
      const KernelSource source = source_of(std::string("#include <") + name + ">\n" + kernel);
      const std::string reason = compiled(toolchain, source, "k").reason;
      EXPECT_NE(reason.find(name), std::string::npos) << reason;
      EXPECT_EQ(reason.find("of another toolkit"), std::string::npos) << reason;
    }
  }
  expect_all_compile("#include <cuComplex.h>\n#include <vector_types.h>\n" + kernel);
  const KernelSource source = source_of("#include <curand_kernel.h>\n" + kernel);
  // A distribution's packages put them among the C library's.
  const std::filesystem::path compiler =
      toolkit.write("bin/c++", "#!/bin/sh\ncase \"$*\" in *' -v '*) echo ' " + toolkit.path().string() +
                                   "' ;; esac\nexec c++ \"$@\"\n");
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  toolkit.write("of_my_library.h", "constexpr int kMine = 1;\n");
  const Toolchain with_toolkit = Toolchain::open("host", compiler);
  EXPECT_TRUE(compiled(with_toolkit, source_of("#include <of_my_library.h>\n" + kernel), "k").ok);
  EXPECT_TRUE(compiled(with_toolkit, source_of("#include <cuComplex.h>\n" + kernel), "k").ok);
  const Toolchain usual = Toolchain::find("host");
  for (const Toolchain* const toolchain : {&with_toolkit, &usual}) {
    const std::string reason = compiled(*toolchain, source, "k").reason;
    EXPECT_NE(reason.find("the emulated device has no curand_kernel.h; leave it out"), std::string::npos) << reason;
  }
}

TEST(KernelRules, TheCppLibraryIsReadAsItIs) {
  expect_all_compile(R"(#ifndef __CUDACC_RTC__
#include <functional>
#include <memory>
#include <string>
#include <vector>
#endif
__device__ __noinline__ float twice(float x) { return 2 * x; }
extern "C" __global__ void k(float* x) { *x = twice(*x); })");
}

TEST(KernelRules, CooperativeGroups) {
  const KernelSource source = source_of(R"(#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const float* x, float* out, int n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto quad = cg::tiled_partition<4>(warp);
  float v = block.thread_rank() < n ? x[block.thread_rank()] : 0.0f;
  for (int s = 16; s > 0; s /= 2) v += warp.shfl_down(v, s);
  v += quad.shfl(v, 0) + quad.shfl_xor(v, 1);
  block.sync();
  if (warp.thread_rank() == 0 && warp.any(v > 0)) out[warp.meta_group_rank()] = v;
})");
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k");
    EXPECT_TRUE(result.ok || result.reason.find("CUDA_HOME") != std::string::npos)
        << toolchain.compiler() << " " << toolchain.version() << ": " << result.reason;
  }
}

}  // namespace
}  // namespace pascaline::testing
