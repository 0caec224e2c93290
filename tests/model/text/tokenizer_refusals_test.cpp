#include <utility>

#include "tests/model/text/text_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::expect_holds;
using testing::small_tokenizer_json;
using testing::text_error;

std::string refusal_of(const std::string& text) {
  return text_error([&] { (void)Tokenizer::parse(text, "t.json"); });
}

// The small tokenizer with the value at `pointer` replaced is refused with a message that begins with the place.
void expect_refused(const std::string& pointer, const json& value, const std::string& part,
                    const std::string& place = {}) {
  json document = small_tokenizer_json();
  document[json::json_pointer(pointer)] = value;
  const std::string message = refusal_of(document.dump());
  EXPECT_EQ(message.rfind("t.json:" + (place.empty() ? pointer : place) + ": ", 0), 0U) << message;
  expect_holds(message, part);
}

TEST(TokenizerRefusalsTest, OtherKindsAreRefusedByKey) {
  expect_refused("/model/type", "Unigram", "'Unigram' is not supported");
  expect_refused("/model/dropout", 0.1, "is set");
  expect_refused("/model/continuing_subword_prefix", "##", "is set");
  expect_refused("/model/end_of_word_suffix", "</w>", "is set");
  expect_refused("/model/byte_fallback", true, "is set");
  expect_refused("/model/ignore_merges", "yes", "expected true or false");
  expect_refused("/model/fuse_unk", true, "is set");
  expect_refused("/version", "2.0", "is set");
  expect_refused("/normalizer/type", "NFKC", "'NFKC' is not supported");
  expect_refused("/normalizer", "NFC", "expected an object");
  expect_refused("/pre_tokenizer", nullptr, "expected an object");
  expect_refused("/pre_tokenizer/type", "Whitespace", "'Whitespace' is not supported");
  expect_refused("/pre_tokenizer/pretokenizers", json::array(), "found 0");
  expect_refused("/pre_tokenizer/pretokenizers/0/type", "Punctuation", "'Split' or 'Digits' here");
  expect_refused("/pre_tokenizer/pretokenizers/0", {{"type", "Digits"}, {"individual_digits", 1}},
                 "expected true or false", "/pre_tokenizer/pretokenizers/0/individual_digits");
  expect_refused("/pre_tokenizer/pretokenizers/0", small_tokenizer_json()["pre_tokenizer"]["pretokenizers"][1],
                 "'ByteLevel' is not supported", "/pre_tokenizer/pretokenizers/0/type");
  expect_refused("/pre_tokenizer/pretokenizers/0/behavior", "Removed", "'Removed'");
  expect_refused("/pre_tokenizer/pretokenizers/0/invert", true, "true is not supported");
  expect_refused("/pre_tokenizer/pretokenizers/1/type", "Metaspace", "'Metaspace'");
  expect_refused("/pre_tokenizer/pretokenizers/1/add_prefix_space", true, "true is not supported");
  expect_refused("/pre_tokenizer/pretokenizers/1/use_regex", 1, "expected true or false");
  expect_refused("/post_processor/type", "BertProcessing", "'BertProcessing'");
  expect_refused("/decoder/type", "WordPiece", "'WordPiece'");
  expect_refused("/decoder", nullptr, "expected an object");
}

TEST(TokenizerRefusalsTest, PatternsThatMightSplitOtherwiseAreRefused) {
  const std::string place = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
  expect_refused(place, R"(\w+|\W+)", R"(construct '\w')");
  expect_refused(place, "(a", "PCRE2");
  expect_refused(place, 7, "expected text");
  expect_refused("/pre_tokenizer/pretokenizers/0/pattern", {{"String", " "}}, "'Regex' is missing");
}

TEST(TokenizerRefusalsTest, DamagedVocabulariesAreRefused) {
  expect_refused("/model/vocab", json::array(), "found array");
  expect_refused("/model/vocab", 7, "found number");
  expect_refused("/model/vocab/the", "7", "found string");
  expect_refused("/model/vocab/the", 1.5, "found number");
  expect_refused("/model/vocab/a~1b", json::object(), "found object");
  expect_refused("/model/vocab/the", -1, "-1 is not a valid token id", "/model/vocab");
  expect_refused("/model/vocab/the", 1 << 24, "16777216 is not a valid token id", "/model/vocab");
  expect_refused("/model/vocab/the", UINT64_MAX, "found number");
  expect_refused("/model/vocab/the", 7, "is a duplicate", "/model/vocab");
  expect_refused("/model/vocab/日", 900, "'日' is not spelled", "/model/vocab");
  expect_refused("/model/vocab/", 900, "'' is not spelled", "/model/vocab");
  json document = small_tokenizer_json();
  for (auto entry = document["model"]["vocab"].begin(); entry != document["model"]["vocab"].end();) {
    entry = entry.value().get<int>() < 256 ? document["model"]["vocab"].erase(entry) : std::next(entry);
  }
  expect_holds(refusal_of(document.dump()), "/model/vocab: no token is a single byte");
}

