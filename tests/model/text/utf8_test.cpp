#include "model/text/utf8.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "model/text/byte_level.hpp"

namespace pascaline {
namespace {

using namespace std::string_literals;

TEST(Utf8Test, EveryCharacterComesBackAndNoSurrogateDoes) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    std::string text;
    append_utf8(text, code);
    const Utf8Step step = next_utf8(text + "x");
    if (code >= 0xD800 && code <= 0xDFFF) {
      ASSERT_EQ(step.kind, Utf8Step::Kind::invalid) << static_cast<std::uint32_t>(code);
      continue;
    }
    ASSERT_EQ(step.kind, Utf8Step::Kind::character) << static_cast<std::uint32_t>(code);
    ASSERT_EQ(step.code, code);
    ASSERT_EQ(step.bytes, text.size());
    for (std::size_t length = 1; length < text.size(); ++length) {
      const Utf8Step part = next_utf8(std::string_view(text).substr(0, length));
      ASSERT_EQ(part.kind, Utf8Step::Kind::incomplete) << static_cast<std::uint32_t>(code);
      ASSERT_EQ(part.bytes, length);
    }
  }
}

TEST(Utf8Test, MaximalSubpartsAreReplaced) {
  const std::string r(kReplacement);
  const std::vector<std::pair<std::string, std::string>> cases{{"", ""},
                                                               {"a\0b"s, "a\0b"s},
                                                               {"\x80", r},
                                                               {"a\xFF"
                                                                "b",
                                                                "a" + r + "b"},
                                                               {"\xC0\x80", r + r},
                                                               {"\xC1\xBF", r + r},
                                                               {"\xE0\x80\x80", r + r + r},
                                                               {"\xED\xA0\x80", r + r + r},
                                                               {"\xF4\x90\x80\x80", r + r + r + r},
                                                               {"\xF5\x80", r + r},
                                                               {"\xE2\x82", r},
                                                               {"\xE2\x82z", r + "z"},
                                                               {"\xF0\x9F\x8E\xF0\x9F\x8E\x89", r + "\xF0\x9F\x8E\x89"},
                                                               {"\xF1\x80\x80\xE1\x80\xC2"
                                                                "b\x80"
                                                                "c\x80\xBF"
                                                                "d",
                                                                r + r + r + "b" + r + "c" + r + r + "d"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(valid_utf8(text), expected);
  }
}

TEST(ByteLevelTest, EveryByteHasItsCharacter) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(bytes_of_spelling(spelling_of_bytes(all)), all);
  EXPECT_EQ(spelling_of_bytes(" a\n\x7F\xAD\xFF"s + "\0"s), "Ġa\u010A\u0121\u0143ÿ\u0100");
  for (const char* other : {" ", "\n", "\u007f", "\u0144", "\u00ad", "日"}) {
    EXPECT_EQ(bytes_of_spelling("a"s + other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace pascaline
