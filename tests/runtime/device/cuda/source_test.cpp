#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/space/space.hpp"
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
#ifndef PART
#define PART 2
#endif
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

// What an edit of a file does to the hash of a kernel.
class Hashed {
 public:
  Hashed(const TemporaryFolder& folder, std::filesystem::path file) : folder_(folder), file_(std::move(file)) {}
  [[nodiscard]] bool changes_with(const std::string& name) const {
    const std::string before = KernelSource::load(file_).hash;
    const std::string text = read_file(folder_.path() / name);
    folder_.write(name, text + "\n// edited\n");
    const bool changed = KernelSource::load(file_).hash != before;
    folder_.write(name, text);
    EXPECT_EQ(KernelSource::load(file_).hash, before);
    return changed;
  }

 private:
  const TemporaryFolder& folder_;
  std::filesystem::path file_;
};

TEST(KernelSource, NeighboursAreNotOfTheSource) {
  const TemporaryFolder folder;
  for (const char* name : {"hist.cu", "a1.cu", "b.cuh", "c.h", "d.cuh", "deep/e.cuh", "f.cuh", "g.cuh", "h.cuh"}) {
    folder.write(name, "#error read\n");
  }
  folder.write("local.cuh", "constexpr int kLocal = 1;\n");
  const auto file = folder.write("k.cu", R"x(#define HEADER "local.cuh"
#include HEADER
// # as in "a1.cu", #include "b.cuh"
/* one
#include "b.cuh"
*/ constexpr const char* raw = R"y(
#include "c.h"
)y";
constexpr const char* text = "// # \" \
#include \"d.cuh\" ";
constexpr int big = 1'000; /* ' */ constexpr char quote = '"'; // "
#if 0
#error it's not for "deep/e.cuh"
#endif
#pragma message "f.cuh"
#define OTHER "g.cuh"
constexpr int a = 1; // go on \
#include "h.cuh"
extern "C" __global__ void k(int* p) { *p = kLocal; }
)x");
  const KernelSource source = KernelSource::load(file);
  ASSERT_EQ(source.headers.size(), 1U);
  EXPECT_EQ(source.headers[0].first, "local.cuh");
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k");
    EXPECT_TRUE(result.ok) << toolchain.version() << ": " << result.reason;
  }
  EXPECT_FALSE(Hashed(folder, file).changes_with("hist.cu"));
  EXPECT_FALSE(Hashed(folder, file).changes_with("g.cuh"));
  EXPECT_TRUE(Hashed(folder, file).changes_with("local.cuh"));
}

TEST(KernelSource, FilesByMacroMayHaveAnyNameAndPlace) {
  const TemporaryFolder folder;
  const std::vector<std::string> names{"table.txt",    "settings.cfg", "plain",          "1/2/3/4/5/6/deep.cuh",
                                       "with gap.cuh", "../up.cuh",    "../other/x.inc", "sub/../beside.cuh"};
  std::filesystem::create_directories(folder.path() / "kernels/sub");
  std::string text;
  std::string sum;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string number = std::to_string(i);
    folder.write(std::filesystem::path("kernels/" + names[i]).lexically_normal(),
                 "constexpr int k" + number + " = " + number + ";\r\n");
    text += "#define HEADER" + number + " \"" + names[i] + "\"\r\n#include HEADER" + number + "\r\n";
    sum += " + k" + number;
  }
  folder.write("elsewhere/real.cuh",
               "\xef\xbb\xbf"
               "constexpr int kReal = 1;\n");
  std::filesystem::create_symlink(folder.path() / "elsewhere/real.cuh", folder.path() / "kernels/link.cuh");
  text += "#define LINK <link.cuh>\n#  include LINK // a link\n%: include /* twice */ \\\r\n HEADER_AGAIN\n";
  text.insert(0, "#define HEADER_AGAIN <common.cuh>\n");
  folder.write("kernels/common.cuh", "#pragma once\n#include \"./common.cuh\"\n#include __FILE__\n");
  const auto file =
      folder.write("kernels/k.cu", text + "extern \"C\" __global__ void k(int* p) { *p = kReal" + sum + "; }\n");
  const KernelSource source = KernelSource::load(file);
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k");
    EXPECT_TRUE(result.ok) << toolchain.version() << ": " << result.reason;
  }
  for (const std::string& name : names) {
    EXPECT_TRUE(Hashed(folder, file).changes_with("kernels/" + name)) << name;
  }
  EXPECT_TRUE(Hashed(folder, file).changes_with("kernels/common.cuh"));
  EXPECT_TRUE(Hashed(folder, file).changes_with("elsewhere/real.cuh"));
}

TEST(KernelSource, PathsMayGoUpFarAndThroughFolders) {
  const TemporaryFolder folder;
  folder.write("top.cuh", "constexpr int kTop = 1;\n");
  folder.write("1/2/3/4/5/6/7/8/9/near.cuh", "constexpr int kNear = 1;\n");
  std::filesystem::create_directories(folder.path() / "1/2/3/4/5/6/7/8/9/empty");
  const KernelSource source = KernelSource::load(
      folder.write("1/2/3/4/5/6/7/8/9/k.cu",
                   "#include \"../../../../../../../../../top.cuh\"\n#include \"empty/../near.cuh\"\n"
                   "extern \"C\" __global__ void k(int* p) { *p = kTop + kNear; }\n"));
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k");
    EXPECT_TRUE(result.ok) << toolchain.version() << ": " << result.reason;
  }
}

