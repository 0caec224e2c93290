#include "report/text.hpp"

#include <gtest/gtest.h>

#include "report/json_values.hpp"

namespace pascaline {
namespace {

TEST(Text, TimesAreUtc) {
  EXPECT_EQ(utc_time(0), "-");
  EXPECT_EQ(utc_time(1'700'000'000'123), "2023-11-14 22:13 UTC");
}

TEST(Text, NumbersAreShort) {
  EXPECT_EQ(short_number(12'345.6), "12346");
  EXPECT_EQ(short_number(999.96), "1000");
  EXPECT_EQ(short_number(0.123456), "0.1235");
}

TEST(Text, FateOfADefaultIsToldEvenIfNothingIsStoredOfIt) {
  EXPECT_EQ(default_fate("timed_out: timed out"), "timed_out: timed out");
  EXPECT_EQ(default_fate(""), "not valid or not tried");
}

TEST(Text, MarkdownKeepsPlainNamesReadable) {
  EXPECT_EQ(markdown_escape("BLOCK_M=64 A=1"), "BLOCK_M=64 A=1");
  EXPECT_EQ(markdown_escape("_a_ b_"), "\\_a\\_ b\\_");
}

TEST(Text, LinesAreCleanUtf8) {
  EXPECT_EQ(clean_line("a\tb\r\nc\x1b[0m \"q\" \\ µ"), "a b  c [0m \"q\" \\ µ");
  EXPECT_EQ(clean_line("a\xc2\x9b[0m\xc2\x80\xc2\xa0\xc2\xb5"), "a [0m \xc2\xa0\xc2\xb5");
  EXPECT_EQ(clean_line("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(clean_line("a\u2028b\u202ec\u2069\u200f\u061c"), "a\ufffdb\ufffdc\ufffd\ufffd\ufffd");
  EXPECT_EQ(clean_line("a\u2013b\u2026c\u20ac \u2264 \u0639"), "a\u2013b\u2026c\u20ac \u2264 \u0639");
  EXPECT_EQ(clean_line(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(json_text("a\u202eb\n"), "a\ufffdb\n");
  EXPECT_EQ(display_width("µm"), 2U);
}

}  // namespace
}  // namespace pascaline
