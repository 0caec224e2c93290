#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/model_config.hpp"

namespace pascaline {

/// Which fields of a GenerationConfig its file has; the others are defaults.
struct RecommendedSampling {
  bool do_sample = false;
  bool temperature = false;
  bool top_p = false;
  bool top_k = false;
  bool min_p = false;
  bool repetition_penalty = false;

  [[nodiscard]] bool any() const noexcept {
    return do_sample || temperature || top_p || top_k || min_p || repetition_penalty;
  }
};

/// What of a request a setting is for.
enum class SamplingUse : std::uint8_t {
  answer,       ///< whatever is chosen
  draw,         ///< tokens are drawn
  temperature,  ///< tokens are drawn, and the request does not say that itself; so are those below
  top_k,
  top_p,
  min_p,
  repetition_penalty,  ///< whatever is chosen, and the request does not say that itself; so is the last
  presence_penalty,
};

/// A setting that is impossible or not supported, which only matters to a request that uses it.
struct SamplingFault {
  SamplingUse use = SamplingUse::answer;
  std::string text;  ///< for a message: file, key, value, and what would be possible
};

/// How a model's makers want its tokens drawn. A default one holds what Qwen3-VL-2B-Instruct ships with.
struct GenerationConfig {
  bool do_sample = true;  ///< false: the likeliest token
  double temperature = 0.7;
  double top_p = 0.8;       ///< from 0, which keeps the likeliest token, to 1, which keeps all
  std::int64_t top_k = 20;  ///< 0 keeps all
  double min_p = 0;         ///< from 0, which keeps all, to 1
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  std::vector<std::int64_t> eos_tokens;  ///< any of them ends the answer
  std::optional<std::int64_t> bos_token;
  std::optional<std::int64_t> pad_token;
  RecommendedSampling recommended;
  std::vector<SamplingFault> faults;  ///< those settings have the values that change nothing
};

/// What a file that says how tokens are drawn means by what it leaves out, as the library that writes these files has
/// it: temperature 1, top_k 50, top_p 1, no penalty.
[[nodiscard]] GenerationConfig neutral_generation();

/// Reads the text of a generation_config.json. A key that is left out means what it means to the library that writes
/// these files: greedy, temperature 1, top_k 50, top_p 1, no min_p, no penalty; without eos_token_id that of `config`
/// holds, which may have none. A temperature of 0 takes the likeliest token, a top_k of -1 keeps all. Other settings
/// that are impossible or not supported are `faults`; unknown keys are passed over (see check_keys). Throws ModelError
/// with the JSON pointer of an end token that is none, or for what is no JSON object.
[[nodiscard]] GenerationConfig parse_generation_config(std::string_view text, const std::string& file,
                                                       const ModelConfig& config);

/// The same of `folder`/generation_config.json; without the file the defaults of GenerationConfig with the end tokens
/// of `config`.
[[nodiscard]] GenerationConfig load_generation_config(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace pascaline
