#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/families/llama_rope.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "model/convert/split_forms.hpp"
#include "model/convert/to_folder.hpp"
#include "model/convert/to_gguf.hpp"
#include "model/session/model_folder.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/model/model_folder.hpp"
#include "tests/model/text/gguf_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Files that the package gguf wrote, with queries and keys in the order of llama.cpp's converter.
const fs::path kFiles = PASCALINE_CHECKPOINT_DATA;

class LlamaConvertTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path model_ = folder_.path() / "model";
  fs::path back_ = folder_.path() / "back";
  fs::path file_ = folder_.path() / "m.gguf";

  LlamaConvertTest() {
    fs::create_directory(model_);
    fs::create_directory(back_);
  }

  void to_gguf(const fs::path& folder, const WantedTypes& wanted = {}) const {
    ASSERT_TRUE(write_gguf_files(folder, {file_, {}}, wanted));
  }
  void to_folder(const fs::path& file, std::optional<GgufType> numbers = {}) const {
    ASSERT_TRUE(write_model_files(file, back_, numbers));
  }
  // What config.json says of it is changed.
  void describe(const std::string& key, const json& value) const {
    json config = json::parse(read_file(model_ / "config.json"));
    config[key] = value;
    write_bytes(model_ / "config.json", config.dump());
  }
};

std::vector<float> values_of(const WeightSource& source, const TensorSpec& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  source.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

void expect_same_tensors(const fs::path& written, const fs::path& original) {
  const GgufFile ours = GgufFile::open(written);
  const GgufFile theirs = GgufFile::open(original);
  ASSERT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const GgufTensor& tensor : theirs.tensors()) {
    const GgufTensor* const other = ours.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
    ASSERT_EQ(other->type, tensor.type) << tensor.name;
    ASSERT_EQ(other->bytes.size(), tensor.bytes.size()) << tensor.name;
    if (tensor.name == "rope_freqs.weight") {  // computed in float32 there
      for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
        float a = 0;
        float b = 0;
        std::memcpy(&a, other->bytes.data() + i, sizeof a);
        std::memcpy(&b, tensor.bytes.data() + i, sizeof b);
        EXPECT_NEAR(a, b, 1e-6F * b) << i;
      }
      continue;
    }
    EXPECT_EQ(std::memcmp(other->bytes.data(), tensor.bytes.data(), tensor.bytes.size()), 0) << tensor.name;
  }
}

TEST_F(LlamaConvertTest, FilesOfOtherProgramsComeBackByteByByte) {
  for (const char* name : {"llama_small.gguf", "llama_scaled.gguf"}) {
    to_folder(kFiles / name);
    to_gguf(back_);
    expect_same_tensors(file_, kFiles / name);
    fs::remove_all(back_);
    fs::create_directory(back_);
    fs::remove(file_);
  }
}

TEST_F(LlamaConvertTest, FrequenciesThatAFolderCannotSayNameTheFile) {
  std::string bytes = read_file(kFiles / "llama_scaled.gguf");
  {
    const GgufFile original = GgufFile::open(kFiles / "llama_scaled.gguf");
    const GgufTensor* const divisors = original.find("rope_freqs.weight");
    ASSERT_NE(divisors, nullptr);
    const std::string_view stored(reinterpret_cast<const char*>(divisors->bytes.data()), divisors->bytes.size());
    const std::size_t place = bytes.find(stored);
    ASSERT_NE(place, std::string::npos);
    const float other = 3;
    std::memcpy(bytes.data() + place, &other, sizeof other);
  }
  write_bytes(file_, bytes);
  try {
    (void)write_model_files(file_, back_, {});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind(file_.string() + ": tensor 'rope_freqs.weight': a config.json", 0), 0U)
        << error.what();
  }
}

TEST_F(LlamaConvertTest, TextComesAlong) {
  to_folder(kFiles / "llama_small.gguf");
  to_gguf(back_);
  const ModelFolder original(kFiles / "llama_small.gguf");
  for (const fs::path& place : {back_, file_}) {
    const ModelFolder copy(place);
    EXPECT_EQ(copy.chat_template(), ChatTemplate::smollm2) << place;
    EXPECT_EQ(copy.generation().eos_tokens, original.generation().eos_tokens) << place;
    for (const char* text : {"", "hello the hello", "h\u00e9 12345 <|im_end|>", "\x04\xC0\xFF"}) {
      EXPECT_EQ(copy.encode_plain(text), original.encode_plain(text)) << place << ": " << text;
      EXPECT_EQ(copy.encode_plain(text).front(), 1) << "the token of beginning";
    }
    EXPECT_EQ(copy.tokenizer().encode("a<|im_end|>", AddedTokens::match),
              original.tokenizer().encode("a<|im_end|>", AddedTokens::match));
  }
}

