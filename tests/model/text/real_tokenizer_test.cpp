#include <zlib.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include "model/text/decoder.hpp"
#include "model/text/normalize.hpp"
#include "tests/model/text/text_fixture.hpp"

namespace pascaline {
namespace {

using Ids = std::vector<TokenId>;
using Clock = std::chrono::steady_clock;

std::string unzipped(const std::filesystem::path& file) {
  const gzFile opened = gzopen(file.c_str(), "rb");
  if (opened == nullptr) {
    throw Error("cannot open " + file.string());
  }
  std::string out;
  std::array<char, 1 << 16> buffer{};
  int count = 0;
  while ((count = gzread(opened, buffer.data(), buffer.size())) > 0) {
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
  gzclose(opened);
  if (count < 0) {
    throw Error("cannot decompress " + file.string());
  }
  return out;
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void expect_reference(const Tokenizer& tokenizer, const nlohmann::json& encodings) {
  ASSERT_GE(encodings.size(), 200U);
  for (const nlohmann::json& entry : encodings) {
    const auto text = entry["text"].get<std::string>();
    const Ids ids = tokenizer.encode(text, AddedTokens::match);
    EXPECT_EQ(ids, entry["ids"].get<Ids>()) << entry["text"];
    EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::keep), nfc(text));
    StreamDecoder decoder(tokenizer, SpecialTokens::keep);
    std::string streamed;
    for (const TokenId id : ids) {
      streamed += decoder.push(id);
    }
    EXPECT_EQ(streamed + decoder.finish(), nfc(text));
    const Ids plain = tokenizer.encode(text, AddedTokens::ignore);
    EXPECT_EQ(tokenizer.decode(plain, SpecialTokens::skip), nfc(text)) << "special tokens in a user's text";
  }
}

void expect_no_quadratic_time(const Tokenizer& tokenizer) {
  for (const char* unit : {"a", " ", "The cat sat on the mat, as cats do. ", "漢字", "e\u0301", "!\n"}) {
    std::string text;
    while (text.size() < (1U << 20U)) {
      text += unit;
    }
    const auto start = Clock::now();
    const Ids ids = tokenizer.encode(text, AddedTokens::ignore);
    std::printf("1 MiB of '%s': %zu ids in %.0f ms\n", unit, ids.size(), milliseconds_since(start));
    EXPECT_LT(milliseconds_since(start), 60'000.0) << unit << ": hours if time were quadratic";
    EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::keep), nfc(text)) << unit;
  }
}

TEST(RealTokenizerTest, AgreesWithTheReference) {
  const char* folder = std::getenv("PASCALINE_SHARED_FIXTURES");
  if (folder == nullptr || *folder == '\0') {
    GTEST_SKIP() << "PASCALINE_SHARED_FIXTURES is not set: skipped are the encodings of the model's own tokenizer";
  }
  const std::filesystem::path data = std::filesystem::path(folder) / "qwen3-vl";
  const std::string text = unzipped(data / "tokenizer.json.gz");
  const auto start = Clock::now();
  const Tokenizer tokenizer = Tokenizer::parse(text, "tokenizer.json", 151936);
  std::printf("%zu bytes, %zu tokens, loaded in %.0f ms\n", text.size(), tokenizer.token_count(),
              milliseconds_since(start));
  EXPECT_EQ(tokenizer.token_count(), 151669U);
  EXPECT_EQ(tokenizer.id_count(), 151936U);
  EXPECT_EQ(tokenizer.require("<|im_end|>"), 151645);
  EXPECT_EQ(tokenizer.special_ids().size(), 14U);
  EXPECT_EQ(tokenizer.decode(Ids{151669, 9707, 151935}, SpecialTokens::keep), "Hello");
  expect_reference(tokenizer, nlohmann::json::parse(read_file(data / "encodings.json")));
  expect_no_quadratic_time(tokenizer);
}

}  // namespace
}  // namespace pascaline
