#include "tests/model/config_keys.hpp"

#include <utility>

namespace pascaline::testing {
namespace {

using nlohmann::json;
using Pointers = std::vector<std::pair<std::string, json>>;

constexpr const char* kConfig = "config.json";
constexpr const char* kPreprocessor = "preprocessor_config.json";
constexpr const char* kGeneration = "generation_config.json";

json patch_of(const Pointers& values) {
  json patch = json::object();
  for (const auto& [pointer, value] : values) {
    patch[json::json_pointer(pointer)] = value;
  }
  return patch;
}

// Keys of one file, all with the same effect.
class CaseList {
 public:
  CaseList(std::vector<KeyCase>& out, std::string file) : out_(&out), file_(std::move(file)) {}

  // `with` are further keys of the file, without which the change would contradict them.
  CaseList& used(const std::string& pointer, const json& value, Pointers with = {},
                 std::map<std::string, json> beside = {}) {
    return add(pointer, value, KeyEffect::used, "", std::move(with), std::move(beside));
  }
  CaseList& checked(const std::string& pointer, const json& value, const std::string& says) {
    return add(pointer, value, KeyEffect::checked, says);
  }
  CaseList& refused(const std::string& pointer, const json& value, const std::string& supported) {
    return add(pointer, value, KeyEffect::refused, value.dump() + " is not supported, only " + supported);
  }
  CaseList& unknown(const std::string& pointer, const json& value) {
    return add(pointer, value, KeyEffect::warned, pointer);
  }
  CaseList& none(const std::string& pointer, const json& value, const std::string& reason) {
    return add(pointer, value, KeyEffect::none, reason);
  }

 private:
  CaseList& add(const std::string& pointer, const json& value, KeyEffect effect, const std::string& says,
                Pointers with = {}, std::map<std::string, json> beside = {}) {
    with.emplace_back(pointer, value);
    out_->push_back({file_, pointer, patch_of(with), effect, says, std::move(beside)});
    return *this;
  }

