#include "runtime/checkpoint/model_keys.hpp"

#include <algorithm>
#include <array>

namespace pascaline {
namespace {

using Keys = std::string_view;

// What any configuration may say: of training, of the library that wrote it, and of how it would compute the same.
constexpr std::array kCommonKeys{
    Keys("_attn_implementation"),
    Keys("_attn_implementation_autoset"),
    Keys("_commit_hash"),
    Keys("_name_or_path"),
    Keys("architectures"),
    Keys("attention_dropout"),
    Keys("bos_token_id"),
    Keys("chunk_size_feed_forward"),
    Keys("dtype"),
    Keys("finetuning_task"),
    Keys("gradient_checkpointing"),
    Keys("id2label"),
    Keys("initializer_range"),
    Keys("label2id"),
    Keys("output_attentions"),
    Keys("output_hidden_states"),
    Keys("pad_token_id"),
    Keys("prefix"),
    Keys("problem_type"),
    Keys("return_dict"),
    Keys("sep_token_id"),
    Keys("task_specific_params"),
    Keys("tf_legacy_loss"),
    Keys("tokenizer_class"),
    Keys("torch_dtype"),
    Keys("torchscript"),
    Keys("transformers_version"),
    Keys("use_bfloat16"),
    Keys("use_cache"),
};

constexpr std::array kTextRead{
    Keys("attention_bias"), Keys("eos_token_id"),        Keys("head_dim"),          Keys("hidden_act"),
    Keys("hidden_size"),    Keys("intermediate_size"),   Keys("layer_types"),       Keys("max_position_embeddings"),
    Keys("model_type"),     Keys("num_attention_heads"), Keys("num_hidden_layers"), Keys("num_key_value_heads"),
    Keys("rms_norm_eps"),   Keys("rope_parameters"),     Keys("rope_scaling"),      Keys("rope_theta"),
    Keys("sliding_window"), Keys("tie_word_embeddings"), Keys("vocab_size"),
};

constexpr std::array kTextLimited{
    LimitedKey{"add_cross_attention", "[false]"},
    LimitedKey{"attention_bias", "[false]"},
    LimitedKey{"attn_logit_softcapping", "[null]"},
    LimitedKey{"final_logit_softcapping", "[null]"},
    LimitedKey{"is_encoder_decoder", "[false]"},
    LimitedKey{"mlp_bias", "[false]"},
    LimitedKey{"partial_rotary_factor", "[1]"},
    LimitedKey{"qkv_bias", "[false]"},
    LimitedKey{"use_qk_norm", "[true]"},
    LimitedKey{"use_sliding_window", "[false]"},
};

constexpr std::array kLlamaRead{
    Keys("attention_bias"), Keys("eos_token_id"),        Keys("head_dim"),          Keys("hidden_act"),
    Keys("hidden_size"),    Keys("intermediate_size"),   Keys("layer_types"),       Keys("max_position_embeddings"),
    Keys("model_type"),     Keys("num_attention_heads"), Keys("num_hidden_layers"), Keys("num_key_value_heads"),
    Keys("rms_norm_eps"),   Keys("rope_parameters"),     Keys("rope_scaling"),      Keys("rope_theta"),
    Keys("sliding_window"), Keys("tie_word_embeddings"), Keys("vocab_size"),
};

constexpr std::array kLlamaLimited{
    LimitedKey{"add_cross_attention", "[false]"},   LimitedKey{"attention_bias", "[false]"},
    LimitedKey{"attn_logit_softcapping", "[null]"}, LimitedKey{"final_logit_softcapping", "[null]"},
    LimitedKey{"is_encoder_decoder", "[false]"},    LimitedKey{"mlp_bias", "[false]"},
    LimitedKey{"partial_rotary_factor", "[1]"},     LimitedKey{"pretraining_tp", "[1]"},
    LimitedKey{"rope_interleaved", "[false]"},      LimitedKey{"use_qk_norm", "[false]"},
    LimitedKey{"use_sliding_window", "[false]"},
};

// Of the tools that trained and exported SmolLM.
constexpr std::array kLlamaUnused{Keys("is_decoder"), Keys("is_llama_config"), Keys("transformers.js_config")};

// Layers without a window, where there is none, and how training was split.
constexpr std::array kDecoderUnused{Keys("is_decoder"), Keys("max_window_layers"), Keys("pretraining_tp")};

// Tokens that count at the top of the file.
constexpr std::array kTextUnused{
    Keys("image_token_id"),        Keys("vision_end_token_id"), Keys("video_token_id"),
    Keys("vision_start_token_id"), Keys("vision_token_id"),
};

constexpr std::array kRopeRead{Keys("mrope_section"), Keys("rope_theta")};
constexpr std::array kTextRopeLimited{
    LimitedKey{"mrope_interleaved", "[true]"},
    LimitedKey{"partial_rotary_factor", "[1]"},
    LimitedKey{"rope_type", kRopeTypes},
    LimitedKey{"type", R"(["default", "mrope"])"},
};
constexpr std::array kPlainRopeRead{Keys("rope_theta")};
constexpr std::array kPlainRopeLimited{
    LimitedKey{"partial_rotary_factor", "[1]"},
    LimitedKey{"rope_type", kRopeTypes},
    LimitedKey{"type", kRopeTypes},
};
constexpr std::array kScaledRopeRead{
    Keys("factor"),
    Keys("high_freq_factor"),
    Keys("low_freq_factor"),
    Keys("original_max_position_embeddings"),
    Keys("rope_type"),
    Keys("rope_theta"),
    Keys("type"),
};
constexpr std::array kScaledRopeLimited{LimitedKey{"partial_rotary_factor", "[1]"}};
constexpr std::array kVisionRopeRead{Keys("rope_theta")};
// Transformers 5 calls the tower's embedding, one angle for each axis of the image, "axial"; before, it had no name.
constexpr std::array kVisionRopeLimited{
    LimitedKey{"partial_rotary_factor", "[1]"},
    LimitedKey{"rope_type", R"(["default", "axial"])"},
    LimitedKey{"type", R"(["default", "axial"])"},
};

constexpr std::array kVisionRead{
    Keys("deepstack_visual_indexes"),
    Keys("depth"),
    Keys("hidden_act"),
    Keys("hidden_size"),
    Keys("in_channels"),
    Keys("intermediate_size"),
    Keys("model_type"),
    Keys("num_heads"),
    Keys("num_position_embeddings"),
    Keys("out_hidden_size"),
    Keys("patch_size"),
    Keys("rope_parameters"),
    Keys("rope_scaling"),
    Keys("rope_theta"),
    Keys("spatial_merge_size"),
    Keys("temporal_patch_size"),
};
constexpr std::array kVisionLimited{
    LimitedKey{"attention_bias", "[true]"},
    LimitedKey{"layer_norm_eps", "[1e-06]"},
    LimitedKey{"norm_eps", "[1e-06]"},
    kNormEpsilon,
};

constexpr std::array kGenerationRead{
    Keys("bos_token_id"),
    Keys("do_sample"),
    Keys("eos_token_id"),
    Keys("pad_token_id"),
    Keys("presence_penalty"),
    Keys("repetition_penalty"),
    Keys("temperature"),
    Keys("top_k"),
    Keys("top_p"),
};

constexpr std::array kGenerationLimited{
    LimitedKey{"bad_words_ids", "[[]]"},
    LimitedKey{"begin_suppress_tokens", "[[]]"},
    LimitedKey{"constraints", "[[]]"},
    LimitedKey{"dola_layers", "[null]"},
    LimitedKey{"encoder_no_repeat_ngram_size", "[0]"},
    LimitedKey{"encoder_repetition_penalty", "[1]"},
    LimitedKey{"epsilon_cutoff", "[0]"},
    LimitedKey{"eta_cutoff", "[0]"},
    LimitedKey{"exponential_decay_length_penalty", "[null]"},
    LimitedKey{"force_words_ids", "[[]]"},
    LimitedKey{"forced_bos_token_id", "[null]"},
    LimitedKey{"forced_eos_token_id", "[null]"},
    LimitedKey{"frequency_penalty", "[0]"},
    LimitedKey{"guidance_scale", "[1]"},
    LimitedKey{"min_length", "[0]"},
    LimitedKey{"min_new_tokens", "[0]"},
    LimitedKey{"min_p", "[0]"},
    LimitedKey{"no_repeat_ngram_size", "[0]"},
    LimitedKey{"num_beam_groups", "[1]"},
    LimitedKey{"num_beams", "[1]"},
    LimitedKey{"num_return_sequences", "[1]"},
    LimitedKey{"penalty_alpha", "[0]"},
    LimitedKey{"sequence_bias", "[null]"},
    LimitedKey{"stop_strings", "[[]]"},
    LimitedKey{"suppress_tokens", "[[]]"},
    LimitedKey{"token_healing", "[false]"},
    LimitedKey{"top_h", "[null]"},
    LimitedKey{"typical_p", "[1]"},
    LimitedKey{"watermarking_config", "[null]"},
};

// Of searches that are refused above, of how much is answered, which the commands' options say, and of how the library
// computes and returns the same.
constexpr std::array kGenerationUnused{
    Keys("_from_model_config"),
    Keys("assistant_confidence_threshold"),
    Keys("assistant_early_exit"),
    Keys("assistant_lookbehind"),
    Keys("cache_config"),
    Keys("cache_implementation"),
    Keys("chat_format"),
    Keys("compile_config"),
    Keys("decoder_start_token_id"),
    Keys("disable_compile"),
    Keys("diversity_penalty"),
    Keys("early_stopping"),
    Keys("generation_kwargs"),
    Keys("is_assistant"),
    Keys("length_penalty"),
    Keys("low_memory"),
    Keys("max_length"),
    Keys("max_matching_ngram_size"),
    Keys("max_new_tokens"),
    Keys("max_time"),
    Keys("max_window_size"),
    Keys("num_assistant_tokens"),
    Keys("num_assistant_tokens_schedule"),
    Keys("output_attentions"),
    Keys("output_hidden_states"),
    Keys("output_logits"),
    Keys("output_scores"),
    Keys("prefill_chunk_size"),
    Keys("prompt_lookup_num_tokens"),
    Keys("remove_invalid_values"),
    Keys("renormalize_logits"),
    Keys("return_dict_in_generate"),
    Keys("return_legacy_cache"),
    Keys("target_lookbehind"),
    Keys("transformers_version"),
    Keys("trust_remote_code"),
    Keys("use_cache"),
};

template <typename Element, std::size_t A, std::size_t B>
constexpr auto joined(const std::array<Element, A>& a, const std::array<Element, B>& b) {
  std::array<Element, A + B> all{};
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), all.begin()));
  return all;
}

