#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/image/image.hpp"

namespace pascaline::testing {

/// What a PNG file is made of. `samples` holds height * width * channels values of `bit_depth` bits.
struct PngSource {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int color_type = 0;
  int bit_depth = 8;
  bool interlaced = false;
  std::vector<std::uint16_t> samples;
  std::vector<std::array<std::uint8_t, 3>> palette;
  std::vector<std::uint8_t> palette_alpha;
  /// Gray level or colour that is transparent; none if empty.
  std::vector<std::uint16_t> transparent;
  /// EXIF data from the TIFF header on; none if empty.
  std::string exif;

  [[nodiscard]] int channels() const;
};

/// A PNG file, made by libpng.
[[nodiscard]] std::string encode_png(const PngSource& source);

/// How a JPEG file is made. `channels` of the pixels: 1 gray, 3 RGB, 4 CMYK.
struct JpegSource {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels;
  int quality = 95;
  bool progressive = false;
  bool arithmetic = false;
  bool subsampled = false;
  bool as_ycck = false;  ///< CMYK pixels are stored as YCCK
  bool as_rgb = false;   ///< RGB pixels are stored as they are
  int restart_rows = 0;
  std::string exif;
};

/// A JPEG file, made by libjpeg.
[[nodiscard]] std::string encode_jpeg(const JpegSource& source);

/// How a WebP file is made: of RGBA pixels, by libwebp.
struct WebpSource {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
  bool lossy = false;
  bool animated = false;  ///< the pixels are the first of two frames; the second is white
  std::string exif{};
};

/// A WebP file.
[[nodiscard]] std::string encode_webp(const WebpSource& source);
/// An opaque image as a WebP source.
[[nodiscard]] WebpSource webp_of(const Image& image);

/// EXIF data whose only entry is this orientation.
[[nodiscard]] std::string exif_with_orientation(int orientation, bool big_endian);

/// The image that the reference's results were made with: (7x + 13y + 29c + (x*y mod 31)) mod 256.
[[nodiscard]] Image synthetic_image(std::int64_t height, std::int64_t width);

/// An image without hard edges, which JPEG keeps well.
[[nodiscard]] Image smooth_image(std::int64_t height, std::int64_t width);

/// RGB of 8 bits as a plain PNG or JPEG file.
[[nodiscard]] std::string png_of(const Image& image);
[[nodiscard]] JpegSource jpeg_of(const Image& image);

}  // namespace pascaline::testing
