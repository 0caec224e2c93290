#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/image/decode.hpp"

namespace pascaline {

/// What is noted of an animated image.
inline constexpr const char* kFirstFrameNote = "only the first frame of its animation is used";

/// Decodes a PNG image; throws Error that does not name the image.
[[nodiscard]] Image decode_png(std::string_view bytes, const DecodeOptions& options);

/// Decodes a JPEG image; throws Error that does not name the image.
[[nodiscard]] Image decode_jpeg(std::string_view bytes, const DecodeOptions& options);

/// Decodes a WebP image; throws Error that does not name the image.
[[nodiscard]] Image decode_webp(std::string_view bytes, const DecodeOptions& options);

/// Lays an image on white whose pixels are RGBA, which become RGB; notes it if some are transparent.
void lay_on_white(Image& image);

/// Throws Error if an image has no pixels, more than the options allow or a side of more than a million.
void check_dimensions(std::int64_t width, std::int64_t height, const DecodeOptions& options);

/// Throws Error if the file has fewer bytes than the pixels that its header announces can take.
void check_file_bytes(std::size_t bytes, std::int64_t needed);

}  // namespace pascaline
