#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "model/image/decode.hpp"
#include "model/image/preprocess.hpp"
#include "tests/core/util/fuzz_test.hpp"
#include "tests/model/image/image_encoder.hpp"
#include "tests/model/image/small_config.hpp"

namespace pascaline {
namespace {

using testing::encode_jpeg;
using testing::encode_png;
using testing::fuzz_seed;
using testing::FuzzTest;
using testing::JpegSource;
using testing::Mutator;
using testing::PngSource;
using testing::word_list;
using namespace std::string_view_literals;

const std::vector<std::string_view> kPngWords =
    word_list("IHDR|PLTE|tRNS|IDAT|IEND|eXIf|iCCP|zTXt|gAMA|sBIT|bKGD|\x7f\xff\xff\xff|\xff\xff\xff\xff|\0\0\0\0"sv);
constexpr std::array<std::string_view, 15> kJpegWords{
    "\xff\xd8", "\xff\xd9", "\xff\xda", "\xff\xdb", "\xff\xc0", "\xff\xc2",         "\xff\xc4",     "\xff\xc9",
    "\xff\xcc", "\xff\xdd", "\xff\xe1", "\xff\xee", "\xff\xd0", "\xff\xff\xff\xff", "Exif\0\0MM\0*"};
constexpr std::array<std::string_view, 8> kWebpWords{"VP8 ", "VP8L", "VP8X", "ALPH",
                                                     "ANIM", "ANMF", "EXIF", "\xff\xff\xff\xff"};

class ImageFuzzTest : public FuzzTest {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override { EXPECT_EQ(::testing::internal::GetCapturedStderr(), ""); }

  // Decodes; anything but an image that can be prepared or an Error fails the test.
  void try_bytes(const std::string& bytes) {
    DecodeOptions options;
    options.max_pixels = 1 << 16;
    const auto start = Clock::now();
    try {
      const Image image = decode_image(bytes, "fuzz", options);
      ASSERT_EQ(image.pixels.size(), static_cast<std::size_t>(image.height * image.width * 3));
      ++accepted_;
      if (accepted_ % 64 == 0 && image.height < 64 && image.width < 64) {
        (void)preprocess(image, limit_tokens(testing::real_config(), 4));
      }
    } catch (const Error& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("fuzz: ")) << error.what();
      ++refused_;
    }
    ASSERT_LT(Clock::now() - start, std::chrono::seconds(20));
  }
};

std::vector<std::string> png_seeds() {
  std::vector<std::string> seeds;
  for (const int type : {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB_ALPHA}) {
    PngSource source;
    source.height = 13;
    source.width = 17;
    source.color_type = type;
    source.bit_depth = type == PNG_COLOR_TYPE_PALETTE ? 2 : type == PNG_COLOR_TYPE_GRAY ? 16 : 8;
    source.interlaced = type != PNG_COLOR_TYPE_RGB;
    for (std::int64_t i = 0; i < 13 * 17 * source.channels(); ++i) {
      source.samples.push_back(static_cast<std::uint16_t>(i * i % 4));
    }
    if (type == PNG_COLOR_TYPE_PALETTE) {
      source.palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {200, 100, 0}};
      source.palette_alpha = {0, 128};
    }
    source.exif = testing::exif_with_orientation(5, true);
    seeds.push_back(encode_png(source));
  }
  return seeds;
}

std::vector<std::string> jpeg_seeds() {
  std::vector<std::string> seeds;
  for (const bool progressive : {false, true}) {
    for (const bool arithmetic : {false, true}) {
      JpegSource source = testing::jpeg_of(testing::synthetic_image(21, 37));
      source.progressive = progressive;
      source.arithmetic = arithmetic;
      source.subsampled = true;
      source.restart_rows = progressive ? 0 : 1;
      source.exif = testing::exif_with_orientation(8, false);
      seeds.push_back(encode_jpeg(source));
    }
  }
  JpegSource print = testing::jpeg_of(testing::synthetic_image(16, 12));
  print.channels = 4;
  print.width = 9;
  print.as_ycck = true;
  seeds.push_back(encode_jpeg(print));
  return seeds;
}

