#include "core/space/code_words.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace pascaline {
namespace {

TEST(CodeWords, NamesInCodeAreIdentifiersOfTheirOwn) {
  for (const char* name : {"matmul", "BLOCK_M", "x", "camelCase9", "x_", "registers"}) {
    EXPECT_FALSE(why_no_code_name(name)) << name;
    EXPECT_FALSE(why_no_macro_name(name)) << name;
  }
  for (const char* name :
       {"",         "9x",      "a-b",     "a b",           "f(x)",   "a::b",      "k);int y=system(\"id\"",
        "\xc3\xa9", "x\n",     "x;",      "int",           "return", "asm",       "defined",
        "xor",      "_x",      "_X",      "__syncthreads", "a__b",   "threadIdx", "blockIdx",
        "blockDim", "gridDim", "warpSize"}) {
    EXPECT_TRUE(why_no_code_name(name)) << name;
  }
  EXPECT_TRUE(why_no_code_name(std::string("x\0y", 3)));
  for (const char* name : {"PASCALINE_HOST_DEVICE", "PascalineSignature", "pascaline_run"}) {
    EXPECT_TRUE(why_no_macro_name(name)) << name;
  }
}

TEST(CodeWords, MacrosAreNumbersAndNames) {
  for (const char* value : {"64", "-5", "1e-05", "0.5f", "0x1F", "float4", "unsigned int", "const float*", "ca",
                            "ns::Shape<128, 64>", "__half2", "true"}) {
    EXPECT_FALSE(why_no_macro_value(value)) << value;
  }
  for (const char* value : {"",         "f()",      "1;2",      "a\nb", "\"x\"", "'c'", "{1}", "a[0]",   "a<:0:>",
                            "<::x>",    "#include", "%:x",      "a=b",  "a/b",   "a\\", "a?b", "return", "throw x",
                            "delete p", "new X",    "goto out", "a:b",  "a::",   "::a", "a@b", "$HOME",  "`id`"}) {
    EXPECT_TRUE(why_no_macro_value(value)) << value;
  }
  EXPECT_FALSE(why_no_define("PASCALINE_REFERENCE=1"));
  EXPECT_FALSE(why_no_define("FLAG"));
  EXPECT_TRUE(why_no_define("A B=1"));
  EXPECT_TRUE(why_no_compiler_option("-DwarpSize=32"));
  EXPECT_TRUE(why_no_define("A="));
  EXPECT_TRUE(why_no_define("A=system(1)"));
}

TEST(CodeWords, CompilerOptionsOnlySteerTheCode) {
  for (const char* option : {"--maxrregcount=64", "-maxrregcount=64", "--use_fast_math", "--ftz=true", "--fmad=false",
                             "--std=c++17", "-std=c++20", "-DX=1", "--define-macro=X=1", "-G", "--device-debug",
                             "-lineinfo", "--ptxas-options=-v", "--ptxas-options=-dlcm=cg", "-Xptxas=-O3",
                             "--ptxas-options=--register-usage-level=8", "--diag-suppress=177,550"}) {
    EXPECT_FALSE(why_no_compiler_option(option)) << option;
  }
  for (const char* option : {"",
                             "-",
                             "--",
                             "maxrregcount=64",
                             "---maxrregcount=64",
                             "--maxrregcount",
                             "--maxrregcount=",
                             "--maxrregcount=x",
                             "--maxrregcount=64 --pre-include=x",
                             "--include-path=/tmp",
                             "-I/tmp",
                             "-I.",
                             "--pre-include=/etc/passwd",
                             "-include=/etc/passwd",
                             "-include",
                             "@file",
                             "-fplugin=./x.so",
                             "-o",
                             "-ox",
                             "--output-file=x",
                             "-specs=x",
                             "-wrapper",
                             "-B.",
                             "-Xlinker",
                             "-Wl,-rpath,.",
                             "--create-pch=x",
                             "--use-pch=x",
                             "--pch-dir=x",
                             "--pch",
                             "--time=x.csv",
                             "--fdevice-time-trace=x",
                             "--optix-ir",
                             "--gpu-architecture=sm_90",
                             "-arch=sm_90",
                             "-dlto",
                             "--ptxas-options=-o=x",
                             "--ptxas-options=--output-file=x",
                             "--ptxas-options=--options-file=x",
                             "--ptxas-options=-v,-o",
                             "--std=gnu++17",
                             "--ftz=maybe",
                             "--use_fast_math=1",
                             "-DX=system(1)",
                             "-Dint=1",
                             "-DPASCALINE_ADDRESS_SANITIZER=1",
                             "-DPASCALINE_REFERENCE",
                             "-DPascalineSignature=int",
                             "-Dpascaline_run=x",
                             "--define-macro=PASCALINE_REFERENCE=1",
                             "-define-macro=PASCALINE_HOST_DEVICE",
                             "--D=X",
                             "--diag-suppress=1,,2",
                             "--minimal",
                             "-x",
                             "-E"}) {
    EXPECT_TRUE(why_no_compiler_option(option)) << option;
  }
}

TEST(CodeWords, KernelsAreNamedAsTheirFilesAre) {
  for (const char* name : {"matmul", "my-kernel.v2", "_x", "9"}) {
    EXPECT_FALSE(why_no_kernel_name(name)) << name;
  }
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "-x", "a b", "a\n", "\033[31m"}) {
    EXPECT_TRUE(why_no_kernel_name(name)) << name;
    EXPECT_THROW((void)kernel_file("/folder", name, ".cu"), Error) << name;
  }
  EXPECT_TRUE(why_no_kernel_name(std::string(1000, 'x')));
  EXPECT_EQ(kernel_file("/folder", "matmul", ".cu"), "/folder/matmul.cu");
}

}  // namespace
}  // namespace pascaline
