#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"

namespace pascaline {

/// Which fields of a GenerationConfig its file has; the others are defaults.
struct RecommendedSampling {
  bool do_sample = false;
  bool temperature = false;
  bool top_p = false;
  bool top_k = false;
  bool repetition_penalty = false;

  [[nodiscard]] bool any() const noexcept { return do_sample || temperature || top_p || top_k || repetition_penalty; }
};

/// How a model's makers want its tokens drawn. A default one holds what Qwen3-VL-2B-Instruct ships with.
struct GenerationConfig {
  bool do_sample = true;  ///< false: the likeliest token
  double temperature = 0.7;
  double top_p = 0.8;       ///< in (0, 1]; 1 keeps all
  std::int64_t top_k = 20;  ///< 0 keeps all
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  std::vector<std::int64_t> eos_tokens;  ///< any of them ends the answer
  std::optional<std::int64_t> bos_token;
  std::optional<std::int64_t> pad_token;
  RecommendedSampling recommended;
};

/// What a file that says how tokens are drawn means by what it leaves out, as the library that writes these files has
/// it: temperature 1, top_k 50, top_p 1, no penalty.
[[nodiscard]] GenerationConfig neutral_generation();

/// Reads the text of a generation_config.json. A key that is left out means what it means to the library that writes
/// these files: greedy, temperature 1, top_k 50, top_p 1, no penalty; without eos_token_id that of `config` holds,
/// which may have none. Throws ModelError with the JSON pointer of what is impossible, not supported or not known.
[[nodiscard]] GenerationConfig parse_generation_config(std::string_view text, const std::string& file,
                                                       const ModelConfig& config);

/// The same of `folder`/generation_config.json; without the file the defaults of GenerationConfig with the end tokens
/// of `config`.
[[nodiscard]] GenerationConfig load_generation_config(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace pascaline
