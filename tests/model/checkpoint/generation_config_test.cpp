#include "model/checkpoint/hf/generation_config.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/checkpoint/gguf/gguf_generation.hpp"
#include "tests/model/checkpoint/gguf_builder.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

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

TEST(GenerationConfigTest, WhatIsRecommendedIsWhatTheFileHas) {
  const RecommendedSampling some =
      parsed(R"({"do_sample": true, "top_p": 0.9, "top_k": null})", config_of("tiny_a")).recommended;
  EXPECT_TRUE(some.do_sample);
  EXPECT_TRUE(some.top_p);
  EXPECT_FALSE(some.temperature);
  EXPECT_FALSE(some.top_k);
  EXPECT_FALSE(some.repetition_penalty);
  EXPECT_FALSE(parsed(R"({"eos_token_id": 7})", config_of("tiny_a")).recommended.any());
  EXPECT_FALSE(GenerationConfig().recommended.any());
}

// How tokens are drawn as the metadata of a GGUF file say.
GenerationConfig gguf_generation(const testing::GgufBuilder& builder) {
  const std::string file = builder.bytes();
  return read_gguf_generation(parse_gguf(std::as_bytes(std::span(file)), "m.gguf").metadata, config_of("tiny_a"));
}

TEST(GgufGenerationTest, WhatTheFileLeavesOutIsNotRecommended) {
  testing::GgufBuilder none;
  const GenerationConfig usual = gguf_generation(none);
  EXPECT_FALSE(usual.recommended.any());
  EXPECT_EQ(usual.temperature, GenerationConfig().temperature);
  testing::GgufBuilder some;
  some.real("general.sampling.temp", 0.25F).integer("general.sampling.top_k", 7);
  const GenerationConfig read = gguf_generation(some);
  EXPECT_EQ(read.temperature, 0.25);
  EXPECT_EQ(read.top_k, 7);
  EXPECT_EQ(read.top_p, 1) << "as in a generation_config.json";
  EXPECT_TRUE(read.recommended.temperature && read.recommended.top_k && read.recommended.do_sample);
  EXPECT_FALSE(read.recommended.top_p || read.recommended.repetition_penalty);
  testing::GgufBuilder greedy;
  greedy.real("general.sampling.temp", 0);
  EXPECT_FALSE(gguf_generation(greedy).do_sample);
  EXPECT_FALSE(gguf_generation(greedy).recommended.temperature);
}

// Uses and texts of the settings that are wrong.
std::vector<std::pair<SamplingUse, std::string>> faults_of(const GenerationConfig& generation) {
  std::vector<std::pair<SamplingUse, std::string>> found;
  for (const SamplingFault& fault : generation.faults) {
    found.emplace_back(fault.use, fault.text);
  }
  return found;
}

TEST(GgufGenerationTest, WhatIsWrongIsAFault) {
  using Faults = std::vector<std::pair<SamplingUse, std::string>>;
  const auto faults = [](auto add) {
    testing::GgufBuilder file;
    add(file);
    return faults_of(gguf_generation(file));
  };
  const std::string key = "m.gguf: key 'general.sampling.";
  EXPECT_EQ(faults([](auto& f) { f.real("general.sampling.min_p", 1.5F); }),
            (Faults{{SamplingUse::min_p, key + "min_p': 1.5 is out of range (0 to 1)"}}));
  EXPECT_EQ(
      faults([](auto& f) { f.integer("general.sampling.mirostat", 2); }),
      (Faults{{SamplingUse::draw, key + "mirostat': 2 is not supported, only 0: it changes how tokens are drawn"}}));
  EXPECT_EQ(faults([](auto& f) { f.word("general.sampling.temp", "warm"); }),
            (Faults{{SamplingUse::temperature, key + "temp': it is not a number"}}));
  EXPECT_EQ(faults([](auto& f) {
              f.real("general.sampling.min_p", 0).integer("general.sampling.mirostat", 0);
              f.real("general.sampling.mirostat_tau", 5).integer("general.sampling.penalty_last_n", 64);
              f.key("general.sampling.top_k", GgufValueType::int32, testing::GgufBuilder::raw(std::int32_t{-1}));
              f.real("general.sampling.a_tools_own", 0.1F).real("general.sampling.top_p", 0);
            }),
            Faults());
  testing::GgufBuilder file;
  file.integer("tokenizer.ggml.unknown_token_id", 1000000);
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)gguf_generation(file); }),
                        "m.gguf: key 'tokenizer.ggml.unknown_token_id': token 1000000 is not in the vocabulary");
}

