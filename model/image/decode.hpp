#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "model/image/image.hpp"

namespace pascaline {

/// How images are decoded.
struct DecodeOptions {
  /// An image of more pixels is refused before memory for it is allocated.
  std::int64_t max_pixels = std::int64_t{1} << 27;
};

/// Decodes PNG, JPEG or WebP, found by their signatures, to 8-bit RGB.
///
/// An image with transparent pixels is laid on white, as qwen-vl-utils does before the image processor sees it, and has
/// a note of that. Dropping the transparency, as Transformers does, would show the colours that nobody sees: black text
/// on a transparent ground would be black on black.
///
/// PNG: every colour type and depth, interlaced or not; of 16 bits the upper eight count (for gray too, where Pillow
/// clips instead); gamma and colour profiles are not applied. JPEG: gray, YCbCr, RGB, CMYK and YCCK (both taken for
/// inverted, as Adobe writes them), baseline, progressive or arithmetic-coded. WebP: lossy or lossless; of an animation
/// the first frame, with a note. An image with an EXIF orientation is turned upright, as the reference does when it
/// loads a file. Throws Error that begins with `name` if the bytes are of another format, damaged, incomplete or of
/// more pixels than the options allow. Nothing is written to the standard streams.
[[nodiscard]] Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options = {});

/// Decodes a file, see `decode_image`; errors name it.
[[nodiscard]] Image read_image(const std::filesystem::path& file, const DecodeOptions& options = {});

}  // namespace pascaline
