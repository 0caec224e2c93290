#include "runtime/device/signature.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/compile.hpp"
#include "tests/runtime/device/cuda/nvrtc_here.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

using Role = LaunchedArgument::Role;
using Arguments = std::vector<LaunchedArgument>;

constexpr auto kF32 = ElementType::float32;
constexpr auto kF64 = ElementType::float64;
constexpr auto kF16 = ElementType::float16;
constexpr auto kI8 = ElementType::int8;
constexpr auto kI32 = ElementType::int32;
constexpr auto kI64 = ElementType::int64;

const Arguments kSaxpy{{"x", Role::input, kF32}, {"out", Role::output, kF32}, {"n", Role::scalar, kI32}};

/// A kernel with these parameters, and macros of names that kernels use, by every compiler that there is for sm_61 and
/// for the emulated device.
class SignatureTest : public ::testing::Test {
 protected:
  [[nodiscard]] static CompileResult compile(const Toolchain& toolchain, bool host, const std::string& parameters,
                                             const Arguments& arguments, const std::string& function = "k") {
    const KernelSource source = source_of(
        "enum Mode : int { kPlain };\n"
        "struct Particle { float mass; float place[3]; };\n"
        "struct Vector { float x[4]; };\n"
        "template <typename T> struct Pair { T first, second; };\n"
        "extern \"C\" __global__ void k(" +
        parameters +
        ") {}\n"
        "#define T float\n#define value 3\n#define begin\n#define type 7\n#define x 1");
    CompileRequest request = request_for(source, function, host ? "emulator" : "sm_61");
    request.kind = host ? BinaryKind::host_object : BinaryKind::cubin;
    request.arguments = arguments;
    return toolchain.compile(request);
  }

  /// What all compilers answer: empty where the kernel compiles.
  [[nodiscard]] static std::string answer(const std::string& parameters, const Arguments& arguments) {
    const CompileResult here = compile(Toolchain::find("emulator"), true, parameters, arguments);
    for (const NvrtcInfo& info : nvrtc_for("sm_61")) {
      const CompileResult there = compile(Toolchain::open("sm_61", info.path), false, parameters, arguments);
      EXPECT_EQ(here.reason, there.reason) << info.version << ": " << parameters;
      EXPECT_EQ(here.ok, there.ok) << info.version << ": " << there.log;
    }
    EXPECT_EQ(here.ok, here.reason.empty());
    return here.reason;
  }
};

TEST_F(SignatureTest, WhatTheArgumentsFitCompiles) {
  EXPECT_EQ(answer("const float* __restrict__ a, float* out, int n", kSaxpy), "");
  EXPECT_EQ(answer("float* a, volatile float* out, const unsigned n", kSaxpy), "");
  EXPECT_EQ(answer("const float4* a, float2* out, Mode n", kSaxpy), "");
  EXPECT_EQ(answer("const void* a, unsigned char* out, int n", kSaxpy), "");
  EXPECT_EQ(answer("const Vector* a, float* out, int n", kSaxpy), "");
  EXPECT_EQ(answer("const Particle* a, Pair<float>* out, int n", kSaxpy), "");
  EXPECT_EQ(answer("", {}), "");
  EXPECT_EQ(answer("size_t n, double a, bool b",
                   {{"n", Role::scalar, kI64}, {"a", Role::scalar, kF64}, {"b", Role::scalar, kI8}}),
            "");
  EXPECT_EQ(answer("const int* words, const unsigned short* halves, const uint4* more",
                   {{"words", Role::input, kI8}, {"halves", Role::input, kF16}, {"more", Role::input, kF16}}),
            "")
      << "numbers of few bits are read by words";
  EXPECT_EQ(answer("Pair<double>* sums, unsigned char* packed",
                   {{"sums", Role::scratch, kF32}, {"packed", Role::input, ElementType::q4_0}}),
            "")
      << "scratch and packed formats are the kernel's own business";
}

