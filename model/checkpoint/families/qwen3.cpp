#include <fmt/format.h>

#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/hf/config_fields.hpp"
#include "model/checkpoint/model_keys.hpp"
#include "model/checkpoint/table_writer.hpp"

// Qwen3, dense, text only: "Qwen3 Technical Report" (Qwen Team, 2025), with the names of Hugging Face Transformers.
namespace pascaline {
namespace {

constexpr DecoderDefaults kQwen3Defaults{
    .kv_heads = 32, .head_dim = 128, .intermediate = 22016, .vocab = 151936, .max_positions = 32768};

ModelConfig read_qwen3(const JsonNode& root) {
  check_qwen3_keys(root);
  ModelConfig config;
  config.family = ModelFamily::qwen3;
  config.text = read_decoder(root, kQwen3Defaults);
  for (const std::string_view key : kRopeObjects) {
    if (root.has_value(key)) {
      check_rope_type(root.at(key));
      check_plain_rope_keys(root.at(key));
    }
  }
  // Positions have one axis, which is that of time.
  config.text.mrope_section = {config.text.head_dim / 2, 0, 0};
  config.text.tied = root.has_value("tie_word_embeddings") && root.at("tie_word_embeddings").boolean();
  config.eos_tokens = read_end_tokens(root, config.text.vocab);
  return config;
}

}  // namespace

FamilyTraits qwen3_family() noexcept {
  return {"qwen3", "Qwen3, text only", read_qwen3, text_only_table, kTextOnlyPrefixes};
}

}  // namespace pascaline
