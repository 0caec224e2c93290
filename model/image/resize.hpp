#pragma once

#include <cstdint>

#include "model/image/image.hpp"

namespace pascaline {

/// Resizes with the antialiased bicubic filter (a = -0.5) in the integer arithmetic of PyTorch's path for 8-bit
/// images: rows first, then columns, each pass rounded to 8 bits; a pass whose size does not change is left out.
/// Runs on all processors. Throws Error if a size is not positive or the image's pixels do not match its size.
[[nodiscard]] Image resize_bicubic(const Image& image, std::int64_t height, std::int64_t width);

/// Throws Error unless the image has pixels, as many as its size says.
void check_pixels(const Image& image);

}  // namespace pascaline
