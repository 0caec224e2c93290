#include "model/checkpoint/model_config.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/util/unknown_keys.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::complaint_of;
using testing::config_json;
using testing::config_of;
using Pointer = json::json_pointer;

std::string config_complaint(const std::string& text) {
  return complaint_of([&] { (void)parse_model_config(text, "config.json"); });
}

// What is said of configuration A with one value replaced.
std::string complaint_with(const char* pointer, const json& value) {
  json document = config_json("tiny_a");
  document[Pointer(pointer)] = value;
  return config_complaint(document.dump());
}

TEST(ModelConfigTest, ReadsTheRealModel) {
  const ModelConfig config = config_of("qwen3_vl_2b");
  const TextConfig& text = config.text;
  EXPECT_EQ(text.hidden, 2048);
  EXPECT_EQ(text.layers, 28);
  EXPECT_EQ(text.heads, 16);
  EXPECT_EQ(text.kv_heads, 8);
  EXPECT_EQ(text.head_dim, 128);
  EXPECT_EQ(text.intermediate, 6144);
  EXPECT_EQ(text.vocab, 151936);
  EXPECT_EQ(text.max_positions, 262144);
  EXPECT_EQ(text.rope_theta, 5e6);
  EXPECT_EQ(text.mrope_section, (std::array<std::int64_t, 3>{24, 20, 20}));
  EXPECT_TRUE(text.tied);
  EXPECT_EQ(config.family, ModelFamily::qwen3_vl);
  ASSERT_TRUE(config.vision.has_value());
  const VisionConfig& vision = *config.vision;
  EXPECT_EQ(vision.hidden, 1024);
  EXPECT_EQ(vision.depth, 24);
  EXPECT_EQ(vision.heads, 16);
  EXPECT_EQ(vision.head_dim(), 64);
  EXPECT_EQ(vision.intermediate, 4096);
  EXPECT_EQ(vision.patch_values(), 1536);
  EXPECT_EQ(vision.merge, 2);
  EXPECT_EQ(vision.merged(), 4096);
  EXPECT_EQ(vision.out_hidden, 2048);
  EXPECT_EQ(vision.position_side(), 48);
  EXPECT_EQ(vision.deepstack_indexes, (std::vector<std::int64_t>{5, 11, 17}));
  EXPECT_EQ(vision.image_token, 151655);
  EXPECT_EQ(vision.video_token, 151656);
  EXPECT_EQ(vision.start_token, 151652);
  EXPECT_EQ(vision.end_token, 151653);
  EXPECT_EQ(config.eos_tokens, std::vector<std::int64_t>{151645});
}

TEST(ModelConfigTest, ReadsTheLargerModels) {
  const ModelConfig four = config_of("qwen3_vl_4b");
  EXPECT_EQ(four.text.heads * four.text.head_dim, 4096);
  EXPECT_EQ(four.text.hidden, 2560);
  EXPECT_TRUE(four.text.tied);
  const ModelConfig eight = config_of("qwen3_vl_8b");
  EXPECT_FALSE(eight.text.tied);
  EXPECT_EQ(eight.vision->head_dim(), 72);
  EXPECT_EQ(eight.vision->deepstack_indexes, (std::vector<std::int64_t>{8, 16, 24}));
}

TEST(ModelConfigTest, WithoutTheseKeysThereIsNoModel) {
  const std::vector<std::pair<std::string, std::string>> keys{
      {"", "model_type"},
      {"", "text_config"},
      {"", "vision_config"},
      {"", "image_token_id"},  // the usual one is too large here
      {"", "vision_start_token_id"},
      {"", "vision_end_token_id"}};
  for (const auto& [object, key] : keys) {
    json document = config_json("tiny_a");
    ASSERT_EQ(document.at(Pointer(object)).erase(key), 1U) << key;
    const std::string complaint = config_complaint(document.dump());
    PASCALINE_EXPECT_SAYS(complaint, "the key '" + key + "'");
    PASCALINE_EXPECT_SAYS(complaint, "is missing");
    PASCALINE_EXPECT_SAYS(complaint, "config.json" + (object.empty() ? "" : ":" + object));
  }
}

