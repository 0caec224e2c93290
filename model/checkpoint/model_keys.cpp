#include "model/checkpoint/model_keys.hpp"

#include <algorithm>
#include <array>

namespace pascaline {
namespace {

using Keys = std::string_view;

// What any configuration may say without an effect on results: of training, of the library or tool that wrote it, of
// layers without a window or expert, and of how it would compute the same.
constexpr std::array kCommonKeys{
    Keys("_attn_implementation"),
    Keys("_attn_implementation_autoset"),
    Keys("_commit_hash"),
    Keys("_name_or_path"),
    Keys("architectures"),
    Keys("attention_dropout"),
    Keys("attn_dropout"),
    Keys("attn_pdrop"),
    Keys("auto_map"),
    Keys("bos_token_id"),
    Keys("chunk_size_feed_forward"),
    Keys("classifier_dropout"),
    Keys("cross_attention_hidden_size"),
    Keys("dropout"),
    Keys("dtype"),
    Keys("embd_dropout"),
    Keys("embd_pdrop"),
    Keys("embedding_dropout"),
    Keys("finetuning_task"),
    Keys("gradient_checkpointing"),
    Keys("hidden_dropout"),
    Keys("hidden_dropout_prob"),
    Keys("id2label"),
    Keys("initializer_range"),
    Keys("is_decoder"),
    Keys("keys_to_ignore_at_inference"),
    Keys("label2id"),
    Keys("loss_type"),
    Keys("max_sequence_length"),
    Keys("max_window_layers"),
    Keys("mlp_dropout"),
    Keys("model_max_length"),
    Keys("neftune_noise_alpha"),
    Keys("num_labels"),
    Keys("output_attentions"),
    Keys("output_hidden_states"),
    Keys("pad_token_id"),
    Keys("prefix"),
    Keys("pretraining_tp"),
    Keys("problem_type"),
    Keys("pruned_heads"),
    Keys("resid_dropout"),
    Keys("resid_pdrop"),
    Keys("return_dict"),
    Keys("sep_token_id"),
    Keys("summary_activation"),
    Keys("task_specific_params"),
    Keys("tf_legacy_loss"),
    Keys("tie_encoder_decoder"),
    Keys("tokenizer_class"),
    Keys("torch_dtype"),
    Keys("torchscript"),
    Keys("transformers_version"),
    Keys("unsloth_fixed"),
    Keys("unsloth_version"),
    Keys("use_bfloat16"),
    Keys("use_cache"),
};

// What only matters to layers with experts, which are refused.
constexpr std::array kExpertKeys{
    Keys("decoder_sparse_step"),  Keys("mlp_only_layers"),     Keys("moe_intermediate_size"),
    Keys("norm_topk_prob"),       Keys("num_experts_per_tok"), Keys("output_router_logits"),
    Keys("router_aux_loss_coef"), Keys("router_jitter_noise"), Keys("shared_expert_intermediate_size"),
};

constexpr std::array kTextRead{
    Keys("attention_bias"),
    Keys("eos_token_id"),
    Keys("head_dim"),
    Keys("hidden_act"),
    Keys("hidden_size"),
    Keys("intermediate_size"),
    Keys("layer_types"),
    Keys("max_position_embeddings"),
    Keys("model_type"),
    Keys("no_rope_layers"),
    Keys("num_attention_heads"),
    Keys("num_hidden_layers"),
    Keys("num_key_value_heads"),
    Keys("rms_norm_eps"),
    Keys("rope_parameters"),
    Keys("rope_scaling"),
    Keys("rope_theta"),
    Keys("rotary_dim"),
    Keys("sliding_window"),
    Keys("softmax_scale"),
    Keys("tie_word_embeddings"),
    Keys("vocab_size"),
};

constexpr std::string_view kSilu = R"(["silu", "swish"])";

// What changes the mathematics of a decoder, with the values at which it does not.
constexpr std::array kDecoderLimited{
    LimitedKey{"activation_function", kSilu},
    LimitedKey{"add_cross_attention", "[false]"},
    LimitedKey{"alibi", "[false]"},
    LimitedKey{"apply_layernorm_1p", "[false]"},
    LimitedKey{"attention_bias", "[false]"},
    LimitedKey{"attention_chunk_size", "[null]"},
    LimitedKey{"attention_multiplier", "[null]"},
    LimitedKey{"attention_out_bias", "[false]"},
    LimitedKey{"attention_scale", "[null]"},
    LimitedKey{"attn_logit_softcap", "[null]"},
    LimitedKey{"attn_logit_softcapping", "[null]"},
    LimitedKey{"attn_output_gate", "[false]"},
    LimitedKey{"clip_qkv", "[null]"},
    LimitedKey{"dual_chunk_attention_config", "[null]"},
    LimitedKey{"embedding_multiplier", "[1]"},
    LimitedKey{"embedding_scale", "[1]"},
    LimitedKey{"final_logit_softcapping", "[null]"},
    LimitedKey{"global_attn_every_n_layers", "[0, 1]"},
    LimitedKey{"hidden_activation", kSilu},
    LimitedKey{"is_causal", "[true]"},
    LimitedKey{"is_encoder_decoder", "[false]"},
    LimitedKey{"layernorm_zero_centered_gamma", "[false]"},
    LimitedKey{"lm_head_bias", "[false]"},
    LimitedKey{"logit_scale", "[1]"},
    LimitedKey{"logit_softcapping", "[null]"},
    LimitedKey{"logits_scaling", "[1]"},
    LimitedKey{"logits_soft_cap", "[null]"},
    LimitedKey{"mlp_bias", "[false]"},
    LimitedKey{"n_routed_experts", "[0]"},
    LimitedKey{"n_shared_experts", "[0]"},
    LimitedKey{"no_rope_layer_interval", "[0]"},
    LimitedKey{"norm_after", "[false]"},
    LimitedKey{"num_experts", "[0]"},
    LimitedKey{"num_local_experts", "[0]"},
    LimitedKey{"num_shared_experts", "[0]"},
    LimitedKey{"parallel_attn", "[false]"},
    LimitedKey{"partial_rotary_factor", "[1]"},
    LimitedKey{"position_embedding_type", R"(["rope", "rotary"])"},
    LimitedKey{"qkv_bias", "[false]"},
    LimitedKey{"query_pre_attn_scalar", "[null]"},
    LimitedKey{"residual_multiplier", "[1]"},
    LimitedKey{"rms_norm_add_unit_offset", "[false]"},
    LimitedKey{"rope_interleave", "[false]"},
    LimitedKey{"rope_interleaved", "[false]"},
    LimitedKey{"rope_local_base_freq", "[null]"},
    LimitedKey{"rotary_emb_fraction", "[1]"},
    LimitedKey{"rotary_interleaved", "[false]"},
    LimitedKey{"rotary_pct", "[1]"},
    LimitedKey{"rotary_percent", "[1]"},
    LimitedKey{"scale_depth", "[null]"},
    LimitedKey{"scale_emb", "[1]"},
    LimitedKey{"scale_embeddings", "[false]"},
    LimitedKey{"sliding_window_pattern", "[0, 1]"},
    LimitedKey{"use_alibi", "[false]"},
    LimitedKey{"use_bias", "[false]"},
    LimitedKey{"use_bidirectional_attention", "[false]"},
    LimitedKey{"use_dynamic_ntk", "[false]"},
    LimitedKey{"use_logn_attn", "[false]"},
    LimitedKey{"use_mla", "[false]"},
    LimitedKey{"use_parallel_residual", "[false]"},
    LimitedKey{"use_qkv_bias", "[false]"},
    LimitedKey{"use_sliding_window", "[false]"},
};
// Of a model that also reads something else.
constexpr std::array kTextAlone{LimitedKey{"audio_config", "[null]"}, LimitedKey{"text_config", "[null]"},
                                LimitedKey{"vision_config", "[null]"}};
constexpr std::array kQkNorm{LimitedKey{"qk_layernorm", "[true]"}, LimitedKey{"qk_norm", "[true]"},
                             LimitedKey{"use_qk_norm", "[true]"}};
constexpr std::array kNoQkNorm{LimitedKey{"qk_layernorm", "[false]"}, LimitedKey{"qk_norm", "[false]"},
                               LimitedKey{"use_qk_norm", "[false]"}};

// Of the tools that trained and exported SmolLM.
constexpr std::array kLlamaUnused{Keys("is_llama_config"), Keys("transformers.js_config")};

// Tokens that count at the top of the file.
constexpr std::array kTextUnused{
    Keys("image_token_id"),        Keys("vision_end_token_id"), Keys("video_token_id"),
    Keys("vision_start_token_id"), Keys("vision_token_id"),
};

// At the top of a file whose text model has an object of its own.
constexpr std::array kOuterRead{
    Keys("image_token_id"),      Keys("quantization_config"),   Keys("text_config"),   Keys("video_token_id"),
    Keys("vision_end_token_id"), Keys("vision_start_token_id"), Keys("vision_config"),
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
    LimitedKey{"fullatt_block_indexes", "[null]"},
    LimitedKey{"layer_norm_eps", "[1e-06]"},
    LimitedKey{"norm_eps", "[1e-06]"},
    kNormEpsilon,
    LimitedKey{"window_size", "[null]"},
};

constexpr std::array kGenerationRead{
    Keys("bos_token_id"),     Keys("do_sample"),          Keys("eos_token_id"), Keys("min_p"), Keys("pad_token_id"),
    Keys("presence_penalty"), Keys("repetition_penalty"), Keys("temperature"),  Keys("top_k"), Keys("top_p"),
};

// What changes every answer, with the values at which it does not.
constexpr std::array kGenerationLimited{
    LimitedKey{"bad_words_ids", "[[]]"},
    LimitedKey{"begin_suppress_tokens", "[[]]"},
    LimitedKey{"constraints", "[[]]"},
    LimitedKey{"dola_layers", "[null]"},
    LimitedKey{"encoder_no_repeat_ngram_size", "[0]"},
    LimitedKey{"encoder_repetition_penalty", "[1]"},
    LimitedKey{"exponential_decay_length_penalty", "[null]"},
    LimitedKey{"force_words_ids", "[[]]"},
    LimitedKey{"forced_bos_token_id", "[null]"},
    LimitedKey{"forced_eos_token_id", "[null]"},
    LimitedKey{"frequency_penalty", "[0]"},
    LimitedKey{"guidance_scale", "[1]"},
    LimitedKey{"min_length", "[0]"},
    LimitedKey{"min_new_tokens", "[0]"},
    LimitedKey{"no_repeat_ngram_size", "[0]"},
    LimitedKey{"num_beam_groups", "[1]"},
    LimitedKey{"num_beams", "[1]"},
    LimitedKey{"num_return_sequences", "[1]"},
    LimitedKey{"penalty_alpha", "[0]"},
    LimitedKey{"sequence_bias", "[null]"},
    LimitedKey{"stop_strings", "[[]]"},
    LimitedKey{"suppress_tokens", "[[]]"},
    LimitedKey{"token_healing", "[false]"},
    LimitedKey{"watermarking_config", "[null]"},
};

// Likewise, where tokens are drawn.
constexpr std::array kDrawingLimited{
    LimitedKey{"epsilon_cutoff", "[0]"},
    LimitedKey{"eta_cutoff", "[0]"},
    LimitedKey{"top_h", "[null]"},
    LimitedKey{"typical_p", "[1]"},
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
constexpr auto kOuterKeys = joined(kTextRead, kOuterRead);
constexpr auto kDecoderNoEffect = joined(kCommonKeys, kExpertKeys);
constexpr auto kLlamaNoEffect = joined(kDecoderNoEffect, kLlamaUnused);
constexpr auto kTextNoEffect = joined(kDecoderNoEffect, kTextUnused);
constexpr auto kQwenLimited = joined(kDecoderLimited, kQkNorm);
constexpr auto kQwenRootLimited = joined(kQwenLimited, kTextAlone);
constexpr auto kLlamaLimited = joined(joined(kDecoderLimited, kNoQkNorm), kTextAlone);

// Every layer attends to all tokens before, and turns its positions.
void check_layers(const JsonNode& text) {
  const auto each = [&](const LimitedKey& limit) {
    if (text.has_value(limit.key)) {
      const JsonNode layers = text.at(limit.key);
      for (std::size_t i = 0; i < layers.array_size(); ++i) {
        check_supported(layers.at(i), limit);
      }
    }
  };
  each({"layer_types", R"(["full_attention"])"});
  each({"no_rope_layers", "[1]"});
}

}  // namespace

void check_text_keys(const JsonNode& text) {
  check_layers(text);
  check_keys(text, {kTextRead, kQwenLimited, kTextNoEffect});
}

void check_qwen3_keys(const JsonNode& root) {
  check_layers(root);
  check_keys(root, {kRootRead, kQwenRootLimited, kDecoderNoEffect});
}

// Other models of this form have a window wherever there is a length of one; without a switch it cannot be told.
void check_llama_keys(const JsonNode& root) {
  if (!root.has_value("use_sliding_window")) {
    const LimitedKey window{"sliding_window", "[null]"};
    check_limits(root, {&window, 1});
  }
  check_layers(root);
  check_keys(root, {kRootRead, kLlamaLimited, kLlamaNoEffect});
}

void check_scaled_rope_keys(const JsonNode& rope) { check_keys(rope, {kScaledRopeRead, kScaledRopeLimited, {}}); }

void check_plain_rope_keys(const JsonNode& rope) { check_keys(rope, {kPlainRopeRead, kPlainRopeLimited, {}}); }

void check_text_rope_keys(const JsonNode& rope) { check_keys(rope, {kRopeRead, kTextRopeLimited, {}}); }

void check_vision_keys(const JsonNode& vision) { check_keys(vision, {kVisionRead, kVisionLimited, kCommonKeys}); }

void check_vision_rope_keys(const JsonNode& rope) { check_keys(rope, {kVisionRopeRead, kVisionRopeLimited, {}}); }

void check_root_keys(const JsonNode& root, const JsonNode& text) {
  check_layers(root);
  check_keys(root, {kOuterKeys, kQwenLimited, kDecoderNoEffect});
  for (const std::string_view key : kTextRead) {
    const bool is_own = key == "model_type" || key == "tie_word_embeddings" || key == "eos_token_id" ||
                        key == "attention_bias" || key == "hidden_act" || key == "sliding_window";
    if (!is_own && root.has_value(key) && !(text.has(key) && text.at(key).value() == root.at(key).value())) {
      root.at(key).fail("only text_config counts, and it does not say the same: make both agree, or remove this key");
    }
  }
}

std::span<const LimitedKey> limited_generation_keys() noexcept { return kGenerationLimited; }

std::span<const LimitedKey> limited_drawing_keys() noexcept { return kDrawingLimited; }

void check_generation_keys(const JsonNode& root) {
  static constexpr auto kRead = [] {
    constexpr auto kLimited = joined(kGenerationLimited, kDrawingLimited);
    std::array<std::string_view, kLimited.size()> names{};
    std::transform(kLimited.begin(), kLimited.end(), names.begin(), [](const LimitedKey& limit) { return limit.key; });
    return joined(kGenerationRead, names);
  }();
  check_keys(root, {kRead, {}, kGenerationUnused});
}

}  // namespace pascaline