TEST_F(SignatureTest, ScalarsAgreeInSizeAndKind) {
  const auto given = [](ElementType type) { return Arguments{{"alpha", Role::scalar, type}}; };
  EXPECT_EQ(answer("double alpha", given(kF32)),
            "test.cu: error: k takes double as its argument 1, the search space gives 'alpha', a scalar of float32");
  EXPECT_EQ(answer("float alpha", given(kI32)),
            "test.cu: error: k takes float as its argument 1, the search space gives 'alpha', a scalar of int32");
  EXPECT_EQ(answer("unsigned long long alpha", given(kI32)),
            "test.cu: error: k takes unsigned long long as its argument 1, the search space gives 'alpha', a scalar of "
            "int32");
  for (const char* parameter : {"double alpha", "unsigned long alpha", "short alpha", "bool alpha", "float2 alpha",
                                "float* alpha", "Particle alpha", "float alpha"}) {
    EXPECT_NE(answer(parameter, given(kI32)), "") << parameter;
  }
  EXPECT_NE(answer("long long alpha", given(kF64)), "");
  EXPECT_NE(answer("const float* alpha", given(kI64)), "");
}

TEST_F(SignatureTest, BuffersAgreeInTheirElements) {
  EXPECT_EQ(answer("const double* a, float* out, int n", kSaxpy),
            "test.cu: error: k takes const double* as its argument 1, the search space gives 'x', a buffer of float32");
  EXPECT_EQ(answer("float* a, const float* out, int n", kSaxpy),
            "test.cu: error: k takes const float* as its argument 2, the search space gives 'out', a buffer of float32 "
            "to write to");
  for (const char* parameter : {"const int* a", "const double2* a", "float a", "const float** a", "const short* a",
                                "const uint4* a", "void (*a)(int)"}) {
    EXPECT_NE(answer(std::string(parameter) + ", float* out, int n", kSaxpy), "") << parameter;
  }
  EXPECT_NE(answer("const int* a", {{"a", Role::input, kI64}}), "");
  EXPECT_NE(answer("const float* a", {{"a", Role::input, kI8}}), "");
  EXPECT_NE(answer("const float* a", {{"a", Role::input, kF16}}), "");
  EXPECT_NE(answer("float a", {{"a", Role::scratch, kF32}}), "");
}

TEST_F(SignatureTest, VectorsAndStructuresAgreeInTheirMembers) {
  CompositeType particle;
  particle.name = "Particle";
  particle.add("mass", kF32);
  for (const char* name : {"place[0]", "place[1]", "place[2]"}) {
    particle.add(name, kF32);
  }
  const auto buffer = [](const CompositeType& type, Role role = Role::input) {
    return Arguments{{"a", role, kF32, type}};
  };
  const auto vector = [](const char* name) { return *CompositeType::vector(name); };
  EXPECT_EQ(answer("const Particle* a", buffer(particle)), "");
  EXPECT_EQ(answer("Particle a", buffer(particle, Role::scalar)), "");
  EXPECT_EQ(answer("const Particle a", buffer(particle, Role::scalar)), "");
  EXPECT_EQ(answer("const void* a", buffer(particle)), "");
  EXPECT_EQ(answer("float4* a", buffer(vector("float4"), Role::output)), "");
  EXPECT_EQ(answer("float3 a", buffer(vector("float3"), Role::scalar)), "");
  EXPECT_EQ(answer("const uint2* a", buffer(vector("int2"))), "") << "integers may differ in sign";
  EXPECT_EQ(answer("const Pair<float>* a", buffer(vector("complex64"))), "") << "a class of complex numbers";
  EXPECT_EQ(answer("const float2* a", buffer(vector("complex64"))), "");
  EXPECT_EQ(answer("const double* a", buffer(particle)),
            "test.cu: error: k takes const double* as its argument 1, the search space gives 'a', a buffer of Particle "
            "(mass float32, place[0] float32, place[1] float32, place[2] float32; 16 bytes)");
  EXPECT_EQ(answer("const float2* a", buffer(vector("float4"))),
            "test.cu: error: k takes const float2* as its argument 1, the search space gives 'a', a buffer of float4");
  EXPECT_EQ(answer("float2 a", buffer(vector("float4"), Role::scalar)),
            "test.cu: error: k takes float2 as its argument 1, the search space gives 'a', a scalar of float4");
  for (const char* parameter : {"const float4* a", "Particle** a", "Particle a", "const Vector* a", "int a"}) {
    EXPECT_NE(answer(parameter, buffer(particle)), "") << parameter;
  }
  for (const char* parameter : {"const int4* a", "const Pair<float>* a", "const float* a", "const float3* a"}) {
    EXPECT_NE(answer(parameter, buffer(vector("float4"))), "") << parameter;
  }
  EXPECT_NE(answer("const float4* a", buffer(vector("float4"), Role::output)), "");
  CompositeType swapped;
  swapped.name = "Particle";
  for (const char* name : {"place[0]", "place[1]", "place[2]", "mass"}) {
    swapped.add(name, kF32);
  }
  EXPECT_NE(answer("const Particle* a", buffer(swapped)), "") << "members in another order";
  CompositeType whole;
  whole.name = "Particle";
  whole.add("mass", kI32);
  whole.add("place[0]", *CompositeType::vector("float3"));
  EXPECT_NE(answer("const Particle* a", buffer(whole)), "") << "members of other types";
  EXPECT_EQ(answer("const bool* a, unsigned short b, unsigned long long c, short* d",
                   {{"a", Role::input, ElementType::boolean},
                    {"b", Role::scalar, ElementType::uint16},
                    {"c", Role::scalar, ElementType::uint64},
                    {"d", Role::output, ElementType::int16}}),
            "");
  EXPECT_NE(answer("const int* a", {{"a", Role::input, ElementType::int16}}), "");
  EXPECT_NE(answer("unsigned a", {{"a", Role::scalar, ElementType::uint64}}), "");
}

