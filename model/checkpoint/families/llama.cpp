#include <fmt/format.h>

#include "model/checkpoint/families/llama_rope.hpp"
#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/hf/config_fields.hpp"
#include "model/checkpoint/model_keys.hpp"
#include "model/checkpoint/table_writer.hpp"

// Llama, dense, text only, and what has its form (SmolLM2): "The Llama 3 Herd of Models" (Llama Team, 2024), with the
// names of Hugging Face Transformers.
namespace pascaline {
namespace {

constexpr DecoderDefaults kLlamaDefaults{.intermediate = 11008, .vocab = 32000, .max_positions = 2048};

double read_factor(const JsonNode& rope, std::string_view key) {
  constexpr double kMost = 1e6;
  const JsonNode node = rope.at(key);
  const double value = node.real();
  require(value > 0 && value <= kMost, node, fmt::format("{} is out of range (above 0, at most {})", value, kMost));
  return value;
}

Llama3Scaling read_llama3_scaling(const JsonNode& rope) {
  Llama3Scaling scaling;
  scaling.factor = read_factor(rope, "factor");
  scaling.low = read_factor(rope, "low_freq_factor");
  scaling.high = read_factor(rope, "high_freq_factor");
  scaling.trained = read_factor(rope, "original_max_position_embeddings");
  require(scaling.low < scaling.high, rope,
          fmt::format("low_freq_factor {} is not below high_freq_factor {}", scaling.low, scaling.high));
  return scaling;
}

std::vector<float> read_divisors(const JsonNode& rope, const TextConfig& text) {
  check_scaled_rope_keys(rope);
  const char* const key = rope.has_value("rope_type") || !rope.has_value("type") ? "rope_type" : "type";
  require_supported(rope, {key, R"(["default", "linear", "llama3"])"});
  const std::string type = rope.at(key).text();
  if (type == "linear") {
    const auto factor = static_cast<float>(read_factor(rope, "factor"));
    return std::vector<float>(factor == 1 ? 0 : static_cast<std::size_t>(text.head_dim / 2), factor);
  }
  return type == "llama3" ? llama3_divisors(read_llama3_scaling(rope), text.rope_theta, text.head_dim)
                          : std::vector<float>();
}

ModelConfig read_llama(const JsonNode& root) {
  check_llama_keys(root);
  ModelConfig config;
  config.family = ModelFamily::llama;
  config.text = read_decoder(root, kLlamaDefaults);
  config.text.normalises_heads = false;
  config.text.mrope_section = {config.text.head_dim / 2, 0, 0};
  for (const std::string_view key : kRopeObjects) {
    if (root.has_value(key)) {
      config.text.rope_divisors = read_divisors(root.at(key), config.text);
    }
  }
  config.text.tied = root.has_value("tie_word_embeddings") && root.at("tie_word_embeddings").boolean();
  config.eos_tokens = read_end_tokens(root, config.text.vocab);
  return config;
}

}  // namespace

FamilyTraits llama_family() noexcept {
  return {"llama", "Llama, text only, such as SmolLM2", read_llama, text_only_table, kTextOnlyPrefixes};
}

}  // namespace pascaline