TEST(TokenizerRefusalsTest, AnUnknownTokenMustNotBeNeeded) {
  json document = small_tokenizer_json();
  document["model"]["unk_token"] = "<|endoftext|>";
  EXPECT_NO_THROW((void)Tokenizer::parse(document.dump(), "t.json"));
  document["model"]["vocab"].erase("\u00C0");  // that of byte C0
  expect_holds(refusal_of(document.dump()), "t.json:/model/unk_token: is set, and some bytes have no token");
}

TEST(TokenizerRefusalsTest, OnlyATokenOfBeginningIsAdded) {
  const json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json token{{"SpecialToken", {{"id", "<|endoftext|>"}, {"type_id", 0}}}};
  const auto processor = [](const json& single, const json& ids = json::array({736})) {
    return json{{"type", "TemplateProcessing"},
                {"single", single},
                {"special_tokens", {{"<|endoftext|>", {{"id", "<|endoftext|>"}, {"ids", ids}}}}}};
  };
  const json bytes = small_tokenizer_json()["post_processor"];
  json document = small_tokenizer_json();
  EXPECT_EQ(Tokenizer::parse(document.dump(), "t.json").beginning(), std::nullopt);
  document["post_processor"] = processor(json::array({text}));
  EXPECT_EQ(Tokenizer::parse(document.dump(), "t.json").beginning(), std::nullopt);
  document["post_processor"] = processor(json::array({token, text}));
  EXPECT_EQ(Tokenizer::parse(document.dump(), "t.json").beginning(), 736);
  document["post_processor"] = {{"type", "Sequence"},
                                {"processors", json::array({bytes, processor(json::array({token, text}))})}};
  EXPECT_EQ(Tokenizer::parse(document.dump(), "t.json").beginning(), 736);
  for (const json& single : {json::array({text, token}), json::array({token, token, text}), json::array({token}),
                             json::array(), json::array({text, text})}) {
    expect_refused("/post_processor", processor(single), "at most one token before it", "/post_processor/single");
  }
  expect_refused("/post_processor", processor(json::array({token, text}), json::array({736, 737})),
                 "expected one token, found 2", "/post_processor/special_tokens/<|endoftext|>/ids");
  expect_refused("/post_processor", processor(json::array({token, text}), json::array({5000})), "which there is not");
  expect_refused("/post_processor", processor(json::array({token, text}), json::array({-1})),
                 "-1 is not a valid token id");
  const json twice = processor(json::array({token, text}));
  expect_refused("/post_processor", {{"type", "Sequence"}, {"processors", json::array({twice, twice})}},
                 "begins with two tokens", "/post_processor/processors/1");
}

TEST(TokenizerRefusalsTest, DamagedMergesAreRefused) {
  expect_refused("/model/merges", json::object(), "expected an array");
  for (const json& wrong : {json("ab"), json("a b c"), json(" b"), json("a "), json("")}) {
    expect_refused("/model/merges/3", wrong, "a space between them");
  }
  expect_refused("/model/merges/3", {"a"}, "found 1");
  expect_refused("/model/merges/3", {"a", "b", "c"}, "found 3");
  expect_refused("/model/merges/3", {"a", 7}, "found number");
  expect_refused("/model/merges/3", {"a", json::array()}, "found array");
  expect_refused("/model/merges/3", nullptr, "found null");
  expect_refused("/model/merges/3", {"日", "a"}, "'日' is not in the vocabulary");
  expect_refused("/model/merges/3", {"z", "\u0143"}, "'z\u0143' is not in the vocabulary");
  expect_refused("/model/merges/3", small_tokenizer_json()["model"]["merges"][0], "by an earlier entry");
}