TEST(KernelSource, PathsMayGoUpAndDownAgain) {
  const TemporaryFolder folder;
  folder.write("mine/own/u.cuh", "#pragma once\nconstexpr int kUp = 1;\n");
  const KernelSource source =
      KernelSource::load(folder.write("mine/own/k.cu",
                                      "#include \"../own/u.cuh\"\n#include \"../../mine/own/u.cuh\"\n"
                                      "extern \"C\" __global__ void k(int* p) { *p = kUp; }\n"));
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k");
    EXPECT_TRUE(result.ok) << toolchain.version() << ": " << result.reason;
  }
}

TEST(KernelSource, FilesByParametersAreOfTheSource) {
  const TemporaryFolder folder;
  for (const char* name : {"part_1.cuh", "part_2.cuh", "part_3.cuh", "wide.cuh", "narrow.cuh", "float16.cuh",
                           "float32.cuh", "fast_0.cuh", "fast_1.cuh", "fast_x.cuh", "option_7.cuh", "arch_610.cuh"}) {
    folder.write(name, "#pragma once\n");
  }
  const Space space = Space::parse(R"({"schema": 1, "kernel": "k", "description": "d",
    "dimensions": [{"name": "N"}], "types": [{"name": "T", "values": ["float32", "float16"]}],
    "parameters": [{"name": "PART", "default": 1, "values": [1, 2]}, {"name": "SHAPE", "default": "wide", "values": ["wide", "narrow"]},
                   {"name": "SEVEN", "option": "-DSEVEN=", "default": 7, "values": [7, 8]}],
    "macros": [{"name": "FAST", "value": "N % 4 == 0"}], "launch": {"function": "k", "block": [32], "grid": [1]},
    "arguments": [{"name": "p", "buffer": "int32", "access": "out", "extent": "N"}], "reference": {"kernel": {"function": "k", "block": [32], "grid": [1]}},
    "tolerance": {"int32": 0}, "work": {"flops": "N", "bytes": "N"}})",
                                   "k.json");
  const auto file = folder.write("k.cu", R"(#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b.cuh
#define JOIN(a, b) JOIN_(a, b)
#ifndef PART
#define PART 1
#endif
#include TEXT(JOIN(part_, PART))
#include TEXT(SHAPE.cuh)
#include TEXT(T.cuh)
#include TEXT(JOIN(fast_, FAST))
#if __has_include(TEXT(JOIN(option_, SEVEN)))
#include TEXT(JOIN(option_, SEVEN))
#endif
#ifndef PASCALINE_HOST_DEVICE
#include TEXT(JOIN(arch_, __CUDA_ARCH__))
#endif
extern "C" __global__ void k(int* p) { *p = 1; }
)");
  const KernelSource source = KernelSource::load(file, space);
  std::vector<std::string> names;
  for (const auto& [name, text] : source.headers) {
    names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"arch_610.cuh", "fast_0.cuh", "fast_1.cuh", "float16.cuh", "float32.cuh",
                                             "narrow.cuh", "option_7.cuh", "part_1.cuh", "part_2.cuh", "wide.cuh"}));
  for (const Toolchain& toolchain : every_toolchain()) {
    for (const char* part : {"PART=1", "PART=2"}) {
      const CompileResult result =
          compiled(toolchain, source, "k", {part, "SHAPE=narrow", "T=float16", "FAST=1", "SEVEN=7"});
      EXPECT_TRUE(result.ok) << toolchain.version() << ": " << result.reason;
    }
    const std::string reason =
        compiled(toolchain, source, "k", {"PART=3", "SHAPE=wide", "T=float16", "FAST=0", "SEVEN=8"}).reason;
    EXPECT_NE(reason.find("name it once as it is, #include \"part_3.cuh\""), std::string::npos) << reason;
  }
}

TEST(KernelSource, Utf16IsNamed) {
  const TemporaryFolder folder;
  for (const std::string& mark : {std::string("\xff\xfe"), std::string("\xfe\xff"), std::string()}) {
    const auto file = folder.write("k.cu", mark + std::string("v\0o\0", 4));
    try {
      (void)KernelSource::load(file);
      ADD_FAILURE() << "it was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("k.cu: it is UTF-16"), std::string::npos) << error.what();
    }
  }
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

// The space of a kernel `k` with further keys.
Space space_with(const TemporaryFolder& folder, const std::string& place, const std::string& keys) {
  return Space::load(folder.write(place, R"({"schema": 1, "kernel": "k", "dimensions": [{"name": "N"}], "types": [],
    "parameters": [{"name": "TILE", "values": [4], "default": 4}], "launch": {"function": "k", "block": [32], "grid": [1]},
    "arguments": [{"name": "p", "buffer": "int32", "access": "out", "extent": "N"}], "reference": {"default": true},
    "tolerance": {"int32": 0}, "work": {"flops": "N", "bytes": "N"}, )" +
                                             keys + "}"));
}

