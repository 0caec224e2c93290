#include "runtime/checkpoint/gguf/gguf_generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace pascaline {
namespace {

constexpr std::string_view kSamplingPrefix = "general.sampling.";
constexpr std::array<const char*, 4> kReadSamplingKeys{"general.sampling.temp", "general.sampling.top_k",
                                                       "general.sampling.top_p", "general.sampling.penalty_repeat"};
constexpr std::string_view kTopKKey = "general.sampling.top_k";

// What is read, and what has no effect on how tokens are drawn here.
constexpr std::array<std::string_view, 9> kSamplingKeys{"temp",           "top_k",          "top_p",
                                                        "penalty_repeat", "penalty_last_n", "sequence",
                                                        "xtc_threshold",  "mirostat_tau",   "mirostat_eta"};
// Ways of drawing that are not supported: 0 is without them.
constexpr std::array<std::string_view, 2> kOffReals{"min_p", "xtc_probability"};
constexpr std::string_view kOffInteger = "mirostat";

constexpr std::array<const char*, 4> kUnusedTokenKeys{"tokenizer.ggml.unknown_token_id",
                                                      "tokenizer.ggml.seperator_token_id",
                                                      "tokenizer.ggml.cls_token_id", "tokenizer.ggml.mask_token_id"};

// As for a folder, nothing that changes how tokens are drawn is passed over.
void check_sampling_keys(const GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    if (!key.starts_with(kSamplingPrefix)) {
      continue;
    }
    const std::string_view name = key.substr(kSamplingPrefix.size());
    const bool is_off_real = std::find(kOffReals.begin(), kOffReals.end(), name) != kOffReals.end();
    if (is_off_real || name == kOffInteger) {
      const double number = is_off_real ? metadata.real(key) : static_cast<double>(metadata.integer(key));
      if (number != 0) {
        metadata.fail(key, fmt::format("{} is not supported, only 0: it changes how tokens are drawn", number));
      }
    } else if (std::find(kSamplingKeys.begin(), kSamplingKeys.end(), name) == kSamplingKeys.end()) {
      metadata.fail(key, "it is not supported: it may change how tokens are drawn");
    }
  }
}

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
  check_sampling_keys(metadata);
  const bool recommends = std::any_of(kReadSamplingKeys.begin(), kReadSamplingKeys.end(),
                                      [&](const char* key) { return metadata.has(key); });
  GenerationConfig out = recommends ? neutral_generation() : GenerationConfig();
  if (const auto temperature = number_within(metadata, "general.sampling.temp", 0, kMost)) {
    out.do_sample = *temperature > 0;
    out.temperature = out.do_sample ? *temperature : 1;
    out.recommended.do_sample = true;
    out.recommended.temperature = out.do_sample;
  }
  if (const auto part = number_within(metadata, "general.sampling.top_p", kLeast, 1)) {
    out.top_p = *part;
    out.recommended.top_p = true;
  }
  if (const auto penalty = number_within(metadata, "general.sampling.penalty_repeat", kLeast, kMost)) {
    out.repetition_penalty = *penalty;
    out.recommended.repetition_penalty = true;
  }
  if (const auto count = metadata.find_integer(kTopKKey)) {
    if (*count < 0 || *count > std::numeric_limits<std::int32_t>::max()) {
      metadata.fail(kTopKKey, fmt::format("{} is not a possible number of tokens", *count));
    }
    out.top_k = *count;
    out.recommended.top_k = true;
  }
  out.eos_tokens = config.eos_tokens;
  out.bos_token = token_of(metadata, "tokenizer.ggml.bos_token_id", config);
  out.pad_token = token_of(metadata, "tokenizer.ggml.padding_token_id", config);
  for (const char* const unused : kUnusedTokenKeys) {
    (void)token_of(metadata, unused, config);
  }
  return out;
}

}  // namespace pascaline
