#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/checkpoint/gguf_builder.hpp"

namespace pascaline::fuzzing {

// Numbers of a small Qwen3-VL of one layer and one block.
inline constexpr std::int64_t kWidth = 8;
inline constexpr std::int64_t kMergedWidth = 32;  // of four patches
inline constexpr std::int64_t kVocabulary = 4;

/// A GGUF file with those numbers in half precision, or in single precision those with one extent.
class SmallModelFile {
 public:
  testing::GgufBuilder file;

  void put(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) {
      count *= static_cast<std::size_t>(extent);
    }
    const bool is_vector = shape.size() == 1;
    file.tensor(name, is_vector ? 0 : 1, shape, std::string(count * (is_vector ? 4 : 2), '\x3c'));
  }
  void put_linear(const std::string& name, std::int64_t columns, std::int64_t rows) {
    put(name + ".weight", {columns, rows});
    put(name + ".bias", {rows});
  }
  void put_norm(const std::string& name, std::int64_t width) {
    put(name + ".weight", {width});
    put(name + ".bias", {width});
  }
};

/// The text model that its projector belongs to.
inline std::string vision_text_model() {
  SmallModelFile model;
  testing::GgufBuilder& file = model.file;
  const std::string prefix = "qwen3vl.";
  file.word("general.architecture", "qwen3vl").integer(prefix + "block_count", 1);
  file.integer(prefix + "context_length", 64).integer(prefix + "embedding_length", kWidth);
  file.integer(prefix + "feed_forward_length", kWidth).integer(prefix + "attention.head_count", 1);
  file.integer(prefix + "attention.head_count_kv", 1).integer(prefix + "attention.key_length", kWidth);
  file.integer(prefix + "attention.value_length", kWidth).integer(prefix + "n_deepstack_layers", 1);
  file.real(prefix + "attention.layer_norm_rms_epsilon", 1e-6F).real(prefix + "rope.freq_base", 1e6F);
  file.array(prefix + "rope.dimension_sections", GgufValueType::int32, 3,
             testing::GgufBuilder::raw(2) + testing::GgufBuilder::raw(1) + testing::GgufBuilder::raw(1));
  std::string tokens;
  for (const char* token : {"<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"}) {
    tokens += testing::GgufBuilder::text(token);
  }
  file.array("tokenizer.ggml.tokens", GgufValueType::text, kVocabulary, tokens);
  model.put("token_embd.weight", {kWidth, kVocabulary});
  for (const char* norm :
       {"output_norm", "blk.0.attn_norm", "blk.0.attn_q_norm", "blk.0.attn_k_norm", "blk.0.ffn_norm"}) {
    model.put(std::string(norm) + ".weight", {kWidth});
  }
  for (const char* matrix : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    model.put(std::string("blk.0.") + matrix + ".weight", {kWidth, kWidth});
  }
  return file.bytes();
}

/// A projector that fits it.
inline std::string vision_projector() {
  SmallModelFile model;
  testing::GgufBuilder& file = model.file;
  const std::string prefix = "clip.vision.";
  file.word("general.architecture", "clip").word("clip.projector_type", "qwen3vl_merger");
  file.integer(prefix + "projection_dim", kWidth).integer(prefix + "image_size", 4).integer(prefix + "patch_size", 2);
  file.integer(prefix + "embedding_length", kWidth).integer(prefix + "feed_forward_length", kWidth);
  file.integer(prefix + "block_count", 1).integer(prefix + "attention.head_count", 2);
  file.integer(prefix + "spatial_merge_size", 2).real(prefix + "attention.layer_norm_epsilon", 1e-6F);
  file.array(prefix + "is_deepstack_layers", GgufValueType::boolean, 1, "\x01");
  file.key("clip.has_vision_encoder", GgufValueType::boolean, "\x01");
  file.key("clip.use_gelu", GgufValueType::boolean, "\x01");
  for (const char* frame : {"", ".1"}) {
    model.put(std::string("v.patch_embd.weight") + frame, {2, 2, 3, kWidth});
  }
  model.put("v.patch_embd.bias", {kWidth});
  model.put("v.position_embd.weight", {kWidth, 4});
  model.put_norm("v.blk.0.ln1", kWidth);
  model.put_linear("v.blk.0.attn_qkv", kWidth, 3 * kWidth);
  model.put_linear("v.blk.0.attn_out", kWidth, kWidth);
  model.put_norm("v.blk.0.ln2", kWidth);
  model.put_linear("v.blk.0.ffn_up", kWidth, kWidth);
  model.put_linear("v.blk.0.ffn_down", kWidth, kWidth);
  model.put_norm("v.post_ln", kWidth);
  model.put_linear("mm.0", kMergedWidth, kMergedWidth);
  model.put_linear("mm.2", kMergedWidth, kWidth);
  model.put_norm("v.deepstack.0.norm", kMergedWidth);
  model.put_linear("v.deepstack.0.fc1", kMergedWidth, kMergedWidth);
  model.put_linear("v.deepstack.0.fc2", kMergedWidth, kWidth);
  return file.bytes();
}

}  // namespace pascaline::fuzzing