TEST(TokenizerRefusalsTest, DamagedAddedTokensAreRefused) {
  expect_refused("/added_tokens", 7, "expected an array");
  expect_refused("/added_tokens/0/content", "", "must not be empty");
  expect_refused("/added_tokens/0/id", -5, "is not a valid token id");
  expect_refused("/added_tokens/0/id", 1.5, "expected an integer");
  expect_refused("/added_tokens/0/special", "yes", "expected true or false");
  expect_refused("/added_tokens/0/lstrip", 1, "expected true or false");
  expect_refused("/added_tokens/0/rstrip", "no", "expected true or false");
  expect_refused("/added_tokens/0/single_word", 0, "expected true or false");
  expect_refused("/added_tokens/1/content", "<|endoftext|>", "already belongs to another token", "/added_tokens/1");
  expect_refused("/added_tokens/1/id", 736, "already belongs to another token", "/added_tokens/1");
  expect_refused("/added_tokens/1/id", 0, "already belongs to another token", "/added_tokens/1");
  expect_refused("/added_tokens/11", small_tokenizer_json()["added_tokens"][0], "already belongs to another token");
}

TEST(TokenizerRefusalsTest, SpecialTokensThatPlainTextGivesAreRefused) {
  const json vocabulary = small_tokenizer_json()["model"]["vocab"];
  for (const char* token : {"a", "the"}) {
    json document = small_tokenizer_json();
    document["added_tokens"][0]["content"] = token;
    document["added_tokens"][0]["id"] = vocabulary.at(token);
    expect_holds(refusal_of(document.dump()), std::string("t.json:/added_tokens: the special token '") + token + "'");
    document["added_tokens"][0]["special"] = false;
    const Tokenizer tokenizer = Tokenizer::parse(document.dump(), "t.json");
    EXPECT_EQ(tokenizer.require(token), vocabulary.at(token).get<TokenId>());
  }
}

TEST(TokenizerRefusalsTest, FilesThatAreNoJsonAreRefused) {
  expect_holds(refusal_of(""), "t.json: not valid JSON at byte 1");
  expect_holds(refusal_of("{} {}"), "not valid JSON at byte 4");
  expect_holds(refusal_of("[]"), "t.json: expected an object, found array");
  expect_holds(refusal_of("7"), "found number");
  expect_holds(refusal_of("{}"), "the key 'model' is missing");
  expect_holds(refusal_of(R"({"model": {"type": "BPE", "type": "BPE"}})"),
               "t.json:/model/type: this key is a duplicate");
  expect_holds(refusal_of(R"({"model": {"vocab": {}, "vocab": {}}})"), "t.json:/model/vocab: this key is a duplicate");
  expect_holds(refusal_of(R"({"a": [0, {"b/c": 0, "b/c": 0}]})"), "t.json:/a/1/b~1c: this key is a duplicate");
  expect_holds(refusal_of(std::string(100'000, '[')), "deeper than 64 levels");
  expect_holds(refusal_of("{\"model\": {\"type\": \"\xFF\"}}"), "not valid JSON");
  expect_holds(refusal_of(testing::small_tokenizer_text().substr(0, 9000)), "not valid JSON at byte 9001");
  expect_holds(text_error([] { (void)Tokenizer::load("/nonexistent/tokenizer.json"); }),
               "/nonexistent/tokenizer.json: there is no such file, which text needs");
}

TEST(TokenizerRefusalsTest, SequencesOfNormalizersAreRead) {
  json document = small_tokenizer_json();
  const std::string marks = "o\u0308";
  const auto ids = [&](const json& normalizer) {
    document["normalizer"] = normalizer;
    return Tokenizer::parse(document.dump(), "t.json").encode(marks, AddedTokens::ignore);
  };
  const auto composed = ids({{"type", "NFC"}});
  const auto as_it_is = ids(nullptr);
  ASSERT_NE(composed, as_it_is);
  EXPECT_EQ(ids({{"type", "Sequence"}, {"normalizers", json::array()}}), as_it_is);
  EXPECT_EQ(ids({{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}}), composed);
  document.erase("normalizer");
  EXPECT_EQ(Tokenizer::parse(document.dump(), "t.json").encode(marks, AddedTokens::ignore), as_it_is);
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}};
  expect_holds(refusal_of(document.dump()), "t.json:/normalizer/normalizers/0/type: 'Lowercase' is not supported");
}

TEST(TokenizerRefusalsTest, MissingKeysAreNamed) {
  for (const auto& [parent, key] :
       std::initializer_list<std::pair<const char*, const char*>>{{"", "model"},
                                                                  {"", "pre_tokenizer"},
                                                                  {"", "decoder"},
                                                                  {"/model", "type"},
                                                                  {"/model", "vocab"},
                                                                  {"/model", "merges"},
                                                                  {"/added_tokens/2", "content"}}) {
    json document = small_tokenizer_json();
    document[json::json_pointer(parent)].erase(key);
    expect_holds(refusal_of(document.dump()), std::string("the key '") + key + "' is missing");
  }
}

}  // namespace
}  // namespace pascaline
