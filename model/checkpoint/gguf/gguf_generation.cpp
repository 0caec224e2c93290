#include "model/checkpoint/gguf/gguf_generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/unknown_keys.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kSamplingPrefix = "general.sampling.";
constexpr std::array<const char*, 5> kReadSamplingKeys{"general.sampling.temp", "general.sampling.top_k",
                                                       "general.sampling.top_p", "general.sampling.min_p",
                                                       "general.sampling.penalty_repeat"};
constexpr std::string_view kTopKKey = "general.sampling.top_k";

// What is read, and what has no effect on how tokens are drawn here.
constexpr std::array<std::string_view, 10> kSamplingKeys{
    "temp",           "top_k",    "top_p",         "min_p",        "penalty_repeat",
    "penalty_last_n", "sequence", "xtc_threshold", "mirostat_tau", "mirostat_eta"};
// Ways of drawing that are not supported: 0 is without them.
constexpr std::array<std::string_view, 4> kOffKeys{"dry_multiplier", "dynatemp_range", "mirostat", "xtc_probability"};

constexpr std::array<const char*, 4> kUnusedTokenKeys{"tokenizer.ggml.unknown_token_id",
                                                      "tokenizer.ggml.seperator_token_id",
                                                      "tokenizer.ggml.cls_token_id", "tokenizer.ggml.mask_token_id"};

// Runs `read`; a wrong value is a fault of that use.
template <typename Read>
void try_reading(GenerationConfig& out, SamplingUse use, const Read& read) {
  try {
    read();
  } catch (const ModelError& error) {
    out.faults.push_back({use, error.what()});
  }
}

void check_sampling_keys(const GgufMetadata& metadata, GenerationConfig& out) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : metadata.values()) {
    if (!key.starts_with(kSamplingPrefix)) {
      continue;
    }
    const std::string_view name = key.substr(kSamplingPrefix.size());
    if (std::find(kOffKeys.begin(), kOffKeys.end(), name) != kOffKeys.end()) {
      try_reading(out, SamplingUse::draw, [&, full = key] {
        const double number = metadata.number(full);
        if (number != 0) {
          metadata.fail(full, fmt::format("{} is not supported, only 0: it changes how tokens are drawn", number));
        }
      });
    } else if (std::find(kSamplingKeys.begin(), kSamplingKeys.end(), name) == kSamplingKeys.end()) {
      unknown.emplace_back(key);
    }
  }
  pass_over_unknown(metadata.file(), unknown);
}

// A number from `low` to `high`.
double number_within(const GgufMetadata& metadata, std::string_view key, double low, double high) {
  const double value = metadata.number(key);
  if (!(value >= low && value <= high)) {
    metadata.fail(key, fmt::format("{} is out of range ({} to {})", value, low, high));
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
  const bool recommends = std::any_of(kReadSamplingKeys.begin(), kReadSamplingKeys.end(),
                                      [&](const char* key) { return metadata.has(key); });
  GenerationConfig out = recommends ? neutral_generation() : GenerationConfig();
  check_sampling_keys(metadata, out);
  const auto read = [&](std::string_view key, SamplingUse use, double low, double high, double& value, bool& is_said) {
    if (metadata.has(key)) {
      try_reading(out, use, [&] {
        value = number_within(metadata, key, low, high);
        is_said = true;
      });
    }
  };
  read("general.sampling.temp", SamplingUse::temperature, 0, kMost, out.temperature, out.recommended.temperature);
  if (out.recommended.temperature) {
    out.recommended.do_sample = true;
    out.recommended.temperature = out.do_sample = out.temperature > 0;
    out.temperature = out.do_sample ? out.temperature : 1;
  }
  read("general.sampling.top_p", SamplingUse::top_p, 0, 1, out.top_p, out.recommended.top_p);
  read("general.sampling.min_p", SamplingUse::min_p, 0, 1, out.min_p, out.recommended.min_p);
  read("general.sampling.penalty_repeat", SamplingUse::repetition_penalty, kLeast, kMost, out.repetition_penalty,
       out.recommended.repetition_penalty);
  if (metadata.has(kTopKKey)) {
    try_reading(out, SamplingUse::top_k, [&] {
      const std::int64_t count = metadata.integer(kTopKKey);
      if (count < -1 || count > std::numeric_limits<std::int32_t>::max()) {
        metadata.fail(kTopKKey, fmt::format("{} is not a possible number of tokens", count));
      }
      out.top_k = std::max<std::int64_t>(count, 0);
      out.recommended.top_k = true;
    });
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