TEST_F(SignatureTest, TheNumberOfArgumentsIsTold) {
  EXPECT_EQ(answer("const float* a, float* out, int n, float bias", kSaxpy),
            "test.cu: error: k takes 4 arguments, the search space gives 3");
  EXPECT_EQ(answer("", kSaxpy), "test.cu: error: k takes 0 arguments, the search space gives 3");
  EXPECT_EQ(answer("int n", {}), "test.cu: error: k takes 1 arguments, the search space gives 0");
}

TEST_F(SignatureTest, NamesInAnotherOrderAreRefused) {
  const Arguments given{{"rows", Role::scalar, kI32}, {"columns", Role::scalar, kI32}, {"alpha", Role::scalar, kF32}};
  EXPECT_EQ(answer("int columns, int rows, float alpha", given),
            "test.cu: error: k takes 'columns' as its argument 1, but the search space gives 'rows' there; "
            "list the arguments in the kernel's order");
  EXPECT_EQ(answer("const int columns, // not rows,\n int /* of one */ rows, float alpha", given).substr(0, 35),
            "test.cu: error: k takes 'columns' a");
  EXPECT_EQ(answer("int rows, int columns, float alpha", given), "");
  EXPECT_EQ(answer("int height, int rows, float alpha", given), "") << "one name is the kernel's alone";
  EXPECT_EQ(answer("int, int, float", given), "") << "a declaration without names";
}

TEST_F(SignatureTest, OtherFaultsAreToldAsWithoutTheCheck) {
  const CompileResult missing = compile(Toolchain::find("emulator"), true, "int n", {}, "other");
  EXPECT_NE(missing.reason.find("other"), std::string::npos) << missing.reason;
  EXPECT_EQ(missing.reason.find("pascaline_signature"), std::string::npos) << missing.reason;
  for (const NvrtcInfo& info : nvrtc_for("sm_61")) {
    const CompileResult there = compile(Toolchain::open("sm_61", info.path), false, "int n", {}, "other");
    EXPECT_NE(there.reason.find("its kernels are: k"), std::string::npos) << there.reason;
  }
}

TEST_F(SignatureTest, TheCheckLeavesNoTraceInTheCode) {
  for (const NvrtcInfo& info : nvrtc_for("sm_61")) {
    const KernelSource source =
        source_of("extern \"C\" __global__ void k(const float* a, float* out, int n) { out[n] = a[n]; }\n");
    CompileRequest request = request_for(source, "k");
    const Toolchain toolchain = Toolchain::open("sm_61", info.path);
    const CompileResult plain = toolchain.compile(request);
    const std::string key = toolchain.cache_key(request);
    request.arguments = kSaxpy;
    EXPECT_TRUE(toolchain.compile(request).binary.code == plain.binary.code) << info.version;
    EXPECT_NE(toolchain.cache_key(request), key) << "what was compiled unchecked is not taken for checked";
  }
}

}  // namespace
}  // namespace pascaline::testing