// At the top of the file of a model that only reads text.
constexpr auto kRootRead = joined(kTextRead, std::array{Keys("quantization_config")});
constexpr auto kLlamaRootRead = joined(kLlamaRead, std::array{Keys("quantization_config")});
constexpr auto kDecoderNoEffect = joined(kCommonKeys, kDecoderUnused);
constexpr auto kLlamaNoEffect = joined(kCommonKeys, kLlamaUnused);
constexpr auto kTextNoEffect = joined(kDecoderNoEffect, kTextUnused);

// The length of a window says nothing where windows are off.
void check_windows(const JsonNode& text) {
  if (!text.has_value("use_sliding_window")) {
    const LimitedKey window{"sliding_window", "[null]"};
    check_limits(text, {&window, 1});
  }
  if (text.has_value("layer_types")) {
    const JsonNode types = text.at("layer_types");
    for (std::size_t i = 0; i < types.array_size(); ++i) {
      check_supported(types.at(i), {"layer_types", R"(["full_attention"])"});
    }
  }
}

}  // namespace

void check_text_keys(const JsonNode& text) {
  check_windows(text);
  check_keys(text, {kTextRead, kTextLimited, kTextNoEffect});
}

void check_qwen3_keys(const JsonNode& root) {
  check_windows(root);
  check_keys(root, {kRootRead, kTextLimited, kDecoderNoEffect});
}