// Those of the class that reads the file in Transformers.
TEST(ModelConfigTest, KeysLeftOutMeanTransformersDefaults) {
  const std::string shared = R"("rope_theta": 10000.0)";
  const TextConfig llama = parse_model_config(R"({"model_type": "llama", )" + shared + "}", "config.json").text;
  EXPECT_FALSE(llama.tied);
  EXPECT_EQ(llama.hidden, 4096);
  EXPECT_EQ(llama.layers, 32);
  EXPECT_EQ(llama.heads, 32);
  EXPECT_EQ(llama.kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.intermediate, 11008);
  EXPECT_EQ(llama.vocab, 32000);
  EXPECT_EQ(llama.max_positions, 2048);
  EXPECT_EQ(llama.norm_epsilon.value(), 1e-6);
  const TextConfig qwen3 = parse_model_config(R"({"model_type": "qwen3", )" + shared + "}", "config.json").text;
  EXPECT_EQ(qwen3.kv_heads, 32);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.intermediate, 22016);
  EXPECT_EQ(qwen3.vocab, 151936);
  EXPECT_EQ(qwen3.max_positions, 32768);
}

TEST(ModelConfigTest, HeadsOfKeysAreAsManyAsThoseOfQueriesIfTheyAreNull) {
  for (const char* family : {"llama", "qwen3"}) {
    json document{{"model_type", family},         {"rope_theta", 1e4},
                  {"tie_word_embeddings", false}, {"hidden_size", 64},
                  {"num_attention_heads", 4},     {"num_key_value_heads", nullptr},
                  {"attention_bias", nullptr},    {"max_position_embeddings", 64}};
    EXPECT_EQ(parse_model_config(document.dump(), "config.json").text.kv_heads, 4) << family;
  }
}

TEST(ModelConfigTest, NullMeansTheDefault) {
  for (const char* name : {"qwen3_0.6b", "tiny_a"}) {
    for (const bool in_vision : {false, true}) {
      const json whole = config_json(name);
      const char* part = !whole.contains("text_config") ? "" : in_vision ? "/vision_config" : "/text_config";
      const json object = whole[Pointer(part)];
      for (const auto& member : object.items()) {
        const bool differs = member.key() == "num_key_value_heads";  // missing, Transformers means another number
        if (member.value().is_object() || differs) {
          continue;
        }
        json null = whole;
        null[Pointer(part)][member.key()] = nullptr;
        json without = whole;
        without[Pointer(part)].erase(member.key());
        const bool is_read = config_complaint(without.dump()) == "accepted";
        EXPECT_EQ(config_complaint(null.dump()) == "accepted", is_read) << name << part << "/" << member.key();
        if (is_read) {
          EXPECT_EQ(parse_model_config(null.dump(), "config.json"), parse_model_config(without.dump(), "config.json"))
              << name << part << "/" << member.key();
        }
      }
    }
  }
  json document = config_json("tiny_a");
  document["tie_word_embeddings"] = nullptr;
  EXPECT_EQ(config_complaint(document.dump()), "accepted");
}

TEST(ModelConfigTest, KeysThatChangeResultsAreRefusedByName) {
  const std::vector<std::pair<const char*, json>> keys{{"hidden_activation", "gelu_pytorch_tanh"},
                                                       {"activation_function", "gelu"},
                                                       {"softmax_scale", 1.0},
                                                       {"use_logn_attn", true},
                                                       {"use_dynamic_ntk", true},
                                                       {"rotary_dim", 8},
                                                       {"rotary_percent", 0.5},
                                                       {"rotary_emb_fraction", 0.5},
                                                       {"rms_norm_add_unit_offset", true},
                                                       {"layernorm_zero_centered_gamma", true},
                                                       {"sliding_window_pattern", 6},
                                                       {"global_attn_every_n_layers", 3},
                                                       {"rope_local_base_freq", 1e4},
                                                       {"rope_interleave", true},
                                                       {"rotary_interleaved", true},
                                                       {"attn_logit_softcap", 50.0}};
  for (const char* place : {"qwen3_0.6b", "tiny_a"}) {
    for (const auto& [key, value] : keys) {
      json document = config_json(place);
      json& text = document.contains("text_config") ? document["text_config"] : document;
      text[key] = value;
      PASCALINE_EXPECT_SAYS(config_complaint(document.dump()),
                            std::string("/") + key + ": " + value.dump() + " is not");
    }
  }
  json document = config_json("qwen3_0.6b");
  const json neutral{{"hidden_activation", "silu"}, {"softmax_scale", 1 / std::sqrt(128.0)},
                     {"use_logn_attn", false},      {"rotary_dim", 128},
                     {"rope_interleave", false},    {"rms_norm_add_unit_offset", false},
                     {"sliding_window_pattern", 1}, {"attn_logit_softcap", nullptr}};
  document.update(neutral);
  const StrictKeys strict(true);
  EXPECT_EQ(parse_model_config(document.dump(), "config.json"), config_of("qwen3_0.6b"));
}