TEST(GgufGenerationTest, MinPIsRead) {
  testing::GgufBuilder file;
  file.real("general.sampling.min_p", 0.25F);
  const GenerationConfig read = gguf_generation(file);
  EXPECT_EQ(read.min_p, 0.25);
  EXPECT_TRUE(read.recommended.min_p);
  EXPECT_EQ(read.top_k, 50) << "as in a generation_config.json";
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

TEST(GenerationConfigTest, ImpossibleValuesAreFaults) {
  const std::vector<std::tuple<const char*, SamplingUse, const char*>> cases{
      {R"({"temperature": -1})", SamplingUse::temperature, "/temperature: -1 is out of range"},
      {R"({"temperature": "warm"})", SamplingUse::temperature, "/temperature: expected a number"},
      {R"({"top_p": 1.01})", SamplingUse::top_p, "/top_p: 1.01 is out of range"},
      {R"({"top_k": -2})", SamplingUse::top_k, "/top_k: -2 is not a possible number"},
      {R"({"top_k": 2.5})", SamplingUse::top_k, "/top_k: expected an integer"},
      {R"({"top_k": 4294967296})", SamplingUse::top_k, "/top_k: 4294967296 is not a possible number"},
      {R"({"min_p": 2})", SamplingUse::min_p, "/min_p: 2 is out of range"},
      {R"({"repetition_penalty": 0})", SamplingUse::repetition_penalty, "/repetition_penalty: 0 is out of range"},
      {R"({"presence_penalty": "x"})", SamplingUse::presence_penalty, "/presence_penalty: expected a number"},
      {R"({"typical_p": 0.5})", SamplingUse::draw, "/typical_p: 0.5 is not supported, only 1"},
      {R"({"num_beams": 4})", SamplingUse::answer, "/num_beams: 4 is not supported, only 1"}};
  for (const auto& [text, use, complaint] : cases) {
    const GenerationConfig generation = parsed(text, config_of("tiny_a"));
    ASSERT_EQ(generation.faults.size(), 1U) << text;
    EXPECT_EQ(generation.faults[0].use, use) << text;
    PASCALINE_EXPECT_SAYS(generation.faults[0].text, complaint);
    EXPECT_FALSE(generation.recommended.any()) << text;
  }
}

TEST(GenerationConfigTest, WaysToSayNothingAreNoFaults) {
  const GenerationConfig generation =
      parsed(R"({"do_sample": true, "top_k": -1, "top_p": 0, "min_p": 0.1, "temperature": 0.5, "bos_token_id": 9999,
                 "pad_token_id": -1, "a_tools_own": 1})",
             config_of("tiny_a"));
  EXPECT_TRUE(generation.faults.empty());
  EXPECT_EQ(generation.top_k, 0);
  EXPECT_EQ(generation.top_p, 0);
  EXPECT_EQ(generation.min_p, 0.1);
  EXPECT_FALSE(generation.bos_token || generation.pad_token) << "the model does not have them";
  const GenerationConfig greedy = parsed(R"({"do_sample": true, "temperature": 0})", config_of("tiny_a"));
  EXPECT_TRUE(greedy.faults.empty());
  EXPECT_FALSE(greedy.do_sample) << "the likeliest token";
}

TEST(GenerationConfigTest, WhatIsNoConfigurationIsNamed) {
  const std::vector<std::pair<const char*, const char*>> refusals{
      {R"({"do_sample": 1})", "/do_sample: expected true or false"},
      {R"({"eos_token_id": 512})", "/eos_token_id: token 512 is not in the vocabulary"},
      {R"({"eos_token_id": [1, -1]})", "/eos_token_id/1: token -1 is not in the vocabulary"},
      {"[]", "expected an object"},
      {"{", "not valid JSON"}};
  for (const auto& [text, complaint] : refusals) {
    PASCALINE_EXPECT_SAYS(complaint_of([&, json = text] { (void)parsed(json, config_of("tiny_a")); }), complaint);
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
