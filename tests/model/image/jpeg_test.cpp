#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "model/image/decode.hpp"
#include "tests/model/image/expect_refused.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline {
namespace {

using testing::encode_jpeg;
using testing::expect_refused;
using testing::jpeg_of;
using testing::JpegSource;
using testing::smooth_image;

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  int largest = a.size() == b.size() ? 0 : 256;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

TEST(JpegTest, ColoursAreDecoded) {
  const Image image = smooth_image(53, 70);
  for (const bool subsampled : {false, true}) {
    for (const bool as_rgb : {false, true}) {
      JpegSource source = jpeg_of(image);
      source.subsampled = subsampled && !as_rgb;
      source.as_rgb = as_rgb;
      const Image decoded = decode_image(encode_jpeg(source), "colours.jpg");
      EXPECT_EQ(decoded.height, image.height);
      EXPECT_EQ(decoded.width, image.width);
      EXPECT_LE(largest_difference(decoded.pixels, image.pixels), 6);
    }
  }
}

TEST(JpegTest, ProgressiveAndArithmeticGiveTheSamePixelsAsBaseline) {
  JpegSource source = jpeg_of(smooth_image(53, 70));
  source.subsampled = true;
  const Image baseline = decode_image(encode_jpeg(source), "baseline.jpg");
  source.restart_rows = 1;
  EXPECT_EQ(decode_image(encode_jpeg(source), "restarts.jpg").pixels, baseline.pixels);
  source.progressive = true;
  EXPECT_EQ(decode_image(encode_jpeg(source), "progressive.jpg").pixels, baseline.pixels);
  source.arithmetic = true;
  EXPECT_EQ(decode_image(encode_jpeg(source), "arithmetic.jpg").pixels, baseline.pixels);
}

TEST(JpegTest, GrayIsTheSameInAllChannels) {
  const Image image = smooth_image(33, 20);
  JpegSource source = jpeg_of(image);
  source.channels = 1;
  source.pixels.clear();
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    source.pixels.push_back(image.pixels[i]);
  }
  const Image decoded = decode_image(encode_jpeg(source), "gray.jpg");
  ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
  for (std::size_t i = 0; i < decoded.pixels.size(); ++i) {
    ASSERT_EQ(decoded.pixels[i], decoded.pixels[i / 3 * 3]);
    ASSERT_NEAR(decoded.pixels[i], image.pixels[i / 3 * 3], 4);
  }
}

TEST(JpegTest, InvertedCmykBecomesRgb) {
  const Image image = smooth_image(40, 48);
  for (const bool as_ycck : {false, true}) {
    JpegSource source = jpeg_of(image);
    source.channels = 4;
    source.quality = 100;
    source.as_ycck = as_ycck;
    source.pixels.clear();
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      source.pixels.push_back(image.pixels[i]);
      if (i % 3 == 2) {
        source.pixels.push_back(204);  // black is inverted too: four fifths of the light pass
      }
    }
    const Image decoded = decode_image(encode_jpeg(source), "print.jpg");
    ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
    for (std::size_t i = 0; i < decoded.pixels.size(); ++i) {
      ASSERT_NEAR(decoded.pixels[i], image.pixels[i] * 0.8, 4) << i;
    }
  }
}

TEST(JpegTest, TruncationIsRefused) {
  for (const bool progressive : {false, true}) {
    JpegSource source = jpeg_of(testing::synthetic_image(24, 32));
    source.progressive = progressive;
    const std::string whole = encode_jpeg(source);
    for (std::size_t size = 3; size < whole.size(); size += 7) {
      ASSERT_NO_FATAL_FAILURE(expect_refused(whole.substr(0, size), "cut.jpg", "JPEG")) << size;
    }
    // The end marker alone is missing.
    ASSERT_NO_FATAL_FAILURE(expect_refused(whole.substr(0, whole.size() - 2), "cut.jpg", "Premature end"));
  }
}

TEST(JpegTest, BytesBehindTheImageAreIgnored) {
  const std::string whole = encode_jpeg(jpeg_of(smooth_image(16, 16)));
  EXPECT_EQ(decode_image(whole + std::string(1000, 'x'), "tail.jpg").pixels, decode_image(whole, "whole.jpg").pixels);
}

TEST(JpegTest, MissingDataInsideIsRefused) {
  const std::string whole = encode_jpeg(jpeg_of(testing::synthetic_image(64, 64)));
  const std::size_t middle = whole.size() / 2;
  std::string damaged = whole;
  damaged.replace(middle, 2, "\xff\xd9");
  expect_refused(damaged, "end.jpg", "damaged");
}