TEST_F(LlamaConvertTest, ScaledFrequenciesComeAlong) {
  to_folder(kFiles / "llama_scaled.gguf");
  const json written = json::parse(read_file(back_ / "config.json")).at("rope_scaling");
  const json expected{{"rope_type", "llama3"},
                      {"factor", 8.0},
                      {"low_freq_factor", 1.0},
                      {"high_freq_factor", 4.0},
                      {"original_max_position_embeddings", 64}};
  EXPECT_EQ(written, expected);
  EXPECT_EQ(load_model_config(back_).text, load_model_config(kFiles / "llama_scaled").text);

  (void)write_llama_folder(model_);
  describe("rope_scaling", {{"rope_type", "linear"}, {"factor", 2.5}});
  to_gguf(model_);
  const GgufFile file = GgufFile::open(file_);
  EXPECT_EQ(file.find("rope_freqs.weight"), nullptr);
  EXPECT_EQ(file.metadata().text("llama.rope.scaling.type"), "linear");
  EXPECT_EQ(load_model_config(file_).text, load_model_config(model_).text);
  fs::remove_all(back_);
  fs::create_directory(back_);
  to_folder(file_);
  EXPECT_EQ(load_model_config(back_).text, load_model_config(model_).text);
}

TEST_F(LlamaConvertTest, FoldersComeBackWithTheSameNumbers) {
  ModelConfig config = write_llama_folder(model_);
  for (const GgufType numbers : {GgufType::F32, GgufType::F16, GgufType::BF16}) {
    to_gguf(model_, {numbers, {}});
    const WeightSource written = checkpoint_weights(Checkpoint::open(file_, load_model_config(file_)));
    to_folder(file_);
    const WeightSource back = checkpoint_weights(Checkpoint::open(back_, load_model_config(back_)));
    const WeightSource original = hash_weights(config);
    for (const TensorSpec& tensor : original.tensors()) {  // all of them are exact in 16 bits
      EXPECT_EQ(values_of(written, tensor), values_of(original, tensor)) << tensor.name;
      EXPECT_EQ(values_of(back, tensor), values_of(original, tensor)) << tensor.name;
    }
    fs::remove_all(back_);
    fs::create_directory(back_);
    fs::remove(file_);
  }
}

TEST_F(LlamaConvertTest, BlocksAreThoseOfTheRowsInTheirOrder) {
  (void)write_llama_folder(model_);
  to_gguf(model_, {{}, WeightRecipe::named("q8_0")});
  to_folder(file_);
  const fs::path first = folder_.path() / "first.gguf";
  fs::rename(file_, first);
  to_gguf(back_);
  expect_same_tensors(file_, first);
}

TEST_F(LlamaConvertTest, DivisorsThatNoFolderCanSayAreRefused) {
  (void)write_llama_folder(model_);
  describe("rope_scaling", {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 64}});
  to_gguf(model_);
  std::string bytes = read_file(file_);
  const GgufFile file = GgufFile::open(file_);
  const GgufTensor* const factors = file.find("rope_freqs.weight");
  ASSERT_NE(factors, nullptr);
  const std::string found(reinterpret_cast<const char*>(factors->bytes.data()), factors->bytes.size());
  const std::size_t place = bytes.rfind(found);
  ASSERT_NE(place, std::string::npos);
  const float odd = 3;
  std::memcpy(bytes.data() + place, &odd, sizeof odd);
  write_bytes(file_, bytes);
  expect_holds(text_error([&] { (void)write_model_files(file_, back_, {}); }), "rope_freqs.weight");
}

