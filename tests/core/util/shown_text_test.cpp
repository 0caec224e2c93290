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

}  // namespace
}  // namespace pascaline
