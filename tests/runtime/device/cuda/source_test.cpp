#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

TEST(KernelSource, FollowsQuotedIncludesRelativeToTheIncluder) {
  const TemporaryFolder folder;
  folder.write("common/a.cuh", "#pragma once\n#include \"b.cuh\"\n");
  folder.write("common/b.cuh", "#pragma once\n#include <cstdint>\nstruct B {};\n");
  const KernelSource source = KernelSource::load(folder.write("k.cu", "#include \"common/a.cuh\"\n"));
  EXPECT_EQ(source.headers, (Headers{{"common/a.cuh", "#pragma once\n#include \"b.cuh\"\n"},
                                     {"common/b.cuh", "#pragma once\n#include <cstdint>\nstruct B {};\n"}}));
  EXPECT_EQ(source.text, "#include \"common/a.cuh\"\n");
}

TEST(KernelSource, OneHeaderHasOneNameHoweverItIsReached) {
  const TemporaryFolder folder;
  folder.write("common/a.cuh", "#pragma once\nstruct S { int x; };\n");
  folder.write("common/deep/c.cuh", "#include \"../a.cuh\"  // once more\n");
  folder.write("common/b.cuh", "#include \"a.cuh\"\n#include \"deep/c.cuh\"\n");
  const std::string text = R"(#include "common/a.cuh"
#include "./common/b.cuh"
extern "C" __global__ void k(S* s) { s->x = 1; }
)";
  const KernelSource source = KernelSource::load(folder.write("k.cu", text));
  EXPECT_EQ(source.headers, (Headers{{"common/a.cuh", "#pragma once\nstruct S { int x; };\n"},
                                     {"common/b.cuh", "#include \"a.cuh\"\n#include \"deep/c.cuh\"\n"},
                                     {"common/deep/c.cuh", "#include \"../a.cuh\"  // once more\n"}}));
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  PASCALINE_NEED_NVRTC(libraries);
  for (const NvrtcInfo& info : libraries) {
    const CompileResult result = Toolchain::find("sm_61", info.path).compile(request_for(source, "k"));
    EXPECT_TRUE(result.ok) << info.version << ": " << result.log;
  }
}

TEST(KernelSource, HeadersOfOneNameInDifferentFoldersStayApart) {
  const TemporaryFolder folder;
  folder.write("one/detail.cuh", "constexpr int kOne = 1;\n");
  folder.write("two/detail.cuh", "constexpr int kTwo = 2;\n");
  folder.write("one/x.cuh", "#include \"detail.cuh\"\n");
  folder.write("two/x.cuh", "#include \"detail.cuh\"\n");
  const KernelSource source = KernelSource::load(folder.write(
      "kernels/k.cu",
      "#include \"../one/x.cuh\"\n#include \"../two/x.cuh\"\n"
      "extern \"C\" __global__ void k(int* p) { *p = kOne + kTwo; static_assert(kTwo == 2 && kOne == 1); }\n"));
  EXPECT_EQ(source.headers.size(), 4U);
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  PASCALINE_NEED_NVRTC(libraries);
  for (const NvrtcInfo& info : libraries) {
    const CompileResult result = Toolchain::find("sm_61", info.path).compile(request_for(source, "k"));
    EXPECT_TRUE(result.ok) << info.version << ": " << result.log;
  }
}

