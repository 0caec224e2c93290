#include "runtime/device/macro_expansion.hpp"

#include <gtest/gtest.h>

#include <set>

namespace pascaline::testing {
namespace {

std::set<std::string> texts(const std::vector<std::string>& definitions, const std::string& line) {
  PossibleMacros macros;
  for (const std::string& definition : definitions) {
    macros.define(definition);
  }
  std::set<std::string> found;
  for (const std::vector<CodeToken>& tokens : macros.expansions(line, "dir/k.cu")) {
    std::string text;
    for (const CodeToken& token : tokens) {
      text += (token.spaced && !text.empty() ? " " : "") + token.text;
    }
    found.insert(text);
  }
  return found;
}

using Set = std::set<std::string>;

TEST(PossibleMacros, ExpandAsAPreprocessorDoes) {
  EXPECT_EQ(texts({"A b c", "f(x) <x>"}, "A f(A) f"), Set{"b c <b c> f"});
  EXPECT_EQ(texts({"CAT(a, b) a ## b", "XCAT(a, b) CAT(a, b)", "N 2"}, "CAT(p, N) XCAT(p_, N)"), Set{"pN p_2"});
  EXPECT_EQ(texts({"T(x) #x", "X(x) T(x)", "N 2"}, "T( a/N . h ) X(a/N.h)"), Set{"\"a/N . h\" \"a/2.h\""});
  EXPECT_EQ(texts({"F G", "G(x) x.h"}, "F(1) F (2)"), Set{"1.h 2.h"});
  EXPECT_EQ(texts({"LAST(a, ...) __VA_ARGS__", "ALL(all...) all"}, "LAST(1,2,3) ALL(1,2)"), Set{"2,3 1,2"});
  EXPECT_EQ(texts({"PICK(a, b, c) c", "APPLY(m, ...) m(__VA_ARGS__)"}, "APPLY(PICK, 1, (2, 3), z)"), Set{"z"});
  EXPECT_EQ(texts({"SELF __FILE__"}, "SELF"), Set{"\"dir/k.cu\""});
}

TEST(PossibleMacros, EndWhereTheyNameThemselves) {
  EXPECT_EQ(texts({"A B", "B A", "f(x) f(x + 1)"}, "A f(1)"), Set{"A f(1 + 1)"});
  EXPECT_FALSE(texts({"A B B", "B C C", "C D D", "D E E", "E F F", "F G G", "G H H", "H I I", "I J J", "J K K", "K L L",
                      "L M M", "M N N"},
                     "A A A")
                   .empty());
}

TEST(PossibleMacros, HaveEachDefinitionInTurn) {
  EXPECT_EQ(texts({"A 1", "A 2", "B x", "B y"}, "A.B A"), (Set{"1.x 1", "1.y 1", "2.x 2", "2.y 2"}));
  EXPECT_EQ(texts({"H ONE", "H TWO", "ONE a", "ONE b", "TWO c"}, "H"), (Set{"a", "b", "c"}));
}

}  // namespace
}  // namespace pascaline::testing
