#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/config_keys.hpp"
#include "model/checkpoint/model_config.hpp"

// What readers of config.json share. Everything throws SpaceError naming the key that is missing, impossible or not
// supported.
namespace pascaline {

// Far above any model; what exceeds them is damage, and their products fit 64 bits.
inline constexpr std::int64_t kMaxWidth = 1 << 20;
inline constexpr std::int64_t kMaxLayers = 1024;
inline constexpr std::int64_t kMaxHeads = 4096;

/// Where rotary embedding is described.
inline constexpr std::array<std::string_view, 2> kRopeObjects{"rope_parameters", "rope_scaling"};

/// Fails at `node` unless that holds.
void require(bool holds, const JsonNode& node, const std::string& otherwise);
/// A key that must be there, with one of the supported values.
void require_supported(const JsonNode& object, const LimitedKey& limit);

/// A size from 1 to `limit`; `otherwise` if the key is missing or null.
[[nodiscard]] std::int64_t read_extent(const JsonNode& object, std::string_view key, std::int64_t limit,
                                       std::int64_t otherwise);
/// A token of the vocabulary.
[[nodiscard]] std::int64_t read_token(const JsonNode& node, std::int64_t vocabulary);
/// `eos_token_id`: one token, a list of them, or none.
[[nodiscard]] std::vector<std::int64_t> read_end_tokens(const JsonNode& object, std::int64_t vocabulary);

/// `rope_theta`, which may be in three places, where they must agree; nothing if it is in none.
[[nodiscard]] std::optional<double> find_theta(const JsonNode& object);
/// The kind of rotary embedding of one of `kRopeObjects`.
void check_rope_type(const JsonNode& rope);

/// What norms add, or nothing if that is no whole number of billionths in NormEpsilon's range.
[[nodiscard]] std::optional<NormEpsilon> norm_epsilon_from(double value) noexcept;
/// What to say of a value that is none.
[[nodiscard]] std::string wrong_epsilon_text(double value);

/// What a decoder's configuration means by sizes that it leaves out: the defaults of Transformers' class for it.
struct DecoderDefaults {
  std::int64_t hidden = 4096;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 0;  ///< 0: as many as there are heads
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  std::int64_t intermediate = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
};

/// What a decoder of the form of Qwen3 and Llama says of itself: all sizes, what its norms add and the base of its
/// angles, but not how positions turn and whether the head is tied.
[[nodiscard]] TextConfig read_decoder(const JsonNode& node, const DecoderDefaults& defaults);

}  // namespace pascaline
