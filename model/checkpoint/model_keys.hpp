#pragma once

#include <span>

#include "core/util/config_keys.hpp"

namespace pascaline {

/// The kind of rotary embedding that is implemented, for `rope_type`.
inline constexpr std::string_view kRopeTypes = R"(["default"])";
/// What the norms of a vision tower add under the root: kernels have it built in.
inline constexpr LimitedKey kNormEpsilon{"rms_norm_eps", "[1e-06]"};

/// Each throws SpaceError for a key that is known to change results and has a value that the model would not be
/// computed by, and warns of keys that are not known (see check_keys). Whoever reads the object checks the values of
/// the keys that are read.
void check_text_keys(const JsonNode& text);
void check_text_rope_keys(const JsonNode& rope);
/// Of a model that only reads text, whose keys all stand at the top of the file.
void check_qwen3_keys(const JsonNode& root);
/// Likewise.
void check_llama_keys(const JsonNode& root);
/// Of positions with one axis.
void check_plain_rope_keys(const JsonNode& rope);
/// Of positions with one axis, whose frequencies may be scaled; the values are checked by who reads them.
void check_scaled_rope_keys(const JsonNode& rope);
void check_vision_keys(const JsonNode& vision);
void check_vision_rope_keys(const JsonNode& rope);
/// Of the top of a file whose text model has an object of its own: what it says of the text model, where nothing reads
/// it, must be the same there.
void check_root_keys(const JsonNode& root, const JsonNode& text);
/// Of a generation_config.json; only warns, as a request decides which of its keys count.
void check_generation_keys(const JsonNode& root);
/// Its keys that change every answer, and those that do where tokens are drawn, with the values that are supported.
[[nodiscard]] std::span<const LimitedKey> limited_generation_keys() noexcept;
[[nodiscard]] std::span<const LimitedKey> limited_drawing_keys() noexcept;

}  // namespace pascaline
