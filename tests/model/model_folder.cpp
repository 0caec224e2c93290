#include "tests/model/model_folder.hpp"

#include <fstream>

#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/weight_source.hpp"
#include "tests/model/golden.hpp"

namespace pascaline::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kVocabulary = 752;  // the tokenizer has ids up to 746

void write(const std::filesystem::path& file, const json& content) { std::ofstream(file) << content.dump(1); }

std::string chat_template_text(std::string_view name) {
  std::ifstream file(std::filesystem::path(PASCALINE_TEST_TEXT_DATA) / "chat_templates.json");
  const json templates = json::parse(file);
  for (const json& text : templates.at("texts")) {
    if (text.at("name") == name) {
      return text.at("text").get<std::string>();
    }
  }
  throw std::runtime_error("chat_templates.json lacks a template");
}

void copy_tokenizer(const std::filesystem::path& folder) {
  std::filesystem::copy_file(std::filesystem::path(PASCALINE_TEST_TEXT_DATA) / "tokenizer.json",
                             folder / "tokenizer.json", std::filesystem::copy_options::overwrite_existing);
}

ModelConfig small_text_config(ModelFamily family) {
  ModelConfig config = golden_model_a().config;
  config.family = family;
  config.vision.reset();
  config.text.vocab = kVocabulary;
  config.text.rope_theta = 1e6;
  config.text.mrope_section = {config.text.head_dim / 2, 0, 0};
  config.eos_tokens = {738};
  return config;
}

// config.json of a model that only reads text.
json text_config_json(const ModelConfig& config) {
  const TextConfig& text = config.text;
  const bool is_llama = config.family == ModelFamily::llama;
  return {{"model_type", is_llama ? "llama" : "qwen3"},
          {"architectures", {is_llama ? "LlamaForCausalLM" : "Qwen3ForCausalLM"}},
          {"hidden_size", text.hidden},
          {"num_hidden_layers", text.layers},
          {"num_attention_heads", text.heads},
          {"num_key_value_heads", text.kv_heads},
          {"head_dim", text.head_dim},
          {"intermediate_size", text.intermediate},
          {"hidden_act", "silu"},
          {"vocab_size", text.vocab},
          {"max_position_embeddings", text.max_positions},
          {"rms_norm_eps", text.norm_epsilon.value()},
          {"rope_theta", text.rope_theta},
          {"rope_scaling", nullptr},
          {"attention_bias", false},
          {"tie_word_embeddings", text.tied},
          {"use_sliding_window", false},
          {"eos_token_id", config.eos_tokens.at(0)}};
}

}  // namespace

json config_json(const ModelConfig& config) {
  if (!config.vision) {
    return text_config_json(config);
  }
  const TextConfig& text = config.text;
  const VisionConfig& vision = *config.vision;
  return {{"model_type", "qwen3_vl"},
          {"architectures", {"Qwen3VLForConditionalGeneration"}},
          {"image_token_id", vision.image_token},
          {"video_token_id", vision.video_token},
          {"vision_start_token_id", vision.start_token},
          {"vision_end_token_id", vision.end_token},
          {"tie_word_embeddings", text.tied},
          {"text_config",
           {{"model_type", "qwen3_vl_text"},
            {"hidden_size", text.hidden},
            {"num_hidden_layers", text.layers},
            {"num_attention_heads", text.heads},
            {"num_key_value_heads", text.kv_heads},
            {"head_dim", text.head_dim},
            {"intermediate_size", text.intermediate},
            {"hidden_act", "silu"},
            {"vocab_size", text.vocab},
            {"max_position_embeddings", text.max_positions},
            {"rms_norm_eps", 1e-6},
            {"rope_theta", text.rope_theta},
            {"rope_scaling",
             {{"rope_type", "default"}, {"mrope_interleaved", true}, {"mrope_section", text.mrope_section}}},
            {"attention_bias", false},
            {"tie_word_embeddings", text.tied},
            {"eos_token_id", config.eos_tokens.at(0)}}},
          {"vision_config",
           {{"model_type", "qwen3_vl"},
            {"hidden_size", vision.hidden},
            {"depth", vision.depth},
            {"num_heads", vision.heads},
            {"intermediate_size", vision.intermediate},
            {"hidden_act", "gelu_pytorch_tanh"},
            {"in_channels", vision.in_channels},
            {"patch_size", vision.patch},
            {"temporal_patch_size", vision.temporal_patch},
            {"spatial_merge_size", vision.merge},
            {"out_hidden_size", vision.out_hidden},
            {"num_position_embeddings", vision.positions},
            {"deepstack_visual_indexes", vision.deepstack_indexes}}}};
}

