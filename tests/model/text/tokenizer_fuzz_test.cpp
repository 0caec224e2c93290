#include <array>
#include <chrono>
#include <deque>
#include <random>

#include "model/text/normalize.hpp"
#include "model/text/utf8.hpp"
#include "tests/core/util/fuzz_test.hpp"
#include "tests/model/text/gguf_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::fuzz_seed;
using testing::FuzzTest;
using testing::Mutator;
using testing::small_tokenizer;
using testing::word_list;

const std::vector<std::string_view> kTokenizerWords =
    word_list(R"("model"|"vocab"|"merges"|"type"|"BPE"|"content"|"id"|"special"|"Regex"|"a b"|["a",|"NFC"|true|)"
              R"(false|null|{|}|[|]|,|:|"|\\|\u0000|\ud800|\\p{L}|(?:|)+|{65535}|-9223372036854775808|"Digits"|)"
              R"("individual_digits"|"ByteLevel"|"Sequence"|"SpecialToken"|"TemplateProcessing")");

// A tokenizer of the 256 bytes, a few merges and added tokens: short, so that much is tried.
json tiny_tokenizer() {
  json document = testing::small_tokenizer_json();
  json& model = document["model"];
  json merges = json::array();
  for (std::size_t i = 0; i < 20; ++i) {
    merges.push_back(model["merges"][i]);
  }
  model["merges"] = merges;
  for (auto entry = model["vocab"].begin(); entry != model["vocab"].end();) {
    entry = entry.value().get<int>() >= 300 ? model["vocab"].erase(entry) : std::next(entry);
  }
  return document;
}

// Another of all that is read: digits, GPT-2's words, texts that begin with a token, and no normalisation.
json tiny_llama_tokenizer() {
  json document = tiny_tokenizer();
  document["normalizer"] = nullptr;
  document["model"]["ignore_merges"] = true;
  document["pre_tokenizer"]["pretokenizers"] = json::array(
      {{{"type", "Digits"}, {"individual_digits", true}}, {{"type", "ByteLevel"}, {"add_prefix_space", false}}});
  const json token{{"SpecialToken", {{"id", "<|im_end|>"}, {"type_id", 0}}}};
  const json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  document["post_processor"] = {{"type", "TemplateProcessing"},
                                {"single", json::array({token, text})},
                                {"special_tokens", {{"<|im_end|>", {{"ids", json::array({738})}}}}}};
  return document;
}

// What a text comes back as.
std::string expected_text(const std::string& tokenizer_json, std::string_view text) {
  const std::string valid = valid_utf8(text);
  return json::parse(tokenizer_json)["normalizer"].is_null() ? valid : nfc(valid);
}

// Bytes without a token are left out.
bool has_bytes_of(const Tokenizer& tokenizer, std::string_view text) {
  return std::all_of(text.begin(), text.end(), [&](char byte) { return tokenizer.find({&byte, 1}).has_value(); });
}

class TokenizerFuzzTest : public FuzzTest {
 protected:
  // Parses and, if accepted, uses the tokenizer; anything but an Error fails the test.
  void try_tokenizer(const std::string& text) {
    const auto start = Clock::now();
    try {
      const Tokenizer tokenizer = Tokenizer::parse(text, "fuzz.json");
      ++accepted_;
      for (const char* words : {"Hello world's <|im_end|> 12\n\n x", "a\u0301\u65e5\xFF", "    "}) {
        const std::vector<TokenId> ids = tokenizer.encode(words, AddedTokens::ignore);
        if (has_bytes_of(tokenizer, expected_text(text, words))) {
          ASSERT_EQ(tokenizer.decode(ids, SpecialTokens::keep), expected_text(text, words));
        }
        const std::vector<TokenId> matched = tokenizer.encode(words, AddedTokens::match);
        (void)tokenizer.decode(matched, SpecialTokens::skip);
      }
    } catch (const Error& error) {
      // A message that is not valid UTF-8 could not be stored or reported.
      ASSERT_NO_THROW((void)json(error.what()).dump()) << error.what();
      ++refused_;
    }
    ASSERT_LT(Clock::now() - start, std::chrono::seconds(10)) << text;
  }
};

TEST_F(TokenizerFuzzTest, DamagedTextIsRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 11, kTokenizerWords);
  const std::array seeds{tiny_tokenizer().dump(), tiny_llama_tokenizer().dump()};
  repeat(5, {}, [&] { try_tokenizer(mutator.damaged(seeds[mutator.below(2)])); });
}

TEST_F(TokenizerFuzzTest, AlteredDocumentsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 12, kTokenizerWords);
  const std::array seeds{tiny_tokenizer(), tiny_llama_tokenizer()};
  std::array settings = seeds;  // without the parts that are most of it, so that the rest is altered too
  for (json& each : settings) {
    each["model"]["merges"] = json::array();
  }
  repeat(5, {.accepted = 1},
         [&] { try_tokenizer(mutator.altered((mutator.below(2) == 0 ? seeds : settings)[mutator.below(2)]).dump()); });
}

