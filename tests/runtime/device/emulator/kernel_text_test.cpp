#include "runtime/device/emulator/kernel_text.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

constexpr const char* kCast = "::pascaline_dynamic_shared();";

TEST(KernelText, DynamicSharedMemoryBecomesAPointer) {
  EXPECT_EQ(rewrite_for_emulator("void f() { extern __shared__ float s[]; }"),
            std::string("void f() { auto* const s = (float *)") + kCast + " }");
  EXPECT_EQ(rewrite_for_emulator("void f() { extern __shared__ __align__(16) volatile unsigned char s[]; }"),
            std::string("void f() { auto* const s = (volatile unsigned char *)") + kCast + " }");
  EXPECT_EQ(rewrite_for_emulator("void f() { extern __align__(sizeof(int)) __shared__ int s[][32]; }"),
            std::string("void f() { auto* const s = (int (*)[32])") + kCast + " }");
}

TEST(KernelText, AtFileScopeItIsOnePerThread) {
  const std::string text =
      std::string("static thread_local auto* const s __asm__(\"pascaline_dynamic_s\") = (float *)") + kCast;
  EXPECT_EQ(rewrite_for_emulator("extern __shared__ float s[];"), text);
  EXPECT_EQ(rewrite_for_emulator("namespace a::b { extern \"C\" { extern __shared__ float s[]; } }"),
            "namespace a::b { extern \"C\" { " + text + " } }");
}

TEST(KernelText, LinesKeepTheirNumbers) {
  const std::string text = rewrite_for_emulator("extern\n__shared__ // why\nfloat s\n[];\nint x;");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_TRUE(text.ends_with("\nint x;"));
}

TEST(KernelText, EverythingElseStays) {
  for (const char* text :
       {"extern \"C\" __global__ void k() {}", "extern int other[];", "// extern __shared__ float s[];",
        "/* extern __shared__ float s[]; */", "const char* s = \"extern __shared__ float s[];\";",
        "const char* s = R\"x(extern __shared__ float s[];)x\";", "__shared__ float s[4];",
        "int n = 1'000; char c = '\"';", "#define S \\\n extern __shared__ float s[];", "", "extern", "\"", "R\"("}) {
    EXPECT_EQ(rewrite_for_emulator(text), text);
  }
  EXPECT_EQ(rewrite_for_emulator("static __shared__ int s[4];"), " __shared__ int s[4];");
}

TEST(KernelText, LaunchBoundsAreCheckedWhereTheyStand) {
  EXPECT_EQ(
      rewrite_for_emulator("int a;\nextern \"C\" __global__ void __launch_bounds__(2 *\nkHalf, 1) k(int* p);", "k"),
      "int a;\nPASCALINE_LAUNCH_BOUNDS(2 * kHalf, 1) extern \"C\" __global__ void __launch_bounds__(2 *\nkHalf, 1) "
      "k(int* p);");
  for (const char* text :
       {"__global__ void __launch_bounds__(2) other();", "__launch_bounds__", "__launch_bounds__("}) {
    EXPECT_EQ(rewrite_for_emulator(text, "k"), text);
  }
}

TEST(KernelText, LaunchBoundsOfATemplateAreCheckedInItsBody) {
  EXPECT_EQ(rewrite_for_emulator("template <int B> __global__ void __launch_bounds__(B) k(T<B> p) {\n  f(); }\n"
                                 "template __global__ void\nk<4>(T<4>);\nint a;",
                                 "k"),
            "template <int B> __global__ void __launch_bounds__(B) k(T<B> p) { PASCALINE_LAUNCH_BOUNDS(B) \n  f(); }\n"
            "\n;\nint a;");
  const std::string specialized = "template <> __global__ void __launch_bounds__(8) k<8>(int* p) {}";
  EXPECT_EQ(rewrite_for_emulator(specialized, "k"), specialized);
}

TEST(KernelText, KernelsAreFoundInTheirNamespaces) {
  const auto declared = [](const std::string& text, const std::string& function = "k") {
    KernelSource source;
    source.text = text;
    const DeclaredKernel kernel = declared_kernel(source, function);
    EXPECT_EQ(kernel.found, !text.empty());
    return kernel;
  };
  EXPECT_EQ(declared("namespace a::b { extern \"C\" { inline namespace c { __global__ void k(int*); } } }").name,
            "a::b::c::k");
  EXPECT_EQ(declared("namespace a { void f() { k(1); } } extern \"C\" __global__ void k(int*);").name, "k");
  EXPECT_TRUE(declared("KERNEL void k(int*);").global);
  EXPECT_FALSE(declared("extern \"C\" void k(int*);").global);
  EXPECT_EQ(declared("").name, "k");
  EXPECT_EQ(declared("namespace a::b { template <int B> __global__ void k(int*); }", "b::k<c::d, 4>").name,
            "a::b::k<c::d, 4>");
  EXPECT_TRUE(declared("template <int B, class T = S<2>> __global__ void k(T*);").is_template);
  EXPECT_FALSE(declared("template <int B> __device__ void k(int*);").global);
  EXPECT_EQ(declared("namespace a { __device__ void k(); } namespace b { __global__ void k(); }").scope, "b");
  EXPECT_TRUE(declared("extern \"C\" { __global__ void k(); }").c_linkage);
  EXPECT_TRUE(declared("extern \"C\" __global__ void k();").c_linkage);
  EXPECT_FALSE(declared("extern \"C\" int other(); __global__ void k();").c_linkage);
}

}  // namespace
}  // namespace pascaline