std::vector<std::string> header_names(const KernelSource& source) {
  std::vector<std::string> names;
  for (const auto& [name, text] : source.headers) {
    names.push_back(name);
  }
  return names;
}

TEST(KernelSource, HeadersAreFoundInFoldersOfTheSpace) {
  const TemporaryFolder folder;
  folder.write("mine/own.cuh", "#define OWN 1\n");
  folder.write("mine/common/own.cuh", "#error the kernel's folder comes first\n");
  folder.write("mine/common/a.cuh", "#include \"deep/b.cuh\"\n");
  const auto deep = folder.write("mine/common/deep/b.cuh", "#include <c.cuh>\nconstexpr int kB = kC;\n");
  folder.write("mine/more/c.cuh", "constexpr int kC = OWN;\n");
  folder.write("mine/more/unused.cuh", "");
  const auto kernel = folder.write(
      "mine/k.cu", "#include <own.cuh>\n#include <a.cuh>\nextern \"C\" __global__ void k(int* p) { *p = kB; }\n");
  const Space space = space_with(folder, "mine/k.json", R"("include": ["common", "more"])");
  const KernelSource source = KernelSource::load(kernel, space);
  EXPECT_EQ(header_names(source),
            (std::vector<std::string>{"common/a.cuh", "common/deep/b.cuh", "more/c.cuh", "own.cuh"}));
  for (const Toolchain& toolchain : every_toolchain()) {
    EXPECT_TRUE(compiled(toolchain, source, "k").ok) << compiled(toolchain, source, "k").reason;
    EXPECT_FALSE(compiled(toolchain, KernelSource::load(kernel), "k").ok);
  }
  folder.write("mine/common/deep/b.cuh", "#include <c.cuh>\nconstexpr int kB = 2 * kC;\n");
  EXPECT_NE(KernelSource::load(kernel, space).hash, source.hash);
  folder.write("mine/common/deep/b.cuh", "#include <c.cuh>\nconstexpr int kB = kC;\n");
  EXPECT_EQ(KernelSource::load(kernel, space).hash, source.hash);
  const Space other = space_with(folder, "mine/k.json", R"("include": ["more", "common"])");
  EXPECT_NE(KernelSource::load(kernel, other).hash, source.hash);
}

TEST(KernelSource, FurtherSourcesAreOneUnitInTheirOrder) {
  const TemporaryFolder folder;
  folder.write("lib/a.cu", "#include \"a.cuh\"\nconstexpr int kA = kTile * FROM_A;\n");
  folder.write("lib/a.cuh", "#define FROM_A 2\n");
  folder.write("last.cu", "namespace app { template <int B> __global__ void k(int* p) { *p = B * kK; } }\n");
  const auto kernel = folder.write("k.cu", "constexpr int kK = kA;\n#ifdef WRONG\nwrong\n#endif\n");
  const Space space = space_with(folder, "k.json", R"("sources": ["lib/a.cu", "k.cu", "last.cu"])");
  const KernelSource source = KernelSource::load(kernel, space);
  EXPECT_EQ(header_names(source), (std::vector<std::string>{"last.cu", "lib/a.cu", "lib/a.cuh"}));
  for (const Toolchain& toolchain : every_toolchain()) {
    const CompileResult result = compiled(toolchain, source, "k<TILE>", {"TILE=4"});
    EXPECT_TRUE(result.ok) << result.reason;
    const std::string reason = compiled(toolchain, source, "k<TILE>", {"TILE=4", "WRONG=1"}).reason;
    EXPECT_NE(reason.find(toolchain.compiler() == "nvrtc" ? "k.cu(3)" : "k.cu:3:"), std::string::npos) << reason;
  }
  folder.write("lib/a.cu", "#include \"a.cuh\"\nconstexpr int kA = 3 * kTile;\n");
  EXPECT_NE(KernelSource::load(kernel, space).hash, source.hash);
}

TEST(KernelSource, PathsOfASpaceThatAreNotThereAreNamed) {
  const TemporaryFolder folder;
  const auto kernel = folder.write("k.cu", "");
  const auto complaint = [&](const std::string& keys) {
    try {
      (void)KernelSource::load(kernel, space_with(folder, "k.json", keys));
    } catch (const SpaceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string file = (folder.path() / "k.json").string();
  EXPECT_EQ(complaint(R"("include": ["none"])"), file + ":/include/0: no such folder: 'none'");
  EXPECT_EQ(complaint(R"("sources": ["lib/../../x.cu"])"),
            file + ":/sources/0: 'lib/../../x.cu' is not in the search space's folder or below it");
  EXPECT_EQ(complaint(R"("sources": ["k.cu", "none.cu"])"), file + ":/sources/1: no such file: 'none.cu'");
  EXPECT_EQ(complaint(R"("include": ["/usr/include"])"),
            file + ":/include/0: '/usr/include' is not in the search space's folder or below it");
  EXPECT_NE(complaint(R"("include": "folder")").find(":/include: "), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
