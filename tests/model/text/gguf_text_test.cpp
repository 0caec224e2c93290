#include "model/session/gguf_text.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "model/session/model_folder.hpp"
#include "tests/model/text/gguf_fixture.hpp"

namespace pascaline {
namespace {

using Ids = std::vector<TokenId>;
using testing::expect_holds;
using testing::gguf_fixture;
using testing::text_error;

// The bytes of a GGUF file that has metadata and no tensors.
class GgufBytes {
 public:
  GgufBytes& text(const std::string& key, std::string_view value) {
    begin(key, GgufValueType::text);
    put_text(value);
    return *this;
  }
  GgufBytes& integer(const std::string& key, std::uint32_t value) {
    begin(key, GgufValueType::uint32);
    put(value);
    return *this;
  }
  GgufBytes& boolean(const std::string& key, bool value) {
    begin(key, GgufValueType::boolean);
    put(static_cast<std::uint8_t>(value));
    return *this;
  }
  GgufBytes& texts(const std::string& key, const std::vector<std::string_view>& values) {
    begin_array(key, GgufValueType::text, values.size());
    for (const std::string_view value : values) {
      put_text(value);
    }
    return *this;
  }
  GgufBytes& integers(const std::string& key, const std::vector<std::int64_t>& values) {
    begin_array(key, GgufValueType::int32, values.size());
    for (const std::int64_t value : values) {
      put(static_cast<std::int32_t>(value));
    }
    return *this;
  }
  std::vector<std::byte> finish() const {
    GgufBytes out;
    for (const char c : {'G', 'G', 'U', 'F'}) {
      out.put(c);
    }
    out.put(std::uint32_t{3});
    out.put(std::uint64_t{0});
    out.put(keys_);
    out.bytes_.insert(out.bytes_.end(), bytes_.begin(), bytes_.end());
    out.bytes_.resize((out.bytes_.size() + 31) / 32 * 32);
    return out.bytes_;
  }

 private:
  template <class T>
  void put(T value) {
    const std::size_t end = bytes_.size();
    bytes_.resize(end + sizeof value);
    std::memcpy(bytes_.data() + end, &value, sizeof value);
  }
  void put_text(std::string_view text) {
    put(std::uint64_t{text.size()});
    for (const char c : text) {
      put(c);
    }
  }
  void begin(const std::string& key, GgufValueType type) {
    ++keys_;
    put_text("tokenizer." + key);
    put(static_cast<std::uint32_t>(type));
  }
  void begin_array(const std::string& key, GgufValueType type, std::size_t count) {
    begin(key, GgufValueType::array);
    put(static_cast<std::uint32_t>(type));
    put(std::uint64_t{count});
  }

