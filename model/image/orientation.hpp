#pragma once

#include <string_view>

#include "model/image/image.hpp"

namespace pascaline {

/// What is before EXIF data in a JPEG file.
inline constexpr std::string_view kExifSignature("Exif\0\0", 6);

/// Orientation, 1 to 8, in EXIF data that begin with their TIFF header; 1 (upright) if it is absent or damaged.
[[nodiscard]] int exif_orientation(std::string_view tiff) noexcept;

/// The image turned and mirrored so that one stored in this EXIF orientation stands upright.
[[nodiscard]] Image upright(Image image, int orientation);

}  // namespace pascaline