TEST(ModelConfigTest, TextsOfOtherSystemsAreRead) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "foreign_config";
  std::filesystem::create_directories(folder);
  json document = config_json("qwen3_0.6b");
  const std::string text = document.dump();
  std::string wide = "\xFF\xFE";
  for (const char c : text) {
    wide += c;
    wide += '\0';
  }
  const std::string latin = text.substr(0, text.size() - 1) + R"(, "_name_or_path": "caf)" + "\xE9\"}";
  for (const std::string& bytes : {"\xEF\xBB\xBF" + text, wide, latin}) {
    std::ofstream(folder / "config.json", std::ios::binary) << bytes;
    EXPECT_EQ(load_model_config(folder), config_of("qwen3_0.6b"));
  }
  std::ofstream(folder / "config.json") << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n";
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)load_model_config(folder); }),
                        "config.json: this is a Git LFS pointer, not the file itself; run `git lfs pull`");
  std::filesystem::remove_all(folder);
}

TEST(ModelConfigTest, SizesMustBePossible) {
  for (const char* key :
       {"/text_config/hidden_size", "/text_config/num_hidden_layers", "/text_config/vocab_size",
        "/text_config/num_attention_heads", "/text_config/num_key_value_heads", "/text_config/head_dim",
        "/text_config/intermediate_size", "/text_config/max_position_embeddings", "/vision_config/hidden_size",
        "/vision_config/depth", "/vision_config/num_heads", "/vision_config/intermediate_size",
        "/vision_config/in_channels", "/vision_config/patch_size", "/vision_config/temporal_patch_size",
        "/vision_config/spatial_merge_size", "/vision_config/out_hidden_size",
        "/vision_config/num_position_embeddings"}) {
    for (const json& value : {json(0), json(-1), json(INT64_MAX), json(INT64_MIN), json(std::int64_t{1} << 40)}) {
      PASCALINE_EXPECT_SAYS(complaint_with(key, value), std::string("config.json:") + key + ": ");
    }
    for (const json& value : {json(1.5), json("64"), json(true), json(UINT64_MAX), json::array()}) {
      PASCALINE_EXPECT_SAYS(complaint_with(key, value), std::string(key) + ": expected an integer");
    }
  }
  for (const json& value : {json(0), json(1.0), json(1e13)}) {
    PASCALINE_EXPECT_SAYS(complaint_with("/text_config/rope_theta", value), "/text_config/rope_theta: ");
    PASCALINE_EXPECT_SAYS(complaint_with("/vision_config/rope_theta", value), "/vision_config/rope_theta: ");
  }
}

TEST(ModelConfigTest, ProductsThatOverflowAreRefused) {
  json document = config_json("tiny_a");
  document["text_config"]["hidden_size"] = 1 << 20;
  document["text_config"]["intermediate_size"] = 1 << 20;
  document["vision_config"]["out_hidden_size"] = 1 << 20;
  PASCALINE_EXPECT_SAYS(config_complaint(document.dump()), "imply more than 1000000000000 parameters");
  document = config_json("tiny_a");
  document["vision_config"]["hidden_size"] = 1 << 20;
  document["vision_config"]["spatial_merge_size"] = 16;
  PASCALINE_EXPECT_SAYS(config_complaint(document.dump()), "imply more than 1000000000000 parameters");
}

struct Refusal {
  const char* pointer;
  json value;
  const char* complaint;
};