TEST(LlamaRopeTest, TheScalingIsFoundByItsDivisors) {
  const auto found_of = [](const Llama3Scaling& scaling, double theta, std::int64_t head_dim) {
    return find_llama3_scaling(llama3_divisors(scaling, theta, head_dim), theta);
  };
  constexpr Llama3Scaling kLlama31{8, 1, 4, 8192};
  constexpr Llama3Scaling kLlama32{32, 1, 4, 8192};
  EXPECT_EQ(found_of(kLlama31, 500'000, 128), kLlama31);
  EXPECT_EQ(found_of(kLlama32, 500'000, 64), kLlama32);
  constexpr Llama3Scaling kOther{4, 1, 2.5, 131072};
  EXPECT_EQ(found_of(kOther, 1e6, 256), kOther);
  EXPECT_EQ(found_of({8, 2, 8, 16384}, 500'000, 128), kLlama31) << "does the same";
  constexpr Llama3Scaling kSmall{8, 1, 4, 64};
  EXPECT_EQ(found_of(kSmall, 10'000, 4), kSmall) << "nothing between";
  EXPECT_EQ(find_llama3_scaling({}, 10'000), std::nullopt);
  EXPECT_EQ(find_llama3_scaling(std::vector<float>{1, 1, 1}, 10'000), std::nullopt);
  EXPECT_EQ(find_llama3_scaling(std::vector<float>{8, 4, 2, 1}, 10'000), std::nullopt);
  EXPECT_EQ(find_llama3_scaling(std::vector<float>{1, 7, 2, 8}, 10'000), std::nullopt);
}

// A tokenizer.json of that family with the vocabulary of gguf_fixture.
json tokenizer_json(const PreTokenizer& family) {
  const json& fixture = gguf_fixture();
  json vocabulary = json::object();
  json added = json::array();
  for (std::size_t id = 0; id < fixture["tokens"].size(); ++id) {
    const auto type = fixture["types"][id].get<int>();
    const auto text = fixture["tokens"][id].get<std::string>();
    if (type == 1 || type == 3) {
      vocabulary[text] = id;
    }
    if (type == 3 || type == 4) {
      added.push_back({{"id", id}, {"content", text}, {"special", type == 3}, {"normalized", false}});
    }
  }
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", normalizer_of(family)},
          {"pre_tokenizer", pre_tokenizer_of(family)},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", family.whole_pieces},
            {"vocab", vocabulary},
            {"merges", fixture["merges"]}}}};
}

TEST_F(LlamaConvertTest, WhatOtherProgramsQuantizedIsNotRoundedWithoutBeingAsked) {
  const auto refusal = [&](const char* folder) -> std::string {
    try {
      (void)write_gguf_files(kFiles / folder, {file_, {}}, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const auto& [folder, format, ways] :
       {std::array<const char*, 3>{"qwen3_awq", "int4_g128", "float32, float16 or bfloat16 writes"},
        std::array<const char*, 3>{"qwen3_fp8", "fp8", "float32, float16, bfloat16 or q8_0 writes"}}) {
    const std::string text = refusal(folder);
    EXPECT_NE(text.find("tensor 'model.layers.0."), std::string::npos) << text;
    EXPECT_NE(text.find(std::string("GGUF has no blocks of ") + format + "; --weights " + ways), std::string::npos)
        << text;
    EXPECT_FALSE(fs::exists(file_));
    for (const GgufType number : {GgufType::F32, GgufType::F16, GgufType::BF16}) {
      to_gguf(kFiles / folder, {number, {}});
      fs::remove(file_);
    }
  }
  to_gguf(kFiles / "qwen3_fp8", {{}, WeightRecipe::named("q8_0")});
}

TEST_F(LlamaConvertTest, SpecialTokensComeBack) {
  const auto tokens_of = [](const fs::path& path) {
    const GgufFile file = GgufFile::open(path);
    std::string text;
    for (const char* key : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
      const auto id = file.metadata().find_integer(std::string("tokenizer.ggml.") + key + "_token_id");
      text += id ? std::string(key) + " " + std::to_string(*id) + " " : "";
    }
    return text;
  };
  const std::string original = tokens_of(kFiles / "llama_small.gguf");
  to_folder(kFiles / "llama_small.gguf");
  to_gguf(back_);
  EXPECT_EQ(tokens_of(file_), original) << "and no end that the file did not have";

  // Of a folder that says it elsewhere, and whose texts begin without it.
  json config = json::parse(read_file(back_ / "config.json"));
  for (const char* key : {"bos_token_id", "pad_token_id"}) {
    config.erase(key);
  }
  config["eos_token_id"] = json::array({2, 0, 5});
  write_bytes(back_ / "config.json", config.dump());
  fs::remove(back_ / "generation_config.json");
  json tokenizer = json::parse(read_file(back_ / "tokenizer.json"));
  tokenizer["post_processor"] = nullptr;
  write_bytes(back_ / "tokenizer.json", tokenizer.dump());
  write_bytes(back_ / "tokenizer_config.json",
              R"({"bos_token": "<|im_start|>", "pad_token": {"content": "<|im_end|>"}, "unk_token": "<|endoftext|>"})");
  fs::remove(file_);
  to_gguf(back_);
  EXPECT_EQ(tokens_of(file_), "bos 1 eos 2 eot 5 unknown 0 padding 2 ");
  EXPECT_EQ(GgufFile::open(file_).metadata().find_boolean("tokenizer.ggml.add_bos_token"), false);
  config["bos_token_id"] = 7;
  write_bytes(back_ / "config.json", config.dump());
  fs::remove(file_);
  to_gguf(back_);
  EXPECT_EQ(tokens_of(file_), "bos 7 eos 2 eot 5 unknown 0 padding 2 ") << "config.json counts before";
}

// Its vocabulary has no tokens for some bytes.
TEST(FolderTokenizerTest, EveryFamilyAgreesWithTheReference) {
  for (const PreTokenizer& family : pre_tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::parse(tokenizer_json(family).dump(), "t.json");
    for (const json& entry : gguf_fixture()["encodings"].at(std::string(family.name))) {
      EXPECT_EQ(tokenizer.encode(entry["text"].get<std::string>(), AddedTokens::match),
                entry["ids"].get<std::vector<TokenId>>())
          << family.name << ": " << entry["text"];
    }
  }
}

TEST(FolderTokenizerTest, OlderFilesLeaveOutThatBytesAreSplit) {
  const PreTokenizer& family = *find_pre_tokenizer("gpt-2");
  json document = tokenizer_json(family);
  const auto expected = Tokenizer::parse(document.dump(), "t.json").encode("it's 12 cats", AddedTokens::ignore);
  document["pre_tokenizer"].erase("use_regex");
  EXPECT_EQ(Tokenizer::parse(document.dump(), "t.json").encode("it's 12 cats", AddedTokens::ignore), expected);
}

}  // namespace
}  // namespace pascaline::testing