  std::vector<KeyCase>* out_;
  std::string file_;
};

void add_root(std::vector<KeyCase>& out) {
  CaseList(out, kConfig)
      .checked("/model_type", "qwen2_5_vl", "the model family 'qwen2_5_vl' is not known, only 'qwen3_vl'")
      .checked("/image_token_id", 744, "(image_token_id)")
      .checked("/video_token_id", 741, "are the same")
      .none("/video_token_id", 744, "videos are not read; a tokenizer that has <|video_pad|> must agree")
      .checked("/vision_start_token_id", 744, "(vision_start_token_id)")
      .checked("/vision_end_token_id", 744, "(vision_end_token_id)")
      .used("/tie_word_embeddings", false)
      .none("/architectures", json::array({"Other"}), "model_type says the same, and every tensor is checked by name")
      .none("/transformers_version", "5.0.0", "which library wrote it")
      .none("/dtype", "float32", "the safetensors say the types of weights")
      .none("/unsloth_fixed", true, "a mark of the tool that wrote it")
      .unknown("/fine_tuned_by", "somebody")
      .checked("/rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}, "only text_config counts")
      .checked("/hidden_size", 128, "only text_config counts")
      .refused("/use_sliding_window", true, "false")
      .none("/sliding_window", 4096, "windows are off")
      .checked("/quantization_config", {{"quant_method", "gptq"}}, "gptq");
}

void add_text(std::vector<KeyCase>& out) {
  const std::string head = "/text_config/head_dim";
  CaseList(out, kConfig)
      .refused("/text_config/model_type", "llama", R"("qwen3_vl_text")")
      .used("/text_config/hidden_size", 128, {{"/vision_config/out_hidden_size", 128}})
      .used("/text_config/num_hidden_layers", 3)
      .used("/text_config/num_attention_heads", 2)
      .used("/text_config/num_key_value_heads", 4)
      .used(head, 32, {{"/text_config/rope_scaling/mrope_section", {8, 4, 4}}})
      .used("/text_config/intermediate_size", 64)
      .used("/text_config/vocab_size", 800)
      .used("/text_config/max_position_embeddings", 2048)
      .used("/text_config/rope_theta", 1e4)
      .used("/text_config/rope_scaling/mrope_section", {8, 0, 0})
      .used("/text_config/eos_token_id", 5, {}, {{kGeneration, {{"eos_token_id", nullptr}}}})
      .none("/text_config/tie_word_embeddings", false, "the one at the top level of the file counts")
      .refused("/text_config/hidden_act", "gelu", R"("silu")")
      .refused("/text_config/attention_bias", true, "false")
      .used("/text_config/rms_norm_eps", 0.01)
      .refused("/text_config/rope_scaling/rope_type", "yarn", R"("default")")
      .refused("/text_config/rope_scaling/mrope_interleaved", false, "true")
      .refused("/text_config/rope_scaling/partial_rotary_factor", 0.5, "1")
      .refused("/text_config/partial_rotary_factor", 0.5, "1")
      .refused("/text_config/use_sliding_window", true, "false")
      .none("/text_config/sliding_window", 4096, "windows are off without use_sliding_window")
      .refused("/text_config/mlp_bias", true, "false")
      .refused("/text_config/attn_logit_softcapping", 30.0, "null")
      .refused("/text_config/final_logit_softcapping", 30.0, "null")
      .unknown("/text_config/rope_scaling/factor", 2.0)
      .unknown("/text_config/rope_scaling_factors", 2.0)
      .refused("/text_config/logit_scale", 0.5, "1")
      .refused("/text_config/num_experts", 8, "0")
      .none("/text_config/attention_dropout", 0.5, "training alone drops anything")
      .none("/text_config/bos_token_id", 7, "no prompt of the family begins with it")
      .none("/text_config/pad_token_id", 7, "prompts are not padded")
      .none("/text_config/dtype", "float32", "the safetensors say the types of weights")
      .none("/text_config/torch_dtype", "float16", "the same in older files")
      .none("/text_config/initializer_range", 0.5, "weights are loaded")
      .none("/text_config/use_cache", false, "keys and values are the same, kept or computed again")
      .none("/text_config/max_window_layers", 1, "there are no windows");
  out.push_back({kConfig,
                 "/text_config/layer_types",
                 {{"text_config", {{"layer_types", {"full_attention", "sliding_attention"}}}}},
                 KeyEffect::refused,
                 R"("sliding_attention" is not supported, only "full_attention")"});
  const json rope{{"rope_type", "default"}, {"mrope_section", {4, 2, 2}}, {"mrope_interleaved", true}};
  CaseList(out, kConfig)
      .checked("/text_config/rope_scaling/rope_theta", 1e4, "contradict each other")
      .used("/text_config/rope_parameters/rope_theta", 1e4,
            {{"/text_config/rope_scaling", nullptr},
             {"/text_config/rope_theta", nullptr},
             {"/text_config/rope_parameters", rope}});
  out.push_back({kConfig,
                 "/text_config/sliding_window",
                 {{"text_config", {{"use_sliding_window", false}, {"sliding_window", 4096}}}},
                 KeyEffect::none,
                 "windows are off"});
}

void add_vision(std::vector<KeyCase>& out) {
  const auto prepared = [](const char* key, int value) {
    return std::map<std::string, json>{{kPreprocessor, {{key, value}}}};
  };
  CaseList(out, kConfig)
      .refused("/vision_config/model_type", "clip", R"("qwen3_vl" or "qwen3_vl_vision")")
      .used("/vision_config/hidden_size", 64)
      .used("/vision_config/depth", 3)
      .used("/vision_config/num_heads", 1)
      .used("/vision_config/intermediate_size", 128)
      .used("/vision_config/num_position_embeddings", 25)
      .used("/vision_config/deepstack_visual_indexes", json::array({1}))
      .used("/vision_config/patch_size", 8, {}, prepared("patch_size", 8))
      .used("/vision_config/temporal_patch_size", 1, {}, prepared("temporal_patch_size", 1))
      .used("/vision_config/spatial_merge_size", 1, {}, prepared("merge_size", 1))
      .used("/vision_config/rope_theta", 100)
      .used("/vision_config/rope_scaling/rope_theta", 100, {{"/vision_config/rope_scaling/rope_type", "default"}})
      .used("/vision_config/rope_parameters/rope_theta", 100, {{"/vision_config/rope_parameters/rope_type", "default"}})
      .used("/vision_config/rope_parameters/rope_theta", 100, {{"/vision_config/rope_parameters/rope_type", "axial"}})
      .none("/vision_config/rope_parameters/rope_type", "axial", "Transformers 5 calls the tower's own embedding so")
      .refused("/vision_config/rope_parameters/rope_type", "linear", R"("default" or "axial")")
      .refused("/vision_config/rope_parameters/partial_rotary_factor", 0.5, "1")
      .unknown("/vision_config/rope_parameters/factor", 2.0)
      .checked("/vision_config/in_channels", 1, "1 colours")
      .checked("/vision_config/out_hidden_size", 32, "is not the decoder's hidden_size 64")
      .refused("/vision_config/hidden_act", "quick_gelu", R"("gelu_pytorch_tanh")")
      .refused("/vision_config/layer_norm_eps", 1e-5, "1e-06")
      .refused("/vision_config/rms_norm_eps", 1e-5, "1e-06")
      .refused("/vision_config/window_size", 112, "null")
      .none("/vision_config/initializer_range", 0.5, "weights are loaded")
      .none("/vision_config/dtype", "float32", "the safetensors say the types of weights");
}

void add_text_only(std::vector<KeyCase>& out) {
  CaseList(out, kConfig)
      .checked("/model_type", "gemma", "the model family 'gemma' is not known, only 'qwen3_vl'")
      .checked("/quantization_config", {{"quant_method", "gptq"}}, "gptq")
      .used("/hidden_size", 128)
      .used("/num_hidden_layers", 3)
      .used("/num_attention_heads", 2)
      .used("/num_key_value_heads", 4)
      .used("/head_dim", 32)
      .used("/intermediate_size", 64)
      .used("/vocab_size", 800)
      .used("/max_position_embeddings", 2048)
      .used("/rope_theta", 1e4)
      .used("/rope_parameters/rope_theta", 1e4, {{"/rope_theta", nullptr}, {"/rope_parameters/rope_type", "default"}})
      .used("/rope_scaling/rope_theta", 1e4, {{"/rope_theta", nullptr}, {"/rope_scaling/rope_type", "default"}})
      .used("/eos_token_id", 5, {}, {{kGeneration, {{"eos_token_id", nullptr}}}})
      .used("/tie_word_embeddings", false)
      .checked("/rope_scaling", {{"rope_type", "default"}, {"rope_theta", 1e4}}, "contradict each other")
      .refused("/hidden_act", "gelu", R"("silu")")
      .refused("/attention_bias", true, "false")
      .used("/rms_norm_eps", 0.01)
      .checked("/rms_norm_eps", 0, "0 is not supported, only whole billionths")
      .refused("/rope_scaling/rope_type", "yarn", R"("default")")
      .refused("/rope_parameters/rope_type", "linear", R"("default")")
      .refused("/partial_rotary_factor", 0.5, "1")
      .refused("/use_sliding_window", true, "false")
      .refused("/mlp_bias", true, "false")
      .refused("/attn_logit_softcapping", 30.0, "null")
      .refused("/final_logit_softcapping", 30.0, "null")
      .refused("/logit_scale", 0.5, "1")
      .refused("/num_experts", 8, "0")
      .unknown("/image_token_id", 5)
      .none("/architectures", json::array({"Other"}), "model_type says the same, and every tensor is checked by name")
      .none("/auto_map", {{"AutoModel", "modeling.Other"}}, "code of files is not run")
      .none("/loss_type", "ForCausalLM", "of training")
      .none("/neftune_noise_alpha", 5, "of training")
      .none("/num_labels", 3, "of another task")
      .none("/embd_pdrop", 0.5, "training alone drops anything")
      .none("/model_max_length", 99, "max_position_embeddings says it")
      .none("/unsloth_fixed", true, "a mark of the tool that wrote it")
      .none("/num_experts_per_tok", 2, "there are no experts")
      .none("/no_rope_layers", {1, 1}, "every layer turns its positions")
      .none("/logits_scaling", 1.0, "it is so without")
      .refused("/logits_scaling", 8.0, "1")
      .refused("/embedding_multiplier", 12.0, "1")
      .refused("/residual_multiplier", 0.2, "1")
      .refused("/attention_multiplier", 0.01, "null")
      .unknown("/a_tools_own_key", {{"some", "thing"}})
      .none("/attention_dropout", 0.5, "training alone drops anything")
      .none("/bos_token_id", 7, "no prompt of the family begins with it")
      .none("/pad_token_id", 7, "prompts are not padded")
      .none("/dtype", "float32", "the safetensors say the types of weights")
      .none("/torch_dtype", "float16", "the same in older files")
      .none("/initializer_range", 0.5, "weights are loaded")
      .none("/transformers_version", "5.0.0", "which library wrote it")
      .none("/use_cache", false, "keys and values are the same, kept or computed again")
      .none("/sliding_window", 4096, "windows are off")
      .none("/max_window_layers", 1, "there are no windows");
  out.push_back({kConfig,
                 "/rope_scaling/factor",
                 {{"rope_scaling", {{"rope_type", "default"}, {"factor", 2.0}}}},
                 KeyEffect::warned,
                 "/rope_scaling/factor"});
  out.push_back({kConfig,
                 "/layer_types",
                 {{"layer_types", {"full_attention", "sliding_attention"}}},
                 KeyEffect::refused,
                 R"("sliding_attention" is not supported, only "full_attention")"});
}

void add_llama(std::vector<KeyCase>& out) {
  const json llama3{{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_max_position_embeddings", 8}};
  const auto scaled = [&](const char* pointer, const json& scaling, KeyEffect effect, const char* says) {
    out.push_back({kConfig, pointer, {{"rope_scaling", scaling}}, effect, says});
  };
  scaled("/rope_scaling/rope_type", llama3, KeyEffect::used, "");
  scaled("/rope_scaling/factor", {{"rope_type", "linear"}, {"factor", 2.0}}, KeyEffect::used, "");
  scaled("/rope_scaling/type", {{"type", "linear"}, {"factor", 2.0}}, KeyEffect::used, "");
  scaled("/rope_scaling/rope_type", {{"rope_type", "default"}}, KeyEffect::none, "it is so without");
  scaled("/rope_scaling/rope_type", {{"rope_type", "yarn"}, {"factor", 2.0}}, KeyEffect::refused,
         R"("yarn" is not supported, only "default" or "linear" or "llama3")");
  scaled("/rope_scaling", {{"rope_type", "linear"}}, KeyEffect::checked, "factor");
  scaled("/rope_scaling/factor", {{"rope_type", "linear"}, {"factor", -1.0}}, KeyEffect::refused, "out of range");
  scaled("/rope_scaling/beta_fast", {{"rope_type", "default"}, {"beta_fast", 1.0}}, KeyEffect::warned,
         "/rope_scaling/beta_fast");
  out.push_back({kConfig,
                 "/sliding_window",
                 {{"use_sliding_window", nullptr}, {"sliding_window", 4096}},
                 KeyEffect::refused,
                 "4096 is not supported, only null"});
  json turned = llama3;
  turned["low_freq_factor"] = 5.0;
  scaled("/rope_scaling", turned, KeyEffect::refused, "low_freq_factor 5 is not below high_freq_factor 4");
  CaseList(out, kConfig)
      .used("/rms_norm_eps", 0.01)
      .checked("/rms_norm_eps", 1e-12, "only whole billionths")
      .used("/rope_theta", 1e4)
      .used("/tie_word_embeddings", false)
      .used("/head_dim", 32)
      .refused("/rope_interleaved", true, "false")
      .none("/pretraining_tp", 2, "how training was split")
      .refused("/mlp_bias", true, "false")
      .refused("/attention_bias", true, "false")
      .refused("/use_qk_norm", true, "false")
      .refused("/num_experts", 8, "0")
      .none("/is_llama_config", true, "of the tool that trained SmolLM2")
      .none("/transformers.js_config", json::object(), "of another program");
}

void add_preprocessor(std::vector<KeyCase>& out) {
  const std::string apart = "take both files from one folder";
  const std::string array = "how the library takes and gives arrays";
  CaseList(out, kPreprocessor)
      .used("/size/shortest_edge", 2048)
      .used("/size/longest_edge", 512)
      .used("/min_pixels", 2048)
      .used("/max_pixels", 512)
      .used("/image_mean", {0.4, 0.5, 0.5})
      .used("/image_std", {0.4, 0.5, 0.5})
      .used("/rescale_factor", 0.01)
      .checked("/patch_size", 8, apart)
      .checked("/temporal_patch_size", 1, apart)
      .checked("/merge_size", 1, apart)
      .checked("/image_processor_type", "CLIPImageProcessor", "'CLIPImageProcessor' is not the processor of")
      .refused("/do_resize", false, "true")
      .refused("/do_rescale", false, "true")
      .refused("/do_normalize", false, "true")
      .refused("/do_convert_rgb", false, "true")
      .refused("/do_center_crop", true, "false")
      .refused("/do_pad", true, "false")
      .refused("/resample", 2, "3")
      .unknown("/size/height", 448)
      .unknown("/do_flip_channel_order", true)
      .none("/processor_class", "Other", "the same is said by image_processor_type")
      .none("/crop_size", 448, "nothing is cropped")
      .none("/pad_size", 448, "nothing is padded")
      .none("/data_format", "channels_last", array)
      .none("/input_data_format", "channels_last", array)
      .none("/return_tensors", "pt", array)
      .none("/device", "cuda", array)
      .none("/disable_grouping", true, array)
      .none("/default_to_square", false, "size has no single number");
}

void add_generation(std::vector<KeyCase>& out) {
  CaseList(out, kGeneration)
      .used("/do_sample", false)
      .used("/temperature", 0.5)
      .used("/top_k", 7)
      .used("/top_p", 0.5)
      .used("/repetition_penalty", 1.5)
      .used("/presence_penalty", 1.5)
      .used("/eos_token_id", json::array({738}))
      .refused("/num_beams", 4, "1")
      .used("/min_p", 0.1)
      .refused("/typical_p", 0.9, "1")
      .refused("/no_repeat_ngram_size", 3, "0")
      .refused("/frequency_penalty", 1.0, "0")
      .refused("/suppress_tokens", json::array({5}), "[]")
      .refused("/stop_strings", json::array({"end"}), "[]")
      .refused("/guidance_scale", 2.0, "1")
      .refused("/min_new_tokens", 5, "0")
      .unknown("/new_kind_of_draw", 0.5)
      .none("/bos_token_id", 7, "no prompt of the family begins with it")
      .none("/pad_token_id", 7, "prompts are not padded")
      .none("/transformers_version", "5.0.0", "which library wrote it")
      .none("/max_new_tokens", 7, "--max-tokens says how long an answer may be")
      .none("/length_penalty", 2.0, "of beams, which are refused")
      .none("/use_cache", false, "keys and values are the same, kept or computed again");
}

}  // namespace

const std::vector<KeyCase>& key_cases() {
  static const std::vector<KeyCase> cases = [] {
    std::vector<KeyCase> all;
    add_root(all);
    add_text(all);
    add_vision(all);
    add_preprocessor(all);
    add_generation(all);
    return all;
  }();
  return cases;
}

const std::vector<KeyCase>& text_only_key_cases() {
  static const std::vector<KeyCase> cases = [] {
    std::vector<KeyCase> all;
    add_text_only(all);
    add_generation(all);
    return all;
  }();
  return cases;
}

const std::vector<KeyCase>& llama_key_cases() {
  static const std::vector<KeyCase> cases = [] {
    std::vector<KeyCase> all;
    add_llama(all);
    return all;
  }();
  return cases;
}

std::vector<json> released_preprocessors() {
  const json released{{"size", {{"longest_edge", 16777216}, {"shortest_edge", 65536}}},
                      {"patch_size", 16},
                      {"temporal_patch_size", 2},
                      {"merge_size", 2},
                      {"image_mean", {0.5, 0.5, 0.5}},
                      {"image_std", {0.5, 0.5, 0.5}},
                      {"processor_class", "Qwen3VLProcessor"},
                      {"image_processor_type", "Qwen2VLImageProcessorFast"}};
  json later = released;
  later.update({{"crop_size", nullptr},
                {"data_format", "channels_first"},
                {"default_to_square", true},
                {"device", nullptr},
                {"disable_grouping", nullptr},
                {"do_center_crop", nullptr},
                {"do_convert_rgb", true},
                {"do_normalize", true},
                {"do_pad", nullptr},
                {"do_rescale", true},
                {"do_resize", true},
                {"input_data_format", nullptr},
                {"max_pixels", nullptr},
                {"min_pixels", nullptr},
                {"pad_size", nullptr},
                {"resample", 3},
                {"rescale_factor", 0.00392156862745098},
                {"return_tensors", nullptr}});
  return {released, later};
}

json released_generation() {
  return {{"bos_token_id", 151643},
          {"pad_token_id", 151643},
          {"do_sample", true},
          {"eos_token_id", {151645, 151643}},
          {"top_p", 0.8},
          {"top_k", 20},
          {"temperature", 0.7},
          {"repetition_penalty", 1.0},
          {"transformers_version", "4.56.0"}};
}

}  // namespace pascaline::testing
