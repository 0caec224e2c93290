#include "model/convert/config_files.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "model/checkpoint/families/llama_rope.hpp"
#include "model/checkpoint/gguf/gguf_weights.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/convert/gguf_model_keys.hpp"

namespace pascaline {
namespace {

using nlohmann::ordered_json;

// A number that is float32 elsewhere, with no more digits than that needs.
double shortest(double value) { return std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr); }

ordered_json shortest_of(const std::array<double, 3>& values) {
  return {shortest(values[0]), shortest(values[1]), shortest(values[2])};
}

std::string file_text(const ordered_json& content) { return content.dump(2) + "\n"; }

// One token, or a list of them.
void put_ends(ordered_json& object, const std::vector<std::int64_t>& ends) {
  if (ends.size() == 1) {
    object["eos_token_id"] = ends.front();
  } else if (!ends.empty()) {
    object["eos_token_id"] = ends;
  }
}

void put_tokens(ordered_json& object, const GenerationConfig& generation) {
  if (generation.bos_token) {
    object["bos_token_id"] = *generation.bos_token;
  }
  if (generation.pad_token) {
    object["pad_token_id"] = *generation.pad_token;
  }
}

// What the decoder of any family says of itself.
void put_decoder(ordered_json& object, const TextConfig& text) {
  object["hidden_size"] = text.hidden;
  object["num_hidden_layers"] = text.layers;
  object["num_attention_heads"] = text.heads;
  object["num_key_value_heads"] = text.kv_heads;
  object["head_dim"] = text.head_dim;
  object["intermediate_size"] = text.intermediate;
  object["hidden_act"] = "silu";
  object["vocab_size"] = text.vocab;
  object["max_position_embeddings"] = text.max_positions;
  object["rms_norm_eps"] = text.norm_epsilon.value();
  object["rope_theta"] = text.rope_theta;
  object["attention_bias"] = false;
  object["attention_dropout"] = 0.0;
}

ordered_json vision_json(const VisionConfig& vision) {
  return {{"model_type", "qwen3_vl"},
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
          {"deepstack_visual_indexes", vision.deepstack_indexes}};
}

ordered_json qwen3_vl_json(const ModelConfig& config, const GenerationConfig& generation, std::string_view numbers) {
  const VisionConfig& vision = config.vision.value();
  ordered_json text{{"model_type", "qwen3_vl_text"}};
  put_decoder(text, config.text);
  text["rope_scaling"] = {
      {"rope_type", "default"}, {"mrope_interleaved", true}, {"mrope_section", config.text.mrope_section}};
  text["tie_word_embeddings"] = config.text.tied;
  put_ends(text, config.eos_tokens);
  put_tokens(text, generation);
  text["dtype"] = numbers;
  ordered_json root{{"architectures", {"Qwen3VLForConditionalGeneration"}},
                    {"model_type", "qwen3_vl"},
                    {"image_token_id", vision.image_token}};
  if (vision.video_token != kNoVideoToken) {
    root["video_token_id"] = vision.video_token;
  }
  root["vision_start_token_id"] = vision.start_token;
  root["vision_end_token_id"] = vision.end_token;
  root["tie_word_embeddings"] = config.text.tied;
  root["text_config"] = text;
  root["vision_config"] = vision_json(vision);
  return root;
}

ordered_json qwen3_json(const ModelConfig& config, const GenerationConfig& generation, std::string_view numbers) {
  ordered_json root{{"architectures", {"Qwen3ForCausalLM"}}, {"model_type", "qwen3"}};
  put_decoder(root, config.text);
  root["rope_scaling"] = nullptr;
  root["use_sliding_window"] = false;
  root["tie_word_embeddings"] = config.text.tied;
  put_ends(root, config.eos_tokens);
  put_tokens(root, generation);
  root["dtype"] = numbers;
  return root;
}

ordered_json rope_scaling_json(const TextConfig& text) {
  if (text.rope_divisors.empty()) {
    return nullptr;
  }
  if (const auto factor = linear_rope_factor(text)) {
    return {{"rope_type", "linear"}, {"factor", shortest(*factor)}};
  }
  const auto scaling = find_llama3_scaling(text.rope_divisors, text.rope_theta);
  if (!scaling) {
    throw ModelError(
        fmt::format("tensor '{}': a config.json cannot say that frequencies are divided by these numbers, which are "
                    "not those of Llama 3.1's scaling; use the GGUF file as it is",
                    kGgufRopeFactors));
  }
  return {{"rope_type", "llama3"},
          {"factor", shortest(scaling->factor)},
          {"low_freq_factor", scaling->low},
          {"high_freq_factor", scaling->high},
          {"original_max_position_embeddings", std::llround(scaling->trained)}};
}

ordered_json llama_json(const ModelConfig& config, const GenerationConfig& generation, std::string_view numbers) {
  ordered_json root{{"architectures", {"LlamaForCausalLM"}}, {"model_type", "llama"}};
  put_decoder(root, config.text);
  root["mlp_bias"] = false;
  root["pretraining_tp"] = 1;
  root["rope_scaling"] = rope_scaling_json(config.text);
  root["tie_word_embeddings"] = config.text.tied;
  put_ends(root, config.eos_tokens);
  put_tokens(root, generation);
  root["dtype"] = numbers;
  return root;
}

ordered_json family_json(const ModelConfig& config, const GenerationConfig& generation, std::string_view numbers) {
  switch (config.family) {
    case ModelFamily::qwen3_vl:
      return qwen3_vl_json(config, generation, numbers);
    case ModelFamily::qwen3:
      return qwen3_json(config, generation, numbers);
    case ModelFamily::llama:
      return llama_json(config, generation, numbers);
  }
  throw Error("a family of models without a config.json");
}

}  // namespace

std::string config_text(const ModelConfig& config, const GenerationConfig& generation, std::string_view numbers,
                        std::string_view name) {
  ordered_json root = family_json(config, generation, numbers);
  if (!name.empty()) {
    root[kNameKey] = name;
  }
  return file_text(root);
}

std::string generation_config_text(const GenerationConfig& generation) {
  const RecommendedSampling& recommended = generation.recommended;
  ordered_json root{{"do_sample", generation.do_sample}};
  if (recommended.temperature) {
    root["temperature"] = shortest(generation.temperature);
  }
  if (recommended.top_k) {
    root["top_k"] = generation.top_k;
  }
  if (recommended.top_p) {
    root["top_p"] = shortest(generation.top_p);
  }
  if (recommended.min_p) {
    root["min_p"] = shortest(generation.min_p);
  }
  if (recommended.repetition_penalty) {
    root["repetition_penalty"] = shortest(generation.repetition_penalty);
  }
  put_ends(root, generation.eos_tokens);
  put_tokens(root, generation);
  return file_text(root);
}

std::string preprocessor_config_text(const PreprocessorConfig& config) {
  return file_text({{"image_processor_type", "Qwen2VLImageProcessorFast"},
                    {"size", {{"shortest_edge", config.shortest_edge}, {"longest_edge", config.longest_edge}}},
                    {"patch_size", config.patch_size},
                    {"temporal_patch_size", config.temporal_patch_size},
                    {"merge_size", config.merge_size},
                    {"image_mean", shortest_of(config.image_mean)},
                    {"image_std", shortest_of(config.image_std)}});
}

}  // namespace pascaline