void write_model(const std::filesystem::path& folder, const ModelConfig& config) {
  write(folder / "config.json", config_json(config));
  const WeightSource source = hash_weights(config);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<StoredTensor> tensors;
  for (const TensorSpec& tensor : source.tensors()) {
    bytes.emplace_back(static_cast<std::size_t>(tensor.elements()) * sizeof(float));
    source.read(tensor, ElementType::float32, 0, bytes.back());
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    tensors.push_back({source.tensors()[i].name, StoredType::F32, source.tensors()[i].shape, bytes[i]});
  }
  write_safetensors(folder / "model.safetensors", tensors);
}

ModelConfig write_model_folder(const std::filesystem::path& folder) {
  ModelConfig config = golden_model_a().config;
  config.text.vocab = kVocabulary;
  VisionConfig& vision = config.vision.value();
  vision.start_token = 739;
  vision.end_token = 740;
  vision.image_token = 741;
  vision.video_token = 743;
  config.eos_tokens = {738};
  write_model(folder, config);
  write(folder / "generation_config.json", {{"eos_token_id", {738, 736}}, {"do_sample", true}, {"temperature", 0.7}});
  write(folder / "preprocessor_config.json", {{"size", {{"shortest_edge", 256}, {"longest_edge", 4096}}},
                                              {"patch_size", 4},
                                              {"temporal_patch_size", 2},
                                              {"merge_size", 2},
                                              {"image_mean", {0.5, 0.5, 0.5}},
                                              {"image_std", {0.5, 0.5, 0.5}},
                                              {"image_processor_type", "Qwen2VLImageProcessorFast"}});
  write(folder / "chat_template.json", {{"chat_template", chat_template_text("qwen3-vl")}});
  copy_tokenizer(folder);
  return config;
}

ModelConfig write_llama_folder(const std::filesystem::path& folder) {
  ModelConfig config = small_text_config(ModelFamily::llama);
  config.text.norm_epsilon = {10'000};
  config.text.normalises_heads = false;
  write_model(folder, config);
  write(folder / "generation_config.json", {{"eos_token_id", {738, 736}}});
  write(folder / "tokenizer_config.json", {{"chat_template", chat_template_text("smollm2")}});
  copy_tokenizer(folder);
  return config;
}

void name_video_token(const std::filesystem::path& folder) {
  json tokenizer = json::parse(std::ifstream(folder / "tokenizer.json"));
  for (json& token : tokenizer["added_tokens"]) {
    if (token["id"] == 743) {
      token["content"] = "<|video_pad|>";
    }
  }
  write(folder / "tokenizer.json", tokenizer);
}

ModelConfig write_text_model_folder(const std::filesystem::path& folder) {
  const ModelConfig config = small_text_config(ModelFamily::qwen3);
  write_model(folder, config);
  write(folder / "generation_config.json", {{"eos_token_id", {738, 736}}, {"do_sample", true}, {"temperature", 0.6}});
  write(folder / "tokenizer_config.json", {{"chat_template", chat_template_text("qwen3")}});
  copy_tokenizer(folder);
  return config;
}

}  // namespace pascaline::testing
