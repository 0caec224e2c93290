#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/image/image.hpp"

namespace pascaline {

/// What becomes of an image's transparency (alpha channel, or PNG's tRNS).
enum class Transparency {
  kDropped,  ///< The colours stay as they are stored, as in the reference image processor.
  kOnWhite,  ///< The image is laid on white, as qwen-vl-utils does before the processor sees it.
};

/// How images are decoded.
struct DecodeOptions {
  /// An image of more pixels is refused before memory for it is allocated.
  std::int64_t max_pixels = std::int64_t{1} << 27;
  Transparency transparency = Transparency::kDropped;
};

/// Decodes PNG or JPEG, found by their signatures, to 8-bit RGB.
///
/// PNG: every colour type and depth, interlaced or not; of 16 bits the upper eight count (for gray too, where Pillow
/// clips instead); gamma and colour profiles are not applied. JPEG: gray, YCbCr, RGB, CMYK and YCCK (both taken for
/// inverted, as Adobe writes them), baseline, progressive or arithmetic-coded. An image with an EXIF orientation is
/// turned upright, as the reference does when it loads a file. Throws Error that begins with `name` if the bytes are of
/// another format, damaged, incomplete or of more pixels than the options allow. Nothing is written to the standard
/// streams.
[[nodiscard]] Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options = {});

/// Decodes a file, see `decode_image`; errors name it.
[[nodiscard]] Image read_image(const std::filesystem::path& file, const DecodeOptions& options = {});

}  // namespace pascaline
