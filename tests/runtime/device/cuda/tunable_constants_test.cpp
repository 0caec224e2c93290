#include "runtime/device/tunable_constants.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

std::string lines_for(const std::string& text, const std::string& header = {}) {
  return constant_lines({"TILE=64", "STORAGE=wide", "OFFSET=-5000000000"}, {"k.cu", text, {{"k.h", header}}, "hash"});
}

TEST(TunableConstantsTest, AreNamedAfterTheirMacros) {
  EXPECT_EQ(constant_name("BLOCK_M"), "kBlockM");
  EXPECT_EQ(constant_name("tile"), "kTile");
  EXPECT_EQ(constant_name("Q8_0_ROWS"), "kQ80Rows");
}

TEST(TunableConstantsTest, AreThereForWhatTheSourceMentions) {
  EXPECT_EQ(lines_for("int x[kTile];"), "constexpr int kTile = 64;\n");
  EXPECT_EQ(lines_for("long long x = kOffset;"), "constexpr long long kOffset = -5000000000;\n");
  EXPECT_EQ(lines_for("int x[kTiles]; kStorage y;"), "");
}

TEST(TunableConstantsTest, LeaveOutWhatTheSourceDeclares) {
  for (const char* declaration :
       {"constexpr int kTile = TILE;", "static const int kTile{TILE};", "namespace {\nconstexpr int kTile(TILE);\n}",
        "enum { kTile = TILE };", "namespace a { namespace b {\n  static constexpr unsigned kTile = TILE;\n} }"}) {
    EXPECT_EQ(lines_for(std::string(declaration) + "\nint x[kTile];"), "") << declaration;
    EXPECT_EQ(lines_for("int x[kTile];", declaration), "") << declaration;
  }
}

TEST(TunableConstantsTest, ElementTypesAreThereUnlessTheSourceHasThem) {
  const std::vector<std::string> macros{"A=float32", "B=float32", "C=float16", "N=4"};
  EXPECT_EQ(constant_lines(macros, {"k.cu", "A x;  // float32 or /*\n/* float16 */", {}, "hash"}),
            "using float32 = float;\nstruct __half; using float16 = __half;\n");
  EXPECT_EQ(constant_lines(macros, {"k.cu", "A x;", {{"types.cuh", "using float32 = float; struct float16;"}}, "hash"}),
            "");
}

TEST(TunableConstantsTest, AreThereBesideWhatHidesThem) {
  for (const char* hiding : {"struct A { static constexpr int kTile = TILE; };",
                             "template <int kTile = 4> struct B {};", "void f() { const int kTile = 3; }",
                             "constexpr int kThreads = kTile * 2;", "constexpr bool one = kTile == 1;"}) {
    EXPECT_EQ(lines_for(std::string(hiding) + "\nint x[kTile];"), "constexpr int kTile = 64;\n") << hiding;
  }
}

}  // namespace
}  // namespace pascaline
