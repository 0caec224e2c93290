#include "core/util/shown_text.hpp"

#include <gtest/gtest.h>

namespace pascaline {
namespace {

TEST(ShownText, LinesStayLinesAndNothingElseMovesTheCursor) {
  EXPECT_EQ(clean_lines(""), "");
  EXPECT_EQ(clean_lines("a\nb"), "a\nb");
  EXPECT_EQ(clean_lines("\n\033[2Ja\r\n\n"), "\n [2Ja \n\n");
}

}  // namespace
}  // namespace pascaline
