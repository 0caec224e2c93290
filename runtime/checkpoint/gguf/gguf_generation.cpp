#include "runtime/checkpoint/gguf/gguf_generation.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>

namespace pascaline {
namespace {

// A number from `low` to `high`.
std::optional<double> number_within(const GgufMetadata& metadata, std::string_view key, double low, double high) {
  const std::optional<double> value = metadata.find_real(key);
  if (value && !(*value >= low && *value <= high)) {
    metadata.fail(key, fmt::format("{} is out of range ({} to {})", *value, low, high));
  }
  return value;
}

std::optional<std::int64_t> token_of(const GgufMetadata& metadata, std::string_view key, const ModelConfig& config) {
  const std::optional<std::int64_t> token = metadata.find_integer(key);
  if (token && (*token < 0 || *token >= config.text.vocab)) {
    metadata.fail(key, fmt::format("token {} is not in the vocabulary of {} tokens", *token, config.text.vocab));
  }
  return token;
}

}  // namespace

GenerationConfig read_gguf_generation(const GgufMetadata& metadata, const ModelConfig& config) {
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  constexpr std::string_view kTopK = "general.sampling.top_k";
  GenerationConfig out;
  if (const auto temperature = number_within(metadata, "general.sampling.temp", 0, kMost)) {
    out.do_sample = *temperature > 0;
    out.temperature = out.do_sample ? *temperature : 1;
  }
  out.top_p = number_within(metadata, "general.sampling.top_p", kLeast, 1).value_or(out.top_p);
  out.repetition_penalty =
      number_within(metadata, "general.sampling.penalty_repeat", kLeast, kMost).value_or(out.repetition_penalty);
  if (const auto count = metadata.find_integer(kTopK)) {
    if (*count < 0 || *count > std::numeric_limits<std::int32_t>::max()) {
      metadata.fail(kTopK, fmt::format("{} is not a possible number of tokens", *count));
    }
    out.top_k = *count;
  }
  out.eos_tokens = config.eos_tokens;
  out.bos_token = token_of(metadata, "tokenizer.ggml.bos_token_id", config);
  out.pad_token = token_of(metadata, "tokenizer.ggml.padding_token_id", config);
  return out;
}

}  // namespace pascaline
