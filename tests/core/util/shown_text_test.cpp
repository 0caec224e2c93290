#include "core/util/shown_text.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

TEST(ShownText, LinesStayLinesAndNothingElseMovesTheCursor) {
  EXPECT_EQ(clean_lines(""), "");
  EXPECT_EQ(clean_lines("a\nb"), "a\nb");
  EXPECT_EQ(clean_lines("\n\033[2Ja\r\n\n"), "\n [2Ja \n\n");
}

TEST(ShownText, AModelsTextCannotCommandATerminal) {
  EXPECT_EQ(terminal_text("\033]0;title\a\033[2J"), "\ufffd]0;title\ufffd\ufffd[2J");
  EXPECT_EQ(terminal_text("a\rb\bc\x7f\x00"), "a\ufffdb\ufffdc\ufffd");
  EXPECT_EQ(terminal_text("\u009b31m\u0090\u00a0\u00e9"), "\ufffd31m\ufffd\u00a0\u00e9");
  EXPECT_EQ(terminal_text("a\tb\r\nc\n\u200f\u05d0 \U0001f600"), "a\tb\nc\n\u200f\u05d0 \U0001f600");
  EXPECT_EQ(terminal_text("\xc2"), "\xc2");
}

TEST(ShownText, LongTextsAreCutInTheirMiddle) {
  EXPECT_EQ(bounded("short", 5), "short");
  const std::string cut = bounded("begin" + std::string(1000, 'x') + "end", 40);
  EXPECT_EQ(cut, "begin" + std::string(25, 'x') + "… (968 bytes left out) …" + std::string(7, 'x') + "end");
  for (std::size_t most = 8; most < 20; ++most) {  // characters of two, three and four bytes
    std::string wide;
    for (int i = 0; i < 20; ++i) {
      wide += "é€😀";
    }
    EXPECT_EQ(shown_text(bounded(wide, most)).find("\ufffd"), std::string::npos) << most;
  }
  EXPECT_LT(bounded(std::string(1000, '\x80'), 100).size(), 200U) << "not UTF-8";
}

TEST(ShownText, NoLineIsEndless) {
  const std::string endless(5'000'000, 'x');
  EXPECT_LT(clean_line(endless).size(), kMaxShownLine + 100);
  EXPECT_LT(clean_name(endless).size(), kMaxShownName + 100);
  std::string lines;
  for (int i = 0; i < 100'000; ++i) {
    lines += "line\n";
  }
  EXPECT_LT(clean_lines(lines).size(), kMaxShownText + 100);
  EXPECT_TRUE(clean_line("cannot read " + endless + ": give another file").ends_with(": give another file"));
}

}  // namespace
}  // namespace pascaline