TEST(ModelConfigTest, SizesMustFitTogether) {
  const std::vector<Refusal> refusals{
      {"/text_config/num_key_value_heads", 3, "num_attention_heads 4 is not a multiple of num_key_value_heads 3"},
      {"/text_config/head_dim", 15, "head_dim 15 is odd"},
      {"/text_config/head_dim", 18, "does not add up to half of head_dim, 9"},
      {"/text_config/rope_scaling/mrope_section", {2, 4, 2}, "cannot be interleaved"},
      {"/text_config/rope_scaling/mrope_section", {2, 3, 3}, "cannot be interleaved"},
      {"/text_config/rope_scaling/mrope_section", {8, 2, -2}, "mrope_section/2: not a possible size"},
      {"/text_config/rope_scaling/mrope_section", {4, 4}, "expected three numbers"},
      {"/vision_config/num_heads", 3, "hidden_size 32 is not a multiple of num_heads 3"},
      {"/vision_config/num_heads", 16, "heads of 2 values are not a multiple of 4"},
      {"/vision_config/num_position_embeddings", 15, "num_position_embeddings 15 is not a square"},
      {"/vision_config/out_hidden_size", 32, "out_hidden_size 32 is not the decoder's hidden_size 64"},
      {"/vision_config/deepstack_visual_indexes", {2}, "there is no block 2 of 2"},
      {"/vision_config/deepstack_visual_indexes", {-1}, "there is no block -1 of 2"},
      {"/vision_config/deepstack_visual_indexes", {1, 0}, "the blocks must ascend"},
      {"/vision_config/deepstack_visual_indexes", {0, 0}, "the blocks must ascend"},
      {"/vision_config/deepstack_visual_indexes", {0, 1, 1}, "3 deepstack features for 2 layers"},
      {"/image_token_id", 512, "token 512 is not in the vocabulary of 512 tokens"},
      {"/video_token_id", -1, "token -1 is not in the vocabulary"},
      {"/vision_end_token_id", 502, "are the same"},
      {"/text_config/eos_token_id", 512, "token 512 is not in the vocabulary"}};
  for (const Refusal& refusal : refusals) {
    PASCALINE_EXPECT_SAYS(complaint_with(refusal.pointer, refusal.value), refusal.complaint);
  }
  EXPECT_EQ(complaint_with("/text_config/rope_scaling/mrope_section", {8, 0, 0}), "accepted");
  EXPECT_EQ(complaint_with("/vision_config/deepstack_visual_indexes", json::array()), "accepted");
}

TEST(ModelConfigTest, OtherModelsAreRefused) {
  const std::vector<Refusal> refusals{
      {"/model_type", "qwen2_5_vl",
       "config.json:/model_type: the model family 'qwen2_5_vl' is not known, only 'qwen3_vl' (Qwen3-VL), 'qwen3' "
       "(Qwen3, text only), 'llama' (Llama, text only, such as SmolLM2); take a model of one of these"},
      {"/model_type", "qwen3_vl_moe", "the model family 'qwen3_vl_moe' is not known"},
      {"/model_type", 3, "/model_type: expected text"},
      {"/model_type", "qwen3", "/text_config: {"},
      {"/text_config/model_type", "llama", R"("llama" is not supported)"},
      {"/vision_config/model_type", "clip", R"("clip" is not supported, only "qwen3_vl" or "qwen3_vl_vision")"},
      {"/text_config/attention_bias", true, "/text_config/attention_bias: true is not supported, only false"},
      {"/text_config/hidden_act", "gelu", R"("gelu" is not supported, only "silu")"},
      {"/vision_config/hidden_act", "quick_gelu", R"(only "gelu_pytorch_tanh")"},
      {"/text_config/rope_scaling/rope_type", "yarn", R"("yarn" is not supported, only "default")"},
      {"/quantization_config", {{"quant_method", "gptq"}}, "models quantized by 'gptq' are not supported"},
      {"/quantization", {{"bits", 4}}, "models quantized by MLX are not supported"},
      {"/text_config/rope_scaling/mrope_section", nullptr, "[24, 20, 20] does not add up to half of head_dim"}};
  for (const Refusal& refusal : refusals) {
    PASCALINE_EXPECT_SAYS(complaint_with(refusal.pointer, refusal.value), refusal.complaint);
  }
}

TEST(ModelConfigTest, ReadsTextOnlyModels) {
  const ModelConfig small = config_of("qwen3_0.6b");
  EXPECT_EQ(small.family, ModelFamily::qwen3);
  EXPECT_FALSE(small.vision.has_value());
  EXPECT_EQ(small.text.hidden, 1024);
  EXPECT_EQ(small.text.layers, 28);
  EXPECT_EQ(small.text.heads, 16);
  EXPECT_EQ(small.text.kv_heads, 8);
  EXPECT_EQ(small.text.head_dim, 128);
  EXPECT_EQ(small.text.intermediate, 3072);
  EXPECT_EQ(small.text.vocab, 151936);
  EXPECT_EQ(small.text.max_positions, 40960);
  EXPECT_EQ(small.text.rope_theta, 1e6);
  EXPECT_EQ(small.text.mrope_section, (std::array<std::int64_t, 3>{64, 0, 0})) << "positions have one axis";
  EXPECT_TRUE(small.text.tied);
  EXPECT_EQ(small.eos_tokens, std::vector<std::int64_t>{151645});
  const ModelConfig larger = config_of("qwen3_1.7b");
  EXPECT_EQ(larger.text.hidden, 2048);
  EXPECT_EQ(larger.text.intermediate, 6144);
}

