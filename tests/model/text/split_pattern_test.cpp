#include "model/text/split_pattern.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "model/text/pattern_translation.hpp"
#include "tests/model/text/text_fixture.hpp"

namespace pascaline {
namespace {

using Pieces = std::vector<std::string_view>;
using testing::expect_holds;
using testing::text_error;

const char* const kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(SplitPatternTest, FirstAlternativeThatMatchesWins) {
  const SplitPattern pattern(kQwenPattern);
  EXPECT_EQ(pattern.split(""), Pieces{});
  EXPECT_EQ(pattern.split("I'm  at x=12,\n\n y"), (Pieces{"I", "'m", " ", " at", " x", "=", "1", "2", ",\n\n", " y"}));
  EXPECT_EQ(pattern.split("We'LL'ſ"), (Pieces{"We", "'LL", "'ſ"}));
  EXPECT_EQ(pattern.split("a  \n \n  b   "), (Pieces{"a", "  \n \n", " ", " b", "   "}));
  EXPECT_EQ(pattern.split("½ⅷ²३"), (Pieces{"½", "ⅷ", "²", "३"}));
}

TEST(SplitPatternTest, SpacesAreUnicodesWhiteSpace) {
  const SplitPattern pattern(R"(\s+)");
  for (const char* space : {"\t", "\v", "\f", "\r", " ", "\u0085", "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028",
                            "\u2029", "\u202f", "\u205f", "\u3000"}) {
    const std::string text = "a" + std::string(space) + space + "b";
    EXPECT_EQ(pattern.split(text).size(), 3U) << text;
  }
  for (const char* other : {"\u180e", "\u200b", "\u2060", "\ufeff", "\u001c"}) {
    const std::string text = "a" + std::string(other) + "b";
    EXPECT_EQ(pattern.split(text).size(), 1U) << text;
  }
  EXPECT_EQ(SplitPattern(R"([^\sx]+|\S)").split("a\u180ex b"), (Pieces{"a\u180e", "x", " ", "b"}));
}

TEST(SplitPatternTest, WhatLiesBetweenMatchesIsAPieceToo) {
  const SplitPattern pattern(R"(\p{N}+)");
  EXPECT_EQ(pattern.split("ab12cd3"), (Pieces{"ab", "12", "cd", "3"}));
  EXPECT_EQ(pattern.split("ab"), Pieces{"ab"});
}

TEST(SplitPatternTest, LimitIsAnErrorAndNeverAResult) {
  const SplitPattern small(R"((?:a|aa)+[bc])", 1000);
  EXPECT_EQ(small.split("aaab"), Pieces{"aaab"});
  const std::string text(60, 'a');
  expect_holds(text_error([&] { (void)small.split(text); }), "60 bytes at byte 0");
  const SplitPattern pattern(R"((?:a|aa)+[bc])");
  expect_holds(text_error([&] { (void)pattern.split(text); }), "PCRE2");
}

TEST(SplitPatternTest, LongRunsAreSplitWithinTheLimits) {
  const SplitPattern pattern(kQwenPattern, 0);
  constexpr std::size_t kLength = 300'000;
  for (const char c : {' ', 'x', '\n', '!', '7'}) {
    const std::string text = std::string(kLength, c) + "y";
    std::size_t total = 0;
    for (const std::string_view piece : pattern.split(text)) {
      total += piece.size();
    }
    EXPECT_EQ(total, text.size()) << c;
  }
}

TEST(SplitPatternTest, PatternsOfRelativesAreKnown) {
  for (
      const char* pattern :
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+)"}) {
    EXPECT_EQ(SplitPattern(pattern).split("ab").size(), 1U) << pattern;
  }
}

TEST(SplitPatternTest, WhatMightSplitOtherwiseIsRefused) {
  for (const char* construct :
       {R"(\w+)",    R"(\b)",  R"(\h)",   R"(\1)",          R"(\X)",     R"(\K)",     R"(\D)",   R"(\x41)",
        "a.",        "^a",     "a$",      R"([[:alpha:]])", R"([a&&b])", R"([a[b]])", R"([])",   R"(\p{Han})",
        R"(\p{^L})", R"(\pL)", R"(\p{L)", "(?i)a",          "(?<n>a)",   "(?>a)",     "(*UTF)a", "(?i:straße)",
        "(?i:ss)",   "(?i:A)", "a{2}+",   "a{2}?",          "a{,2}",     "a{x}",      "a{",      R"([\S])"}) {
    expect_holds(text_error([&] { (void)SplitPattern(construct); }), "construct '");
  }
}

TEST(SplitPatternTest, WrongPatternsAreErrorsThatSayWhere) {
  expect_holds(text_error([] { (void)SplitPattern("(a"); }), "at byte 2");
  expect_holds(text_error([] { (void)SplitPattern("a)"); }), "at byte 1");
  expect_holds(text_error([] { (void)SplitPattern("+a"); }), "at byte 0");
  expect_holds(text_error([] { (void)SplitPattern("[a"); }), "not closed");
  expect_holds(text_error([] { (void)SplitPattern("a*"); }), "empty");
  expect_holds(text_error([] { (void)SplitPattern(""); }), "empty");
  expect_holds(text_error([] { (void)SplitPattern(std::string(5000, 'a')); }), "5000 bytes");
  expect_holds(text_error([] { (void)SplitPattern(std::string(2000, '(') + "a" + std::string(2000, ')')); }), "PCRE2");
  expect_holds(text_error([] { (void)SplitPattern("a\xFF"); }), "PCRE2");
}

}  // namespace
}  // namespace pascaline