  std::vector<std::byte> bytes_;
  std::uint64_t keys_ = 0;
};

GgufBytes small_file() {
  const GgufTokenizerData data = testing::small_gguf_data();
  GgufBytes out;
  out.text("ggml.model", "gpt2").texts("ggml.tokens", *data.tokens).texts("ggml.merges", *data.merges);
  out.integers("ggml.token_type", *data.types);
  return out;
}

TEST(GgufTextTest, EveryKeyIsRead) {
  GgufBytes file = small_file();
  file.text("ggml.pre", "smollm").integer("ggml.bos_token_id", 1).integer("ggml.eos_token_id", 5);
  file.integer("ggml.eot_token_id", 4).integer("ggml.eom_token_id", 6).integer("ggml.padding_token_id", 7);
  file.boolean("ggml.add_bos_token", true).boolean("ggml.add_space_prefix", false).boolean("ggml.add_eos_token", false);
  file.text("chat_template", "{{ messages }}");
  const std::vector<std::byte> bytes = file.finish();
  const GgufContent content = parse_gguf(bytes, "a.gguf");
  const GgufTokenizer built = load_gguf_tokenizer(content.metadata, 600);
  EXPECT_EQ(built.tokenizer.id_count(), 600U);
  EXPECT_EQ(built.bos, 1);
  EXPECT_EQ(built.pad, 7);
  EXPECT_TRUE(built.adds_bos);
  EXPECT_EQ(built.ends, (Ids{5, 4, 6, 2, 0}));
  for (const nlohmann::json& entry : gguf_fixture()["encodings"]["smollm"]) {
    EXPECT_EQ(built.tokenizer.encode(entry["text"].get<std::string>(), AddedTokens::match), entry["ids"].get<Ids>());
  }
  expect_holds(text_error([&] { (void)load_gguf_chat_template(content.metadata); }), "a.gguf: key 'tokenizer.chat_t");
  EXPECT_EQ(load_gguf_chat_template(content.metadata, "chatml"), ChatTemplate::chatml);
}

TEST(GgufTextTest, KeysThatForbidTextAreRefused) {
  const auto refusal = [](const GgufBytes& file) {
    const std::vector<std::byte> bytes = file.finish();
    return text_error([&] { (void)load_gguf_tokenizer(parse_gguf(bytes, "a.gguf").metadata); });
  };
  expect_holds(refusal(GgufBytes()), "a.gguf: key 'tokenizer.ggml.model': is missing");
  expect_holds(refusal(small_file()), "a.gguf: key 'tokenizer.ggml.pre': is missing");
  expect_holds(refusal(small_file().text("ggml.pre", "smollm").boolean("ggml.add_space_prefix", true)),
               "a.gguf: key 'tokenizer.ggml.add_space_prefix'");
  expect_holds(refusal(small_file().text("ggml.pre", "smollm").boolean("ggml.add_eos_token", true)),
               "a.gguf: key 'tokenizer.ggml.add_eos_token'");
  for (const char* key : {"ggml.bos_token_id", "ggml.eos_token_id", "ggml.eot_token_id", "ggml.eom_token_id",
                          "ggml.padding_token_id", "ggml.add_bos_token"}) {
    expect_holds(refusal(small_file().text("ggml.pre", "smollm").text(key, "1")), std::string("tokenizer.") + key);
  }
  expect_holds(refusal(small_file().integer("ggml.pre", 1)), "tokenizer.ggml.pre");
}

TEST(GgufTextTest, AModelWithoutATokenizerTakesOnlyTokens) {
  const ModelFolder model(PASCALINE_TEST_GGUF_WITHOUT_TEXT);
  EXPECT_FALSE(model.has_tokenizer());
  expect_holds(text_error([&] { (void)model.tokenizer(); }), "key 'tokenizer.ggml.model': there is no tokenizer");
}

TEST(GgufTextTest, SmolLm2AgreesWithTheReference) {
  const char* path = std::getenv("PASCALINE_SAMPLE_MODEL");
  if (path == nullptr || *path == '\0') {
    GTEST_SKIP()
        << "PASCALINE_SAMPLE_MODEL is not set (the file that scripts/fetch_sample_model.sh brings): skipped are "
           "the encodings of SmolLM2's whole tokenizer";
  }
  const auto start = std::chrono::steady_clock::now();
  const GgufFile file = GgufFile::open(path);
  const GgufTokenizer built = load_gguf_tokenizer(file.metadata(), 49152);
  std::printf("loaded in %.0f ms\n",
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  EXPECT_EQ(built.tokenizer.token_count(), 49152U);
  EXPECT_EQ(built.tokenizer.special_ids().size(), 17U);
  EXPECT_EQ(built.bos, 1);
  EXPECT_FALSE(built.adds_bos);
  EXPECT_EQ(built.ends, (Ids{2, 0}));
  EXPECT_EQ(load_gguf_chat_template(file.metadata()), ChatTemplate::smollm2);
  ASSERT_GE(gguf_fixture()["smollm2"].size(), 40U);
  for (const nlohmann::json& entry : gguf_fixture()["smollm2"]) {
    EXPECT_EQ(built.tokenizer.encode(entry["text"].get<std::string>(), AddedTokens::match), entry["ids"].get<Ids>())
        << entry["text"];
  }
}

}  // namespace
}  // namespace pascaline
