#include "model/text/decoder.hpp"

#include <gtest/gtest.h>

#include <random>

#include "model/text/utf8.hpp"
#include "tests/model/text/text_fixture.hpp"

namespace pascaline {
namespace {

using Ids = std::vector<TokenId>;
using testing::small_tokenizer;

TokenId byte_token(unsigned char byte) { return small_tokenizer().require(std::string(1, static_cast<char>(byte))); }

TEST(StreamDecoderTest, HoldsBackWhatIsNoCharacterYet) {
  StreamDecoder decoder(small_tokenizer());
  EXPECT_EQ(decoder.push(byte_token(0xF0)), "");
  EXPECT_EQ(decoder.push(byte_token(0x9F)), "");
  EXPECT_EQ(decoder.push(byte_token(0x8E)), "");
  EXPECT_EQ(decoder.push(byte_token(0x89)), "🎉");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoderTest, WhatCannotBecomeACharacterIsReplacedAtOnce) {
  StreamDecoder decoder(small_tokenizer());
  EXPECT_EQ(decoder.push(byte_token(0xE2)), "");
  EXPECT_EQ(decoder.push(byte_token('a')), std::string(kReplacement) + "a");
  EXPECT_EQ(decoder.push(byte_token(0x80)), kReplacement);
  EXPECT_EQ(decoder.push(byte_token(0xE2)), "");
  EXPECT_EQ(decoder.push(byte_token(0x82)), "");
  EXPECT_EQ(decoder.finish(), kReplacement);
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.push(byte_token('b')), "b");
}

TEST(StreamDecoderTest, SpecialTokensAreSkippedOrKept) {
  const TokenId end = small_tokenizer().require("<|im_end|>");
  EXPECT_EQ(StreamDecoder(small_tokenizer()).push(end), "");
  EXPECT_EQ(StreamDecoder(small_tokenizer(), SpecialTokens::keep).push(end), "<|im_end|>");
  StreamDecoder decoder(small_tokenizer());
  EXPECT_EQ(decoder.push(byte_token(0xC3)), "");
  EXPECT_THROW((void)decoder.push(9999), Error);
  EXPECT_EQ(decoder.push(byte_token(0xA9)), "é") << "the wrong id has changed nothing";
}

TEST(StreamDecoderTest, PutTogetherItIsTheWholeText) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    for (std::size_t i = random() % 12; i-- > 0;) {
      // Half of them single bytes from 80 on, which make and break characters.
      ids.push_back(random() % 2 == 0 ? byte_token(static_cast<unsigned char>(0x80 + random() % 0x78))
                                      : static_cast<TokenId>(random() % small_tokenizer().id_count()));
    }
    for (const SpecialTokens special : {SpecialTokens::keep, SpecialTokens::skip}) {
      StreamDecoder decoder(small_tokenizer(), special);
      std::string text;
      for (const TokenId id : ids) {
        const std::string part = decoder.push(id);
        ASSERT_EQ(valid_utf8(part), part);
        text += part;
      }
      text += decoder.finish();
      ASSERT_EQ(text, small_tokenizer().decode(ids, special));
    }
  }
}

}  // namespace
}  // namespace pascaline
