#include "model/image/orientation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pascaline {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kTypeShort = 3;
constexpr std::uint32_t kTypeLong = 4;
constexpr std::size_t kEntryBytes = 12;

// An unsigned integer of `bytes` bytes; 0 outside the text.
std::uint32_t tiff_integer(std::string_view tiff, std::size_t at, std::size_t bytes, bool big_endian) noexcept {
  if (at > tiff.size() || tiff.size() - at < bytes) {
    return 0;
  }
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(tiff[big_endian ? at + i : at + bytes - 1 - i]);
  }
  return value;
}

struct Turn {
  bool swap;         // rows become columns
  bool mirror_rows;  // the stored rows are read from the bottom
  bool mirror_columns;
};

Turn turn_of(int orientation) {
  const int o = orientation;
  return {o >= 5, o == 3 || o == 4 || o == 6 || o == 7, o == 2 || o == 3 || o == 7 || o == 8};
}

}  // namespace

int exif_orientation(std::string_view tiff) noexcept {
  const bool big_endian = tiff.starts_with("MM");
  if ((!big_endian && !tiff.starts_with("II")) || tiff_integer(tiff, 2, 2, big_endian) != 42) {
    return 1;
  }
  const std::size_t folder = tiff_integer(tiff, 4, 4, big_endian);
  const std::uint32_t entries = tiff_integer(tiff, folder, 2, big_endian);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = folder + 2 + i * kEntryBytes;
    if (tiff_integer(tiff, entry, 2, big_endian) != kOrientationTag) {
      continue;
    }
    const std::uint32_t type = tiff_integer(tiff, entry + 2, 2, big_endian);
    if ((type != kTypeShort && type != kTypeLong) || tiff_integer(tiff, entry + 4, 4, big_endian) != 1) {
      return 1;
    }
    const std::uint32_t value = tiff_integer(tiff, entry + 8, type == kTypeShort ? 2 : 4, big_endian);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) {
    return image;
  }
  const Turn turn = turn_of(orientation);
  Image out = turn.swap ? black_image(image.width, image.height) : black_image(image.height, image.width);
  // Squares of this side keep both images' rows in the cache when rows become columns.
  constexpr std::int64_t kTile = 64;
  for (std::int64_t y0 = 0; y0 < out.height; y0 += kTile) {
    for (std::int64_t x0 = 0; x0 < out.width; x0 += kTile) {
      for (std::int64_t y = y0; y < std::min(y0 + kTile, out.height); ++y) {
        std::uint8_t* to = out.row(y) + x0 * 3;
        for (std::int64_t x = x0; x < std::min(x0 + kTile, out.width); ++x, to += 3) {
          const std::int64_t row = turn.swap ? x : y;
          const std::int64_t column = turn.swap ? y : x;
          const std::uint8_t* from = image.row(turn.mirror_rows ? image.height - 1 - row : row) +
                                     3 * (turn.mirror_columns ? image.width - 1 - column : column);
          std::memcpy(to, from, 3);
        }
      }
    }
  }
  out.notes = std::move(image.notes);
  return out;
}

}  // namespace pascaline
