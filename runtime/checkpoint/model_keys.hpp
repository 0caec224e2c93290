#pragma once

#include "core/util/config_keys.hpp"

namespace pascaline {

/// The kind of rotary embedding that is implemented, for `rope_type`.
inline constexpr std::string_view kRopeTypes = R"(["default"])";
/// What the norms of a vision tower add under the root: kernels have it built in.
inline constexpr LimitedKey kNormEpsilon{"rms_norm_eps", "[1e-06]"};

/// Each requires that the object says nothing that the model would not be computed by, and throws SpaceError naming the
/// key if it does. Whoever reads the object checks the values of the keys that are read.
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
/// Keys of the text model that stand at the top of the file, where nothing reads them, must say the same.
void check_root_keys(const JsonNode& root, const JsonNode& text);
void check_generation_keys(const JsonNode& root);

}  // namespace pascaline
