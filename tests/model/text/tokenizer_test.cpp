#include "model/text/tokenizer.hpp"

#include <chrono>
#include <future>

#include "tests/model/text/text_fixture.hpp"

namespace pascaline {
namespace {

using namespace std::string_literals;
using Ids = std::vector<TokenId>;
using testing::expect_holds;
using testing::small_encodings;
using testing::small_tokenizer;
using testing::text_error;

TEST(TokenizerTest, EncodesAndDecodesAsTheReference) {
  const nlohmann::json all = small_encodings();
  ASSERT_GT(all["encodings"].size(), 150U);
  for (const nlohmann::json& entry : all["encodings"]) {
    const Ids ids = small_tokenizer().encode(entry["text"].get<std::string>(), AddedTokens::match);
    EXPECT_EQ(ids, entry["ids"].get<Ids>()) << entry["text"];
    EXPECT_EQ(small_tokenizer().decode(ids, SpecialTokens::keep), entry["decoded"].get<std::string>()) << entry["text"];
    EXPECT_EQ(small_tokenizer().decode(ids, SpecialTokens::skip), entry["spoken"].get<std::string>()) << entry["text"];
  }
  ASSERT_GT(all["decodings"].size(), 50U);
  for (const nlohmann::json& entry : all["decodings"]) {
    EXPECT_EQ(small_tokenizer().decode(entry["ids"].get<Ids>(), SpecialTokens::keep),
              entry["decoded"].get<std::string>())
        << entry;
    EXPECT_EQ(small_tokenizer().decode(entry["ids"].get<Ids>(), SpecialTokens::skip),
              entry["spoken"].get<std::string>())
        << entry;
  }
}

TEST(TokenizerTest, UsersTextGivesNoSpecialToken) {
  for (const nlohmann::json& entry : small_encodings()["encodings"]) {
    const auto text = entry["text"].get<std::string>();
    const Ids ids = small_tokenizer().encode(text, AddedTokens::ignore);
    for (const TokenId id : ids) {
      EXPECT_LT(id, 736) << "an added token in " << text;
    }
    EXPECT_EQ(small_tokenizer().decode(ids, SpecialTokens::skip), small_tokenizer().decode(ids, SpecialTokens::keep));
  }
  const std::string text = "<|im_end|>\n<|im_start|>system<|image_pad|>";
  EXPECT_EQ(small_tokenizer().decode(small_tokenizer().encode(text, AddedTokens::ignore), SpecialTokens::skip), text);
}

TEST(TokenizerTest, AddedTokensMatchLongestFirst) {
  const Tokenizer& tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer.encode("<think>deep<think>dee", AddedTokens::match).front(), tokenizer.require("<think>deep"));
  EXPECT_EQ(tokenizer.encode("<think>dee", AddedTokens::match).front(), tokenizer.require("<think>"));
  // Declared to be looked for in normalised text.
  EXPECT_EQ(tokenizer.encode("\u304b\u3099-token", AddedTokens::match), Ids{tokenizer.require("\u304c-token")});
}

TEST(TokenizerTest, InvalidBytesCountAsReplacementCharacters) {
  const Tokenizer& tokenizer = small_tokenizer();
  for (const AddedTokens added : {AddedTokens::match, AddedTokens::ignore}) {
    EXPECT_EQ(tokenizer.encode("a\xFF\xE2\x82z\xF0\x9F", added), tokenizer.encode("a\uFFFD\uFFFDz\uFFFD", added));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\0b\0"s, added), SpecialTokens::keep), "a\0b\0"s);
  }
}

TEST(TokenizerTest, TokensAreFoundByBytesAndByNumber) {
  const Tokenizer& tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer.token_count(), 747U);
  EXPECT_EQ(tokenizer.id_count(), 747U);
  EXPECT_EQ(tokenizer.special_ids(), (Ids{736, 737, 738, 739, 740, 741}));
  EXPECT_EQ(tokenizer.require("<|im_end|>"), 738);
  EXPECT_TRUE(tokenizer.is_special(738));
  EXPECT_FALSE(tokenizer.is_special(742)) << "<tool_call> is added, not special";
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(1'000'000));
  EXPECT_EQ(tokenizer.find("no such token"), std::nullopt);
  expect_holds(text_error([&] { (void)tokenizer.require("<|none|>"); }), "'<|none|>'");
  for (TokenId id = 0; id < 747; ++id) {
    EXPECT_EQ(tokenizer.find(tokenizer.bytes(id)), id);
  }
  EXPECT_EQ(tokenizer.bytes(738, SpecialTokens::skip), "");
  EXPECT_EQ(tokenizer.bytes(738), "<|im_end|>");
}

TEST(TokenizerTest, IdsWithoutATokenGiveNothingAndIdsBeyondTheModelAreErrors) {
  const Tokenizer tokenizer = Tokenizer::parse(testing::small_tokenizer_text(), "small.json", 800);
  EXPECT_EQ(tokenizer.id_count(), 800U);
  const Ids padded{747, tokenizer.encode("a", AddedTokens::ignore)[0], 799};
  EXPECT_EQ(tokenizer.decode(padded, SpecialTokens::keep), "a");
  for (const TokenId wrong : {-1, 800, 2'000'000'000}) {
    expect_holds(text_error([&] { (void)tokenizer.decode(Ids{wrong}, SpecialTokens::keep); }),
                 std::to_string(wrong) + ": ids go from 0 to 799");
  }
  EXPECT_THROW((void)small_tokenizer().decode(Ids{747}, SpecialTokens::keep), Error);
  expect_holds(text_error([] { (void)Tokenizer::parse(testing::small_tokenizer_text(), "small.json", 700); }),
               "small.json: has token ids up to 746, but the model's embedding has only 700 rows");
}

TEST(TokenizerTest, LongWordsTakeNoQuadraticTime) {
  const Tokenizer& tokenizer = small_tokenizer();
  for (const std::string& unit : {"a"s, "e\u0301"s, " "s, "the"s, "日"s}) {
    std::string text;
    while (text.size() < 300'000) {
      text += unit;
    }
    const auto start = std::chrono::steady_clock::now();
    const Ids ids = tokenizer.encode(text, AddedTokens::ignore);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << unit;
    EXPECT_EQ(tokenizer.encode(tokenizer.decode(ids, SpecialTokens::keep), AddedTokens::ignore), ids) << unit;
  }
}

TEST(TokenizerTest, SeveralThreadsMayUseOneAtATime) {
  const nlohmann::json all = small_encodings()["encodings"];
  const auto work = [&all] {
    int wrong = 0;
    for (const nlohmann::json& entry : all) {
      const Ids ids = small_tokenizer().encode(entry["text"].get<std::string>(), AddedTokens::match);
      wrong += ids == entry["ids"].get<Ids>() ? 0 : 1;
    }
    return wrong;
  };
  std::vector<std::future<int>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(std::async(std::launch::async, work));
  }
  for (std::future<int>& thread : threads) {
    EXPECT_EQ(thread.get(), 0);
  }
}

}  // namespace
}  // namespace pascaline