TEST(KernelSource, IgnoresIncludesInCommentsAndSurvivesCycles) {
  const TemporaryFolder folder;
  folder.write("a.cuh", "#pragma once\n#include \"b.cuh\"\n");
  folder.write("b.cuh", "#pragma once\n#include \"a.cuh\"\n");
  const KernelSource source = KernelSource::load(folder.write("k.cu", R"(// don't #include "nosuch.cuh"
/* #include "nosuch.cuh"
#include "nosuch.cuh" */
//#include "nosuch.cuh"
const char* text = "//"; /* " */
#  include   "a.cuh" // a
/**/)"));
  ASSERT_EQ(source.headers.size(), 2U);
  EXPECT_EQ(source.headers[0].first, "a.cuh");
}

TEST(KernelSource, MissingFilesMatterOnlyWhereTheCompilerAsksForThem) {
  const TemporaryFolder folder;
  folder.write("common/a.cuh", "#include \"gone.cuh\"\n");
  const std::string kernel = "extern \"C\" __global__ void k(int* p) { *p = 1; }\n";
  const KernelSource unasked = KernelSource::load(
      folder.write("unasked.cu",
                   "#if 0\n#include \"gone.cuh\"\n#endif\n#ifdef NEVER\n#include \"gone.cuh\"\n#endif\n"
                   "constexpr const char* text = R\"x(\n#include \"gone.cuh\"\n)x\";\n" +
                       kernel));
  const KernelSource asked = KernelSource::load(folder.write("asked.cu", "#include \"common/a.cuh\"\n" + kernel));
  for (const Toolchain& toolchain : every_toolchain()) {
    SCOPED_TRACE(toolchain.version());
    EXPECT_TRUE(compiled(toolchain, unasked, "k").ok) << compiled(toolchain, unasked, "k").reason;
    const std::string reason = compiled(toolchain, asked, "k").reason;
    EXPECT_NE(reason.find("common/a.cuh"), std::string::npos) << reason << compiled(toolchain, asked, "k").log;
    EXPECT_NE(reason.find("gone.cuh"), std::string::npos) << reason;
  }
  EXPECT_THROW((void)KernelSource::load(folder.path() / "nosuch.cu"), Error);
}

// The compiler sees only what the hash covers, so a header that an edit can change is in it, however it is included.
TEST(KernelSource, IncludesByMacroAreOfTheSource) {
  const TemporaryFolder folder;
  folder.write("local.cuh", "#pragma once\nconstexpr int kLocal = 1;\n");
  folder.write("deep/part_2.cuh", "constexpr int kPart = 2;\n");
  const std::string text = R"(#define HEADER "local.cuh"
#include HEADER
#include <local.cuh>
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define FILE_OF(number) deep/part_##number.cuh
#define EXPANDED(number) FILE_OF(number)
#include TEXT(EXPANDED(PART))
extern "C" __global__ void k(int* p) { *p = kLocal + kPart; }
)";
  const auto file = folder.write("k.cu", text);
  const KernelSource source = KernelSource::load(file);
  EXPECT_EQ(source.text, text);
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k", {"PART=2"});
    EXPECT_TRUE(result.ok) << toolchain.version() << ": " << result.reason;
  }
  folder.write("local.cuh", "#error edited\n");
  const std::string edited = KernelSource::load(file).hash;
  EXPECT_NE(edited, source.hash);
  folder.write("deep/part_2.cuh", "#error edited\n");
  EXPECT_NE(KernelSource::load(file).hash, edited);
}

// The folder that the program was started in has nothing to do with a kernel.
TEST(KernelSource, HeadersOfTheWorkingDirectoryAreNotFound) {
  const TemporaryFolder kernels;
  const TemporaryFolder here;
  here.write("stray.cuh", "constexpr int kStray = 1;\n");
  const KernelSource source = KernelSource::load(kernels.write(
      "k.cu",
      "#define HEADER \"stray.cuh\"\n#include HEADER\nextern \"C\" __global__ void k(int* p) { *p = kStray; }\n"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(here.path());
  for (const Toolchain& toolchain : every_toolchain()) {
    EXPECT_FALSE(compiled(toolchain, source, "k").ok) << toolchain.version();
  }
  std::filesystem::current_path(before);
}

TEST(KernelSource, ByteOrderMarksAreSkipped) {
  const TemporaryFolder folder;
  folder.write("a.cuh", "\xef\xbb\xbf// \xc3\xb6\nconstexpr int kA = 1;\n");
  const KernelSource source = KernelSource::load(
      folder.write("k.cu", "\xef\xbb\xbf#include \"a.cuh\"\nextern \"C\" __global__ void k(int* p) { *p = kA; }\n"));
  for (const Toolchain& toolchain : every_toolchain()) {
    EXPECT_TRUE(compiled(toolchain, source, "k").ok) << compiled(toolchain, source, "k").reason;
  }
}

TEST(KernelSource, HashIsOfTextsAndNotOfPlaces) {
  const TemporaryFolder one;
  const TemporaryFolder two;
  for (const TemporaryFolder* folder : {&one, &two}) {
    folder->write("a.cuh", "int a;\n");
    folder->write("k.cu", "#include \"a.cuh\"\n");
  }
  const std::string hash = KernelSource::load(one.path() / "k.cu").hash;
  EXPECT_EQ(hash, KernelSource::load(two.path() / "k.cu").hash);
  two.write("a.cuh", "int b;\n");
  EXPECT_NE(hash, KernelSource::load(two.path() / "k.cu").hash);
}

}  // namespace
}  // namespace pascaline::testing