void check_llama_keys(const JsonNode& root) {
  check_windows(root);
  check_keys(root, {kLlamaRootRead, kLlamaLimited, kLlamaNoEffect});
}

void check_scaled_rope_keys(const JsonNode& rope) { check_keys(rope, {kScaledRopeRead, kScaledRopeLimited, {}}); }

void check_plain_rope_keys(const JsonNode& rope) { check_keys(rope, {kPlainRopeRead, kPlainRopeLimited, {}}); }

void check_text_rope_keys(const JsonNode& rope) { check_keys(rope, {kRopeRead, kTextRopeLimited, {}}); }

void check_vision_keys(const JsonNode& vision) { check_keys(vision, {kVisionRead, kVisionLimited, kCommonKeys}); }

void check_vision_rope_keys(const JsonNode& rope) { check_keys(rope, {kVisionRopeRead, kVisionRopeLimited, {}}); }

void check_root_keys(const JsonNode& root, const JsonNode& text) {
  check_windows(root);
  check_limits(root, kTextLimited);
  for (const std::string_view key : kTextRead) {
    const bool is_own = key == "model_type" || key == "tie_word_embeddings" || key == "eos_token_id";
    if (!is_own && root.has_value(key) && !(text.has(key) && text.at(key).value() == root.at(key).value())) {
      root.at(key).fail("only text_config counts, and it does not say the same: make both agree, or remove this key");
    }
  }
}

void check_generation_keys(const JsonNode& root) {
  check_keys(root, {kGenerationRead, kGenerationLimited, kGenerationUnused});
}

}  // namespace pascaline
