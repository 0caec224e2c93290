#include "core/util/csv.hpp"

#include <gtest/gtest.h>

#include <string>

namespace pascaline {
namespace {

TEST(CsvFieldTest, QuotesOnlyWhatMustBe) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
}

TEST(CsvFieldTest, NoCellIsAFormula) {
  EXPECT_EQ(csv_field("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("=A1,\"x\""), "\"'=A1,\"\"x\"\"\"");
  for (const std::string text :
       {"=1+1", "@SUM(A1)", "-2+3", "+x", "-", "+", "-.", "-inf", "--1", "\tx", "'=1", "''-2+3"}) {
    EXPECT_EQ(csv_field(text), "'" + text);
  }
  for (const std::string text : {"-2", "+0", "-2.5e-3", "-.5", "1-1", "a=b", "'quoted'", "'-2"}) {
    EXPECT_EQ(csv_field(text), text);
  }
  EXPECT_EQ(csv_field("\rx"), "\"'\rx\"");
}

TEST(CsvFieldTest, TheOriginalIsReadBack) {
  for (const std::string text :
       {"=1+1", "'=1+1", "''=1+1", "-2+3", "'-2+3", "-2", "'-2", "'", "''", "", "@", "'x", "\t", "+"}) {
    EXPECT_EQ(csv_original(csv_field(text)), text);
  }
}

}  // namespace
}  // namespace pascaline
