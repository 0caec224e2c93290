#include "model/text/gguf_tokenizer.hpp"

#include <algorithm>
#include <cstdint>

#include "model/text/end_tokens.hpp"
#include "tests/model/text/gguf_fixture.hpp"

namespace pascaline {
namespace {

using Ids = std::vector<TokenId>;
using testing::expect_holds;
using testing::gguf_fixture;
using testing::small_gguf_data;
using testing::text_error;
using testing::views_of;

TokenId id_of(std::string_view spelling) {
  const std::vector<std::string_view> tokens = views_of(gguf_fixture()["tokens"]);
  const auto found = std::find(tokens.begin(), tokens.end(), spelling);
  EXPECT_NE(found, tokens.end()) << spelling;
  return static_cast<TokenId>(found - tokens.begin());
}

TEST(GgufTokenizerTest, AgreesWithTheReferenceInEverySplitting) {
  std::size_t splittings = 0;
  for (const auto& [name, encodings] : gguf_fixture()["encodings"].items()) {
    const GgufTokenizer built = build_gguf_tokenizer(small_gguf_data(name), "a.gguf");
    ASSERT_GE(encodings.size(), 40U);
    for (const nlohmann::json& entry : encodings) {
      EXPECT_EQ(built.tokenizer.encode(entry["text"].get<std::string>(), AddedTokens::match), entry["ids"].get<Ids>())
          << name << ": " << entry["text"];
    }
    ++splittings;
  }
  EXPECT_EQ(splittings, 5U);
}

TEST(GgufTokenizerTest, TheSplittingsDiffer) {
  const auto ids = [](std::string_view splitting, std::string_view text) {
    return build_gguf_tokenizer(small_gguf_data(splitting), "a.gguf").tokenizer.encode(text, AddedTokens::ignore);
  };
  EXPECT_EQ(ids("llama-bpe", "xqzj"), (Ids{id_of("xqzj")})) << "a whole piece";
  EXPECT_EQ(ids("smollm", "xqzj").size(), 4U);
  EXPECT_EQ(ids("llama-bpe", " xqzj").size(), 5U);
  EXPECT_EQ(ids("qwen2", "e\u0301"), ids("gpt-2", "\u00e9")) << "only Qwen's text is normalised";
  EXPECT_NE(ids("gpt-2", "e\u0301"), ids("gpt-2", "\u00e9"));
}

TEST(GgufTokenizerTest, TypesSayWhatATokenIs) {
  const Tokenizer tokenizer = build_gguf_tokenizer(small_gguf_data(), "a.gguf", 600).tokenizer;
  EXPECT_EQ(tokenizer.id_count(), 600U);
  EXPECT_EQ(tokenizer.special_ids().size(), 17U);
  EXPECT_TRUE(tokenizer.is_special(1));
  const TokenId users = id_of("<think>");
  EXPECT_FALSE(tokenizer.is_special(users));
  EXPECT_EQ(tokenizer.encode("<think>", AddedTokens::match), (Ids{users}));
  EXPECT_GT(tokenizer.encode("<think>", AddedTokens::ignore).size(), 1U);
  EXPECT_EQ(tokenizer.bytes(id_of("[PAD0]")), "") << "unused";
  EXPECT_FALSE(tokenizer.find("[PAD0]"));
  EXPECT_EQ(tokenizer.decode(Ids{1, users, id_of("\u0120the")}, SpecialTokens::skip), "<think> the");
  expect_holds(text_error([] { (void)build_gguf_tokenizer(small_gguf_data(), "a.gguf", 400); }), "only 400 rows");
}

TEST(GgufTokenizerTest, BytesWithoutATokenAreLeftOut) {
  GgufTokenizerData data = small_gguf_data();
  const auto place = static_cast<std::size_t>(id_of("Z"));
  (*data.tokens)[place] = "[PAD1]";
  (*data.types)[place] = 5;
  const Tokenizer tokenizer = build_gguf_tokenizer(data, "a.gguf").tokenizer;
  EXPECT_EQ(tokenizer.encode(" tZhe", AddedTokens::ignore), tokenizer.encode(" the", AddedTokens::ignore));
  EXPECT_EQ(tokenizer.encode("ZZZ", AddedTokens::ignore), Ids{});
  const std::string many(200, 'Z');
  EXPECT_EQ(tokenizer.encode(many + "a" + many, AddedTokens::ignore), tokenizer.encode("a", AddedTokens::ignore));
}

TEST(GgufTokenizerTest, UseIsAsTheMetadataSay) {
  GgufTokenizerData data = small_gguf_data();
  GgufTokenizer built = build_gguf_tokenizer(data, "a.gguf");
  EXPECT_FALSE(built.adds_bos);
  EXPECT_EQ(built.bos, 1);
  EXPECT_EQ(built.pad, 2);
  EXPECT_EQ(built.ends, (Ids{2, 0})) << "<|im_end|> by its id, <|endoftext|> by its name";
  data.eos = 5;
  data.eot = 4;
  data.eom = 5;
  data.add_bos = true;
  built = build_gguf_tokenizer(data, "a.gguf");
  EXPECT_EQ(built.ends, (Ids{5, 4, 2, 0}));
  EXPECT_TRUE(built.adds_bos);
  data.pre = "llama-bpe";
  data.add_bos.reset();
  EXPECT_TRUE(build_gguf_tokenizer(data, "a.gguf").adds_bos) << "Llama 3's default";
  data.add_bos = false;
  EXPECT_FALSE(build_gguf_tokenizer(data, "a.gguf").adds_bos);
}

// The small data, altered by `alter`, are refused with a message of one line that begins with file and key.
template <class Alter>
void expect_gguf_refused(const std::string& key, const std::string& part, const Alter& alter) {
  GgufTokenizerData data = small_gguf_data();
  alter(data);
  const std::string message = text_error([&] { (void)build_gguf_tokenizer(data, "a.gguf"); });
  EXPECT_EQ(message.rfind("a.gguf: key 'tokenizer.ggml." + key + "': ", 0), 0U) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_NO_THROW((void)nlohmann::json(message).dump()) << "not valid UTF-8";
  expect_holds(message, part);
}

using GgufData = GgufTokenizerData;

TEST(GgufTokenizerTest, OtherKindsAreRefused) {
  for (const char* kind : {"llama", "bert", "t5", "rwkv", "no\xFFne"}) {
    expect_gguf_refused("model", "only 'gpt2'", [&](GgufData& data) { data.model = kind; });
  }
  expect_gguf_refused("model", "is missing", [](GgufData& data) { data.model.reset(); });
  expect_gguf_refused("pre", "is missing", [](GgufData& data) { data.pre.reset(); });
  expect_gguf_refused("pre",
                      "'viking' is not a known way to split text (known: qwen2, llama-bpe, smollm, gpt-2, "
                      "default); if the model splits it as one of these does, gguf-new-metadata --pre-tokenizer NAME",
                      [](GgufData& data) { data.pre = "viking"; });
  expect_gguf_refused("add_space_prefix", "true is not supported",
                      [](GgufData& data) { data.add_space_prefix = true; });
  expect_gguf_refused("add_eos_token", "true is not supported", [](GgufData& data) { data.add_eos = true; });
}

TEST(GgufTokenizerTest, ListsThatDoNotFitAreRefused) {
  expect_gguf_refused("tokens", "is missing", [](GgufData& data) { data.tokens.reset(); });
  expect_gguf_refused("tokens", "is an empty list", [](GgufData& data) { data.tokens->clear(); });
  expect_gguf_refused("token_type", "is missing", [](GgufData& data) { data.types.reset(); });
  expect_gguf_refused("token_type", "has 498 entries for 499 tokens", [](GgufData& data) { data.types->pop_back(); });
  expect_gguf_refused("merges", "is missing", [](GgufData& data) { data.merges.reset(); });
  for (const std::int64_t type : {std::int64_t{0}, std::int64_t{6}, std::int64_t{7}, std::int64_t{-1}, INT64_MAX}) {
    expect_gguf_refused("token_type", "token 30 has the type", [&](GgufData& data) { (*data.types)[30] = type; });
  }
}

TEST(GgufTokenizerTest, DamagedTokensAreRefused) {
  const auto put = [](std::size_t place, std::string_view text) {
    return [=](GgufData& data) { (*data.tokens)[place] = text; };
  };
  expect_gguf_refused("tokens", "token 40 ('a b') is not spelled", put(40, "a b"));
  expect_gguf_refused("tokens", "token 40 ('\xEF\xBF\xBD') is not spelled", put(40, "\xFF"));
  expect_gguf_refused("tokens", "is empty", put(40, ""));
  expect_gguf_refused("tokens", "is empty", put(3, ""));
  expect_gguf_refused("tokens", "is a duplicate of token 20",
                      [](GgufData& data) { (*data.tokens)[40] = (*data.tokens)[20]; });
  expect_gguf_refused("tokens", "is a duplicate of token 1", put(3, "<|im_start|>"));
  expect_gguf_refused("tokens", "can come out of plain text",
                      [](GgufData& data) { (*data.types)[static_cast<std::size_t>(id_of("a"))] = 3; });
  expect_gguf_refused("tokens", "no token is a single byte",
                      [](GgufData& data) { std::fill(data.types->begin(), data.types->end(), 5); });
}

TEST(GgufTokenizerTest, DamagedMergesAreRefused) {
  const auto put = [](std::string_view text) { return [=](GgufData& data) { data.merges->back() = text; }; };
  for (const char* text : {"ab", "a b c", ""}) {
    expect_gguf_refused("merges", "is not two tokens with a space", put(text));
  }
  for (const char* text : {"a nothing", "nothing a", "a ", " a", " ", "\xFF a"}) {
    expect_gguf_refused("merges", "names a token that the vocabulary does not have", put(text));
  }
  expect_gguf_refused("merges", "('q z') gives a token that the vocabulary does not have", put("q z"));
  expect_gguf_refused("merges", "is a duplicate of an earlier one",
                      [](GgufData& data) { data.merges->back() = data.merges->front(); });
  expect_gguf_refused("merges", "can come out of plain text", [](GgufData& data) {
    (*data.types)[static_cast<std::size_t>(id_of("\u0120the"))] = 3;
    (*data.tokens)[static_cast<std::size_t>(id_of("\u0120the"))] = " the";
  });
}

TEST(GgufTokenizerTest, IdsOutOfRangeAreRefused) {
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{499}, INT64_MAX, INT64_MIN}) {
    expect_gguf_refused("bos_token_id", "ids go from 0 to 498", [&](GgufData& data) { data.bos = id; });
    expect_gguf_refused("eos_token_id", "ids go from 0 to 498", [&](GgufData& data) { data.eos = id; });
    expect_gguf_refused("eot_token_id", "ids go from 0 to 498", [&](GgufData& data) { data.eot = id; });
    expect_gguf_refused("eom_token_id", "ids go from 0 to 498", [&](GgufData& data) { data.eom = id; });
    expect_gguf_refused("padding_token_id", "ids go from 0 to 498", [&](GgufData& data) { data.pad = id; });
  }
  expect_gguf_refused("bos_token_id", "is missing", [](GgufData& data) {
    data.bos.reset();
    data.add_bos = true;
  });
}

}  // namespace
}  // namespace pascaline
