#include <array>
#include <chrono>
#include <random>

#include "runtime/text/normalize.hpp"
#include "runtime/text/utf8.hpp"
#include "tests/core/util/mutator.hpp"
#include "tests/runtime/text/text_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::fuzz_seed;
using testing::fuzz_time;
using testing::Mutator;
using testing::small_tokenizer;
using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 30> kTokenizerWords{
    "\"model\"", "\"vocab\"",   "\"merges\"", "\"type\"", "\"BPE\"", "\"content\"",
    "\"id\"",    "\"special\"", "\"Regex\"",  "\"a b\"",  "[\"a\",", "\"NFC\"",
    "true",      "false",       "null",       "{",        "}",       "[",
    "]",         ",",           ":",          "\"",       "\\\\",    "\\u0000",
    "\\ud800",   "\\\\p{L}",    "(?:",        ")+",       "{65535}", "-9223372036854775808"};

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

// Parses and, if accepted, uses the tokenizer; anything but an Error fails the test.
void try_tokenizer(const std::string& text, int& accepted, int& refused) {
  const auto start = Clock::now();
  try {
    const Tokenizer tokenizer = Tokenizer::parse(text, "fuzz.json");
    ++accepted;
    for (const char* words : {"Hello world's <|im_end|> 12\n\n x", "a\u0301\u65e5\xFF", "    "}) {
      const std::vector<TokenId> ids = tokenizer.encode(words, AddedTokens::ignore);
      ASSERT_EQ(tokenizer.decode(ids, SpecialTokens::keep), nfc(valid_utf8(words)));
      const std::vector<TokenId> matched = tokenizer.encode(words, AddedTokens::match);
      (void)tokenizer.decode(matched, SpecialTokens::skip);
    }
  } catch (const Error& error) {
    // A message that is not valid UTF-8 could not be stored or reported.
    ASSERT_NO_THROW((void)json(error.what()).dump()) << error.what();
    ++refused;
  }
  ASSERT_LT(Clock::now() - start, std::chrono::seconds(10)) << text;
}

TEST(TokenizerFuzzTest, DamagedTextIsRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 11, kTokenizerWords);
  const std::string seed = tiny_tokenizer().dump();
  int accepted = 0;
  int refused = 0;
  for (const auto end = Clock::now() + fuzz_time(4); Clock::now() < end || refused < 50;) {
    ASSERT_NO_FATAL_FAILURE(try_tokenizer(mutator.damaged(seed), accepted, refused));
  }
  std::printf("%d accepted, %d refused\n", accepted, refused);
}

TEST(TokenizerFuzzTest, AlteredDocumentsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 12, kTokenizerWords);
  const json seed = tiny_tokenizer();
  json settings = seed;  // without the parts that are most of it, so that the rest is altered too
  settings["model"]["merges"] = json::array();
  int accepted = 0;
  int refused = 0;
  for (const auto end = Clock::now() + fuzz_time(4); Clock::now() < end || refused < 50 || accepted < 1;) {
    ASSERT_NO_FATAL_FAILURE(
        try_tokenizer(mutator.altered(mutator.below(2) == 0 ? seed : settings).dump(), accepted, refused));
  }
  std::printf("%d accepted, %d refused\n", accepted, refused);
}

TEST(TokenizerFuzzTest, TextComesBackNormalised) {
  std::mt19937_64 random(fuzz_seed());
  constexpr std::array<char32_t, 12> kBlocks{0x20,   0xC0,   0x300,  0x370,  0x600,   0x900,
                                             0x1100, 0x2000, 0x3040, 0xAC00, 0x1F300, 0};
  int rounds = 0;
  for (const auto end = Clock::now() + fuzz_time(4); Clock::now() < end || rounds < 100; ++rounds) {
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
  }
  std::printf("%d texts\n", rounds);
}

}  // namespace
}  // namespace pascaline
