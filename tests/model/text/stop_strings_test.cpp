#include "model/text/stop_strings.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace pascaline {
namespace {

// What is shown of pieces, and after '|' what was held back at the end.
std::string shown(std::vector<std::string> texts, const std::vector<std::string>& pieces) {
  StopStrings stop(std::move(texts));
  std::string all;
  for (const std::string& piece : pieces) {
    all += stop.push(piece);
  }
  return all + (stop.found() ? "!" : "|") + stop.finish();
}

TEST(StopStringsTest, AnswersEndBeforeTheFirstOne) {
  EXPECT_EQ(shown({"END"}, {"so END of"}), "so !");
  EXPECT_EQ(shown({"END"}, {"so E", "N", "D of", "more"}), "so !");
  EXPECT_EQ(shown({"x", "END"}, {"so END x"}), "so !");
  EXPECT_EQ(shown({"END", "so"}, {"so END"}), "!");
  EXPECT_EQ(shown({"\n\n"}, {"a\n", "b\n", "\nc"}), "a\nb!");
}

TEST(StopStringsTest, WhatOnlyBeginsLikeOneIsShown) {
  EXPECT_EQ(shown({"END"}, {"so E", "NE", "x"}), "so ENEx|");
  EXPECT_EQ(shown({"END"}, {"so EN"}), "so |EN");
  EXPECT_EQ(shown({"aab"}, {"a", "a", "a", "b"}), "a!");
  EXPECT_EQ(shown({}, {"any", "thing"}), "anything|");
}

TEST(StopStringsTest, EmptyTextsAreRefused) { EXPECT_THROW(StopStrings({"a", ""}), Error); }

}  // namespace
}  // namespace pascaline