TEST(ModelConfigTest, TextOnlyModelsOfOtherKindsAreRefused) {
  const auto complaint = [](const char* pointer, const json& value) {
    json document = config_json("qwen3_0.6b");
    document[Pointer(pointer)] = value;
    return config_complaint(document.dump());
  };
  PASCALINE_EXPECT_SAYS(complaint("/rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}),
                        R"(/rope_scaling/rope_type: "yarn" is not supported, only "default")");
  PASCALINE_EXPECT_SAYS(complaint("/use_sliding_window", true), "true is not supported, only false");
  PASCALINE_EXPECT_SAYS(complaint("/head_dim", 127), "head_dim 127 is odd");
  PASCALINE_EXPECT_SAYS(complaint("/num_experts", 128), "/num_experts: 128 is not supported, only 0");
  PASCALINE_EXPECT_SAYS(complaint("/vision_config", json::object()), "/vision_config: {} is not supported, only null");
  EXPECT_EQ(complaint("/a_tools_own_key", 1), "accepted");
  PASCALINE_EXPECT_SAYS(complaint("/eos_token_id", 151936), "token 151936 is not in the vocabulary");
  PASCALINE_EXPECT_SAYS(complaint("/quantization_config", {{"quant_method", "gptq"}}), "'gptq' are not supported");
  PASCALINE_EXPECT_SAYS(complaint("/hidden_size", 1 << 20), "accepted");
  EXPECT_EQ(complaint("/eos_token_id", {1, 2}), "accepted");
  json later = config_json("qwen3_0.6b");
  later.erase("rope_theta");
  later["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  later["layer_types"] = json::array({"full_attention"});
  EXPECT_EQ(parse_model_config(later.dump(), "config.json"), config_of("qwen3_0.6b"));
}

TEST(ModelConfigTest, SpellingsOfOtherVersionsAreRead) {
  json document = config_json("tiny_a");
  json& text = document["text_config"];
  text["rope_parameters"] = text["rope_scaling"];
  text["rope_parameters"]["rope_theta"] = text["rope_theta"];
  text.erase("rope_scaling");
  text.erase("rope_theta");
  text["torch_dtype"] = "bfloat16";
  text.erase("dtype");
  text["pad_token_id"] = nullptr;
  text["eos_token_id"] = {504, 505};
  document["vision_config"]["model_type"] = "qwen3_vl_vision";
  const ModelConfig config = parse_model_config(document.dump(), "config.json");
  EXPECT_EQ(config.text.rope_theta, 5e6);
  EXPECT_EQ(config.text.mrope_section, (std::array<std::int64_t, 3>{4, 2, 2}));
  EXPECT_EQ(config.eos_tokens, (std::vector<std::int64_t>{504, 505}));

  text["rope_scaling"] = text["rope_parameters"];
  EXPECT_EQ(config_complaint(document.dump()), "accepted");
  text["rope_theta"] = 1e4;
  PASCALINE_EXPECT_SAYS(config_complaint(document.dump()), "contradict each other");
  text["rope_theta"] = 5e6;
  text["rope_scaling"]["type"] = "default";
  text["rope_scaling"].erase("rope_type");
  EXPECT_EQ(config_complaint(document.dump()), "accepted");
}

TEST(ModelConfigTest, TextThatIsNoConfigurationIsRefused) {
  for (const char* text : {"", "null", "[]", "{", "{} x", "\"config\"", "7"}) {
    PASCALINE_EXPECT_SAYS(config_complaint(text), "config.json: ");
  }
  PASCALINE_EXPECT_SAYS(config_complaint(R"({"model_type": "qwen3_vl", "model_type": "qwen3_vl"})"), "is a duplicate");
}

TEST(ModelConfigTest, TheFileIsNamed) {
  const testing::TemporaryFolder folder;
  const auto load = [&] { (void)load_model_config(folder.path()); };
  PASCALINE_EXPECT_SAYS(complaint_of(load), (folder.path() / "config.json").string() + ": the model folder lacks");
  folder.write("config.json", testing::config_text("tiny_b"));
  EXPECT_EQ(load_model_config(folder.path()).text.layers, 3);
  folder.write("config.json", std::string(17U << 20U, ' '));
  PASCALINE_EXPECT_SAYS(complaint_of(load), "bytes are too many");
  std::filesystem::remove(folder.path() / "config.json");
  std::filesystem::create_directory(folder.path() / "config.json");
  PASCALINE_EXPECT_SAYS(complaint_of(load), "not a regular file");
}

}  // namespace
}  // namespace pascaline
