#include "model/image/decode.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/image/orientation.hpp"
#include "tests/model/image/expect_refused.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline {
namespace {

using testing::exif_with_orientation;
using testing::expect_refused;

std::string read_problem(const std::filesystem::path& file) {
  try {
    (void)read_image(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(DecodeTest, OtherFormatsAreRefusedByName) {
  expect_refused("", "none", "empty");
  expect_refused("GIF89a...", "a.png", "a GIF image, not PNG, JPEG or WebP: save or convert it as one of them");
  expect_refused("RIFF\x10\x20\x30\x40WEBPVP8 ", "a.png", "the WebP image is damaged");
  expect_refused("RIFF\x10\x20\x30\x40WAVEfmt ", "a.png", "of an unknown format");
  expect_refused("BM......", "a.png", "a BMP image");
  expect_refused(std::string("II*\0....", 8), "a.png", "a TIFF image");
  expect_refused(std::string("\0\0\0\x18", 4) + "ftypheic", "a.jpg", "a HEIC image");
  expect_refused(std::string("\0\0\0\x18", 4) + "ftypavif", "a.jpg", "an AVIF image");
  expect_refused(std::string("\0\0\0\x18", 4) + "ftypisom", "a.jpg", "a video");
  expect_refused(std::string("\0\0\0\x0c", 4) + "JXL ", "a.jpg", "a JPEG XL image");
  expect_refused("<svg>", "a.png", "an SVG image");
  expect_refused("text", "a.png", "of an unknown format");
  expect_refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n", "a.png",
                 "a.png: this is a Git LFS pointer, not the file itself");
  expect_refused("\x89PNG", "a.png", "of an unknown format");
}

TEST(DecodeTest, FormatsAreFoundBySignatureNotByName) {
  const Image image = testing::synthetic_image(6, 4);
  EXPECT_EQ(decode_image(testing::png_of(image), "wrong.jpg").pixels, image.pixels);
}

TEST(DecodeTest, FilesAreReadAndNamed) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "pascaline_decode_test";
  std::filesystem::create_directories(folder);
  const Image image = testing::synthetic_image(6, 4);
  write_file_atomically(folder / "good.png", testing::png_of(image));
  write_file_atomically(folder / "bad.png", testing::png_of(image).substr(0, 60));
  EXPECT_EQ(read_image(folder / "good.png").pixels, image.pixels);
  EXPECT_NE(read_problem(folder / "bad.png").find((folder / "bad.png").string() + ": the PNG image is damaged"),
            std::string::npos);
  EXPECT_NE(read_problem(folder).find("this is a folder"), std::string::npos);
  EXPECT_NE(read_problem(folder / "none.png").find("cannot open"), std::string::npos);
  EXPECT_NE(read_problem("/dev/zero").find("not a regular file"), std::string::npos);
  std::filesystem::resize_file(folder / "bad.png", (std::uintmax_t{1} << 30) + 1);
  EXPECT_NE(read_problem(folder / "bad.png").find("more than the 1073741824"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(OrientationTest, IsReadInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(exif_orientation(exif_with_orientation(orientation, false)), orientation);
    EXPECT_EQ(exif_orientation(exif_with_orientation(orientation, true)), orientation);
  }
}

TEST(OrientationTest, DamagedDataMeanUpright) {
  for (const bool big_endian : {false, true}) {
    const std::string whole = exif_with_orientation(6, big_endian);
    EXPECT_EQ(exif_orientation(exif_with_orientation(0, big_endian)), 1);
    EXPECT_EQ(exif_orientation(exif_with_orientation(9, big_endian)), 1);
    // Header, folder and entry up to its value: 20 bytes.
    for (std::size_t size = 0; size < 20; ++size) {
      EXPECT_EQ(exif_orientation(std::string_view(whole).substr(0, size)), 1) << size;
    }
    for (std::size_t at = 0; at < 20; ++at) {
      std::string damaged = whole;
      damaged[at] = '\xff';
      // Bytes 8 and 9 count the entries; the first one is found all the same.
      EXPECT_EQ(exif_orientation(damaged), at == 8 || at == 9 ? 6 : 1) << at;
    }
  }
}

TEST(OrientationTest, TurningBackGivesTheStoredImage) {
  const Image image = testing::synthetic_image(70, 130);
  // Each orientation with the one that undoes it.
  for (const auto& pair :
       std::vector<std::pair<int, int>>{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 8}, {7, 7}, {8, 6}}) {
    const Image turned = upright(image, pair.first);
    EXPECT_EQ(turned.height, pair.first >= 5 ? 130 : 70);
    EXPECT_EQ(upright(turned, pair.second).pixels, image.pixels) << pair.first;
  }
}

}  // namespace
}  // namespace pascaline