// Damages what a GGUF file says of its tokenizer in one place; `texts` keeps what tokens and merges point to.
void damage_gguf_data(GgufTokenizerData& data, std::deque<std::string>& texts, Mutator& mutator) {
  constexpr std::array<std::int64_t, 8> kNumbers{-1, 0, 2, 3, 499, 1 << 24, INT64_MAX, INT64_MIN};
  constexpr std::array<std::string_view, 6> kSplittings{"smollm", "gpt-2", "qwen2", "llama-bpe", "default", "none"};
  const std::int64_t number = kNumbers[mutator.below(kNumbers.size())];
  const auto alter = [&](auto& list) {
    if (!list || list->empty()) {
      return;
    }
    auto& entry = (*list)[mutator.below(list->size())];
    if (mutator.below(8) == 0) {
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(mutator.below(list->size())));
    } else if (mutator.below(16) == 0) {
      list.reset();
    } else if (mutator.below(2) == 0) {
      entry = (*list)[mutator.below(list->size())];
    } else if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, std::string_view>) {
      entry = texts.emplace_back(mutator.damaged(std::string(entry)).substr(0, 200));
    } else {
      entry = mutator.below(2) == 0 ? static_cast<std::int64_t>(mutator.below(8)) : number;
    }
  };
  switch (mutator.below(8)) {
    case 0:
      return alter(data.tokens);
    case 1:
      return alter(data.types);
    case 2:
      return alter(data.merges);
    case 3:
      data.pre = kSplittings[mutator.below(kSplittings.size())];
      return;
    case 4:
      data.bos = number;
      return;
    case 5:
      data.eos = number;
      return;
    case 6:
      data.eot = number;
      return;
    default:
      data.add_bos = mutator.below(2) == 0;
      return;
  }
}

TEST_F(TokenizerFuzzTest, DamagedGgufDataAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 13, kTokenizerWords);
  const GgufTokenizerData seed = testing::small_gguf_data();
  repeat(5, {.accepted = 50}, [&] {
    GgufTokenizerData data = seed;
    std::deque<std::string> texts;
    for (std::size_t changes = 1 + mutator.below(3); changes-- > 0;) {
      damage_gguf_data(data, texts, mutator);
    }
    try {
      const GgufTokenizer built = build_gguf_tokenizer(data, "fuzz.gguf");
      ++accepted_;
      for (const char* words : {"Hello world's <|im_end|> 12\n\n x", "a\u0301\u65e5\xFF\x04", "    "}) {
        for (const TokenId id : built.tokenizer.encode(words, AddedTokens::ignore)) {
          ASSERT_FALSE(built.tokenizer.is_special(id)) << words;
        }
        const std::vector<TokenId> matched = built.tokenizer.encode(words, AddedTokens::match);
        (void)built.tokenizer.decode(matched, SpecialTokens::skip);
      }
      ASSERT_TRUE(!built.adds_bos || built.bos);
    } catch (const Error& error) {
      ASSERT_NO_THROW((void)json(error.what()).dump()) << error.what();
      ASSERT_EQ(std::string_view(error.what()).substr(0, 31), "fuzz.gguf: key 'tokenizer.ggml.");
      ++refused_;
    }
  });
}

TEST_F(TokenizerFuzzTest, TextComesBackNormalised) {
  std::mt19937_64 random(fuzz_seed());
  constexpr std::array<char32_t, 12> kBlocks{0x20,   0xC0,   0x300,  0x370,  0x600,   0x900,
                                             0x1100, 0x2000, 0x3040, 0xAC00, 0x1F300, 0};
  repeat(5, {.refused = 0, .accepted = 100}, [&] {
    std::string text;
    const char32_t first = kBlocks[random() % kBlocks.size()];
    for (std::size_t i = random() % 60; i-- > 0;) {
      auto code = static_cast<char32_t>(random() % 8 == 0 ? random() % 0x110000 : first + random() % 0x80);
      code = code >= 0xD800 && code <= 0xDFFF ? U' ' : code;
      append_utf8(text, random() % 6 == 0 ? U' ' : code);
    }
    if (random() % 4 == 0 && !text.empty()) {
      text[random() % text.size()] = static_cast<char>(static_cast<unsigned char>(random() % 256));
    }
    const std::string expected = nfc(valid_utf8(text));
    const std::vector<TokenId> ids = small_tokenizer().encode(text, AddedTokens::ignore);
    ASSERT_EQ(small_tokenizer().decode(ids, SpecialTokens::keep), expected) << json(expected).dump();
    ASSERT_EQ(small_tokenizer().encode(expected, AddedTokens::ignore), ids) << json(expected).dump();
    ++accepted_;
  });
}

}  // namespace
}  // namespace pascaline
