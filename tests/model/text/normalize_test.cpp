#include "model/text/normalize.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

#include "core/error.hpp"

namespace pascaline {
namespace {

using namespace std::string_literals;

TEST(NormalizeTest, ComposesAsUnicodeSays) {
  EXPECT_EQ(nfc(""), "");
  EXPECT_EQ(nfc("plain\0text"s), "plain\0text"s);
  EXPECT_EQ(nfc("cafe\u0301\0e\u0301"s), "caf\u00e9\0\u00e9"s);
  EXPECT_EQ(nfc("\u212b"), "\u00c5");                                // a singleton
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");                  // canonical order
  EXPECT_EQ(nfc("\u1e9b\u0323"), "\u1e9b\u0323");                    // stays
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c");                          // excluded from composition
  EXPECT_EQ(nfc("\u1112\u1161\u11ab\uac00\u11a8"), "\ud55c\uac01");  // Hangul
  EXPECT_EQ(nfc("\ufb01\u00bd\u2460"), "\ufb01\u00bd\u2460");        // compatibility characters stay
  EXPECT_EQ(nfc("\u0301a"), "\u0301a");
}

TEST(NormalizeTest, ResultIsNormalised) {
  for (const char* text : {"e\u0301\u0323", "\u0e40\u0e01\u0e34", "\u09c7\u09be\u09d7", "\u1100\u1161\u1161"}) {
    EXPECT_EQ(nfc(nfc(text)), nfc(text));
  }
}

TEST(NormalizeTest, InvalidTextIsAnError) {
  EXPECT_THROW((void)nfc("\u65e5\xFF"), Error);
  EXPECT_THROW((void)nfc("\u65e5\xE6"), Error);
}

TEST(NormalizeTest, LongRunsOfMarksTakeNoQuadraticTime) {
  std::string text = "a";
  std::string expected = "\u1ea1";  // takes the first dot below
  constexpr int kPairs = 100'000;
  for (int i = 0; i < kPairs; ++i) {
    text += "\u0301\u0323";
    expected += i == 0 ? "" : "\u0323";
  }
  for (int i = 0; i < kPairs; ++i) {
    expected += "\u0301";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(nfc(text), expected);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace pascaline