TEST_F(ImageFuzzTest, DamagedWebpIsRefusedOrDecoded) {
  std::vector<std::string> seeds;
  for (const int kind : {0, 1, 2, 3}) {
    testing::WebpSource source = testing::webp_of(testing::synthetic_image(21, 37));
    source.lossy = kind % 2 == 1;
    source.animated = kind >= 2;
    source.pixels[7] = static_cast<std::uint8_t>(kind);
    source.exif = testing::exif_with_orientation(8, false);
    seeds.push_back(testing::encode_webp(source));
  }
  Mutator mutator(fuzz_seed() + 15, kWebpWords);
  repeat(3, {}, [&] {
    std::string damaged = seeds[mutator.below(seeds.size())];
    if (mutator.below(2) == 0) {
      damaged = mutator.damaged(damaged);
    } else {
      damaged[12 + mutator.below(damaged.size() - 12)] = static_cast<char>(mutator.below(256));
    }
    try_bytes(damaged);
  });
  EXPECT_GT(accepted_, 0);
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  }
  return value;
}

// Makes every chunk's checksum right again, so that damage inside comes further than the checksum.
std::string with_right_checksums(std::string png) {
  std::size_t at = 8;
  while (at + 12 <= png.size() && big_endian(png, at) <= png.size() - at - 12) {
    const std::size_t length = big_endian(png, at);
    const auto* type = reinterpret_cast<const Bytef*>(png.data() + at + 4);
    const uLong sum = crc32(0, type, static_cast<uInt>(length + 4));
    for (std::size_t i = 0; i < 4; ++i) {
      png[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    }
    at += 12 + length;
  }
  return png;
}

TEST_F(ImageFuzzTest, DamagedPngIsRefusedOrDecoded) {
  const std::vector<std::string> seeds = png_seeds();
  Mutator mutator(fuzz_seed() + 11, kPngWords);
  repeat(3, {}, [&] {
    const std::string damaged = mutator.damaged(seeds[mutator.below(seeds.size())]);
    try_bytes(damaged);
    try_bytes(with_right_checksums(damaged));
  });
}

TEST_F(ImageFuzzTest, DamagedPixelsOfPngAreRefusedOrDecoded) {
  const std::vector<std::string> seeds = png_seeds();
  Mutator mutator(fuzz_seed() + 12, kPngWords);
  repeat(6, {}, [&] {
    // Bytes are changed in place: chunks stay where they are.
    std::string damaged = seeds[mutator.below(seeds.size())];
    for (std::size_t i = 1 + mutator.below(4); i > 0; --i) {
      damaged[8 + mutator.below(damaged.size() - 8)] = static_cast<char>(mutator.below(256));
    }
    try_bytes(with_right_checksums(damaged));
  });
  EXPECT_GT(accepted_, 0);
}

TEST_F(ImageFuzzTest, DamagedJpegIsRefusedOrDecoded) {
  const std::vector<std::string> seeds = jpeg_seeds();
  Mutator mutator(fuzz_seed() + 13, kJpegWords);
  repeat(2, {}, [&] {
    std::string damaged = seeds[mutator.below(seeds.size())];
    if (mutator.below(2) == 0) {
      damaged = mutator.damaged(damaged);
    } else {
      damaged[2 + mutator.below(damaged.size() - 2)] = static_cast<char>(mutator.below(256));
    }
    try_bytes(damaged);
  });
  EXPECT_GT(accepted_, 0);
}

using PreprocessorConfigFuzzTest = FuzzTest;

TEST_F(PreprocessorConfigFuzzTest, AlteredConfigurationsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 14, {});
  repeat(12, {}, [&] {
    try {
      const PreprocessorConfig config =
          parse_preprocessor_config(mutator.altered(testing::config_json()).dump(), "fuzz.json");
      ++accepted_;
      const PatchGrid grid = patch_grid(480, 640, config);
      ASSERT_GT(grid.rows(), 0);
      ASSERT_EQ(grid.h % config.merge_size, 0);
      ASSERT_EQ(grid.w % config.merge_size, 0);
    } catch (const SpaceError& error) {
      ASSERT_EQ(error.file(), "fuzz.json");
      ++refused_;
    }
  });
  EXPECT_GT(accepted_, 0);
}

}  // namespace
}  // namespace pascaline