// The place of the frame header's height, behind its marker, length and precision.
std::size_t frame_height_at(const std::string& jpeg) {
  const std::size_t marker = jpeg.find("\xff\xc0");
  EXPECT_NE(marker, std::string::npos);
  return marker + 5;
}

TEST(JpegTest, HostileSizesAreRefusedBeforeMemoryIsTaken) {
  const std::string jpeg = encode_jpeg(jpeg_of(smooth_image(16, 16)));
  std::string huge = jpeg;
  huge.replace(frame_height_at(jpeg), 4, "\xff\x00\xff\x00", 4);
  expect_refused(huge, "huge.jpg", "more than the allowed 134217728");
  std::string bomb = jpeg;
  bomb.replace(frame_height_at(jpeg), 4, "\x20\x00\x20\x00", 4);
  expect_refused(bomb, "bomb.jpg", "cannot hold the pixels");
  std::string empty = jpeg;
  empty.replace(frame_height_at(jpeg), 2, std::string(2, '\0'));
  expect_refused(empty, "empty.jpg", "Empty JPEG image");
  DecodeOptions options;
  options.max_pixels = 255;
  expect_refused(jpeg, "large.jpg", "more than the allowed 255", options);
}

TEST(JpegTest, AnEvenImageIsNotTakenForIncomplete) {
  for (const bool progressive : {false, true}) {
    Image image = black_image(1200, 1200);
    image.pixels.assign(image.pixels.size(), 255);
    JpegSource source = jpeg_of(image);
    source.progressive = progressive;
    source.subsampled = true;
    EXPECT_EQ(decode_image(encode_jpeg(source), "white.jpg").pixels, image.pixels);
  }
}

TEST(JpegTest, UnknownKindsAreRefused) {
  const std::string jpeg = encode_jpeg(jpeg_of(smooth_image(16, 16)));
  std::string precision = jpeg;
  precision[frame_height_at(jpeg) - 1] = 12;
  expect_refused(precision, "deep.jpg", "Unsupported JPEG data precision 12");
  std::string lossless = jpeg;
  lossless[jpeg.find("\xff\xc0") + 1] = '\xc3';
  expect_refused(lossless, "lossless.jpg", "Unsupported JPEG process");
}

TEST(JpegTest, EndlessScansAreRefused) {
  JpegSource source = jpeg_of(smooth_image(16, 16));
  source.progressive = true;
  const std::string jpeg = encode_jpeg(source);
  // The first scan after the frame header, up to the next table, again and again.
  const std::size_t scan = jpeg.find("\xff\xda");
  const std::size_t end = jpeg.find("\xff\xc4", scan);
  ASSERT_NE(end, std::string::npos);
  std::string repeated = jpeg;
  for (int i = 0; i < 200; ++i) {
    repeated.insert(scan, jpeg.substr(scan, end - scan));
  }
  expect_refused(repeated, "scans.jpg", "more than 100 scans");
}

TEST(JpegTest, EveryOrientationIsTurnedUpright) {
  // A bright corner, as each orientation stores it: upper left in the upright image.
  struct Case {
    int orientation;
    bool bottom, right;
  };
  constexpr std::array<Case, 8> kCases{{{1, false, false},
                                        {2, false, true},
                                        {3, true, true},
                                        {4, true, false},
                                        {5, false, false},
                                        {6, true, false},
                                        {7, true, true},
                                        {8, false, true}}};
  for (const Case& turned : kCases) {
    Image stored = black_image(32, 48);
    for (std::int64_t y = 0; y < 8; ++y) {
      for (std::int64_t x = 0; x < 16 * 3; ++x) {
        stored.row(turned.bottom ? 31 - y : y)[turned.right ? 48 * 3 - 1 - x : x] = 255;
      }
    }
    JpegSource source = jpeg_of(stored);
    source.exif = testing::exif_with_orientation(turned.orientation, turned.orientation % 2 == 0);
    const Image image = decode_image(encode_jpeg(source), "turned.jpg");
    const bool quarter = turned.orientation >= 5;
    ASSERT_EQ(image.height, quarter ? 48 : 32) << turned.orientation;
    ASSERT_EQ(image.width, quarter ? 32 : 48) << turned.orientation;
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < image.width; ++x) {
        const bool bright = quarter ? y < 16 && x < 8 : y < 8 && x < 16;
        ASSERT_NEAR(image.row(y)[x * 3], bright ? 255 : 0, 8) << turned.orientation << ": " << y << ", " << x;
      }
    }
  }
}

}  // namespace
}  // namespace pascaline
