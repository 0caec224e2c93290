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
  EXPECT_EQ(source.headers, (Headers{{"common/a.cuh", "#pragma once\n#include \"common/b.cuh\"\n"},
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
                                     {"common/b.cuh", "#include \"common/a.cuh\"\n#include \"common/deep/c.cuh\"\n"},
                                     {"common/deep/c.cuh", "#include \"common/a.cuh\"  // once more\n"}}));
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

TEST(KernelSource, MissingFilesAreNamedWithWhoWantsThem) {
  const TemporaryFolder folder;
  folder.write("common/a.cuh", "#include \"gone.cuh\"\n");
  const auto file = folder.write("k.cu", "#include \"common/a.cuh\"\n");
  try {
    (void)KernelSource::load(file);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("common/a.cuh"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("gone.cuh"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)KernelSource::load(folder.path() / "nosuch.cu"), Error);
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
