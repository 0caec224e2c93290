#include "runtime/checkpoint/generation_config.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;
using testing::config_of;

GenerationConfig parsed(const std::string& text, const ModelConfig& config) {
  return parse_generation_config(text, "generation_config.json", config);
}

TEST(GenerationConfigTest, ReadsTheReleasedFile) {
  const GenerationConfig generation = parsed(R"({"bos_token_id": 151643, "pad_token_id": 151643, "do_sample": true,
    "eos_token_id": [151645, 151643], "top_p": 0.8, "top_k": 20, "temperature": 0.7, "repetition_penalty": 1.0,
    "transformers_version": "4.56.0"})",
                                             config_of("qwen3_vl_2b"));
  EXPECT_TRUE(generation.do_sample);
  EXPECT_EQ(generation.temperature, 0.7);
  EXPECT_EQ(generation.top_p, 0.8);
  EXPECT_EQ(generation.top_k, 20);
  EXPECT_EQ(generation.repetition_penalty, 1.0);
  EXPECT_EQ(generation.presence_penalty, 0.0);
  EXPECT_EQ(generation.eos_tokens, (std::vector<std::int64_t>{151645, 151643}));
  EXPECT_EQ(generation.bos_token, 151643);
  EXPECT_EQ(generation.pad_token, 151643);
}

TEST(GenerationConfigTest, KeysLeftOutAreNeutral) {
  const GenerationConfig generation = parsed(R"({"pad_token_id": null})", config_of("tiny_a"));
  EXPECT_FALSE(generation.do_sample);
  EXPECT_EQ(generation.temperature, 1.0);
  EXPECT_EQ(generation.top_p, 1.0);
  EXPECT_EQ(generation.top_k, 50);
  EXPECT_EQ(generation.repetition_penalty, 1.0);
  EXPECT_EQ(generation.eos_tokens, std::vector<std::int64_t>{504});
  EXPECT_FALSE(generation.pad_token.has_value());
  EXPECT_EQ(parsed(R"({"eos_token_id": 7})", config_of("tiny_a")).eos_tokens, std::vector<std::int64_t>{7});
}

TEST(GenerationConfigTest, ImpossibleValuesAreNamed) {
  const ModelConfig config = config_of("tiny_a");
  const std::vector<std::pair<const char*, const char*>> refusals{
      {R"({"temperature": 0})", "/temperature: 0 is out of range"},
      {R"({"temperature": -1})", "/temperature: -1 is out of range"},
      {R"({"temperature": "warm"})", "/temperature: expected a number"},
      {R"({"top_p": 0})", "/top_p: 0 is out of range"},
      {R"({"top_p": 1.01})", "/top_p: 1.01 is out of range"},
      {R"({"top_k": -1})", "/top_k: -1 is not a possible number"},
      {R"({"top_k": 2.5})", "/top_k: expected an integer"},
      {R"({"top_k": 4294967296})", "/top_k: 4294967296 is not a possible number"},
      {R"({"repetition_penalty": 0})", "/repetition_penalty: 0 is out of range"},
      {R"({"do_sample": 1})", "/do_sample: expected true or false"},
      {R"({"eos_token_id": 512})", "/eos_token_id: token 512 is not in the vocabulary"},
      {R"({"eos_token_id": [1, -1]})", "/eos_token_id/1: token -1 is not in the vocabulary"},
      {R"({"bos_token_id": 9999})", "/bos_token_id: token 9999"},
      {"[]", "expected an object"},
      {"{", "not valid JSON"}};
  for (const auto& [text, complaint] : refusals) {
    PASCALINE_EXPECT_SAYS(complaint_of([&, json = text] { (void)parsed(json, config); }), complaint);
  }
}

TEST(GenerationConfigTest, WithoutTheFileTheReleasedValuesHold) {
  const testing::TemporaryFolder folder;
  ModelConfig config = config_of("tiny_a");
  const GenerationConfig generation = load_generation_config(folder.path(), config);
  EXPECT_TRUE(generation.do_sample);
  EXPECT_EQ(generation.temperature, 0.7);
  EXPECT_EQ(generation.top_p, 0.8);
  EXPECT_EQ(generation.top_k, 20);
  EXPECT_EQ(generation.eos_tokens, std::vector<std::int64_t>{504});
  config.eos_tokens.clear();
  const auto load = [&] { (void)load_generation_config(folder.path(), config); };
  EXPECT_TRUE(load_generation_config(folder.path(), config).eos_tokens.empty()) << "the tokenizer may have some";
  folder.write("generation_config.json", R"({"eos_token_id": 3})");
  EXPECT_EQ(load_generation_config(folder.path(), config).eos_tokens, std::vector<std::int64_t>{3});
  // A link to nowhere is a file that cannot be read, not one that is left out.
  std::filesystem::remove(folder.path() / "generation_config.json");
  std::filesystem::create_symlink("nowhere", folder.path() / "generation_config.json");
  EXPECT_NE(complaint_of(load), "accepted");
}

}  // namespace
}  // namespace pascaline
