#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace pascaline::ops {

/// Most logits that a token is chosen from.
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 20;
/// A temperature below it is none.
inline constexpr float kColdestTemperature = 1.0F / 1'048'576.0F;

/// How the next token is chosen, in this order.
struct SamplingSettings {
  float repetition = 1.0F;   ///< above 0; a seen token's logit is divided by it if positive, else multiplied by it
  float presence = 0.0F;     ///< what a seen token's logit is lowered by
  float temperature = 0.0F;  ///< what logits are divided by; 0: the largest is taken, of equal ones the first
  std::int32_t top_k = 0;    ///< how many are kept, of equal ones those with lower ids; 0: all
  float top_p = 1.0F;        ///< of those the fewest, from the most probable on, that have this probability together
  float min_p = 0.0F;        ///< of those the ones with at least this part of the most probable one's probability
  std::uint64_t seed = 0;    ///< of the draw among them
};

/// Throws Error, naming the value and what it may be, for a temperature below 0, a repetition penalty that is not above
/// 0, a top_k below 0, a top_p or min_p outside of 0 … 1, and for anything that is not finite.
void check_settings(const SamplingSettings& settings);

/// The settings as `sample` reads them on a device: temperature, top_p, repetition, presence, min_p.
[[nodiscard]] std::array<float, 5> device_settings(const SamplingSettings& settings) noexcept;

struct SampledToken {
  std::int32_t token = 0;
  float probability = 0;  ///< among the tokens that were kept; 0 if there was nothing to choose from
};

/// Chooses a token from `logits` on the calling thread, exactly as the kernel `sample` does: the same token and
/// probability to the bit from the same logits, on any processor. `seen` holds how often each token was seen, and
/// counts the chosen one; of no elements, nothing was seen and nothing is counted. The draw is number `step` of the
/// seed; adds one to `step`. NaN is never chosen; if all logits are, the result is token 0 with probability 0, and
/// nothing is counted. Takes any settings: what `check_settings` refuses gives some token. Throws Error for no logits,
/// more than kMaxVocabulary, or a `seen` of another size.
[[nodiscard]] SampledToken sample_on_host(std::span<const float> logits, const SamplingSettings& settings,
                                          std::span<std::int32_t> seen, std::uint64_t& step);

/// Draw number `step` of a seed: the first two words of Philox-4x32-10 (Salmon et al., "Parallel random numbers: as
/// easy as 1, 2, 3", 2011), the first on top, with the seed as key and the step as counter.
[[nodiscard]] std::uint64_t philox(std::uint64_t seed, std::uint64_t step) noexcept;

}  // namespace pascaline::ops
