#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "model/image/decode.hpp"
#include "tests/model/image/expect_refused.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline {
namespace {

using testing::encode_png;
using testing::expect_refused;
using testing::PngSource;

struct PngKind {
  int color_type;
  int bit_depth;
};

constexpr std::array<PngKind, 15> kPngKinds{{{PNG_COLOR_TYPE_GRAY, 1},
                                             {PNG_COLOR_TYPE_GRAY, 2},
                                             {PNG_COLOR_TYPE_GRAY, 4},
                                             {PNG_COLOR_TYPE_GRAY, 8},
                                             {PNG_COLOR_TYPE_GRAY, 16},
                                             {PNG_COLOR_TYPE_RGB, 8},
                                             {PNG_COLOR_TYPE_RGB, 16},
                                             {PNG_COLOR_TYPE_PALETTE, 1},
                                             {PNG_COLOR_TYPE_PALETTE, 2},
                                             {PNG_COLOR_TYPE_PALETTE, 4},
                                             {PNG_COLOR_TYPE_PALETTE, 8},
                                             {PNG_COLOR_TYPE_GRAY_ALPHA, 8},
                                             {PNG_COLOR_TYPE_GRAY_ALPHA, 16},
                                             {PNG_COLOR_TYPE_RGB_ALPHA, 8},
                                             {PNG_COLOR_TYPE_RGB_ALPHA, 16}}};

// An image of random samples, with a palette where the kind has one.
PngSource random_png(const PngKind& kind, bool interlaced, bool transparent) {
  std::mt19937 random(static_cast<unsigned>(kind.color_type * 100 + kind.bit_depth));
  PngSource source;
  source.height = 19;
  source.width = 23;
  source.color_type = kind.color_type;
  source.bit_depth = kind.bit_depth;
  source.interlaced = interlaced;
  const unsigned levels = 1U << kind.bit_depth;
  const std::int64_t count = source.height * source.width * source.channels();
  for (std::int64_t i = 0; i < count; ++i) {
    source.samples.push_back(static_cast<std::uint16_t>(random() % levels));
  }
  if (kind.color_type == PNG_COLOR_TYPE_PALETTE) {
    for (unsigned i = 0; i < levels; ++i) {
      source.palette.push_back({static_cast<std::uint8_t>(random()), static_cast<std::uint8_t>(random()),
                                static_cast<std::uint8_t>(random())});
      if (transparent && i < levels / 2 + 1) {
        source.palette_alpha.push_back(static_cast<std::uint8_t>(random()));
      }
    }
  } else if (transparent && (kind.color_type & PNG_COLOR_MASK_ALPHA) == 0) {
    const auto first = source.samples.begin();
    source.transparent.assign(first, first + source.channels());
  }
  return source;
}

// RGBA of 8 bits of one pixel, worked out from the format's definition.
std::array<int, 4> expected_pixel(const PngSource& source, std::size_t at) {
  const auto channels = static_cast<std::size_t>(source.channels());
  const std::uint16_t* samples = source.samples.data() + at * channels;
  if (source.color_type == PNG_COLOR_TYPE_PALETTE) {
    const auto& colour = source.palette[samples[0]];
    return {colour[0], colour[1], colour[2],
            samples[0] < source.palette_alpha.size() ? source.palette_alpha[samples[0]] : 255};
  }
  const int largest = (1 << source.bit_depth) - 1;
  const auto level = [&](std::size_t c) {
    return source.bit_depth == 16 ? samples[c] >> 8 : samples[c] * 255 / largest;
  };
  const bool colours = channels >= 3;
  bool is_key = !source.transparent.empty();
  for (std::size_t c = 0; c < source.transparent.size(); ++c) {
    is_key = is_key && samples[c] == source.transparent[c];
  }
  const int alpha = channels % 2 == 0 ? level(channels - 1) : is_key ? 0 : 255;
  return {level(0), level(colours ? 1 : 0), level(colours ? 2 : 0), alpha};
}

void expect_decoded(const PngSource& source) {
  const Image image = decode_image(encode_png(source), "test.png");
  ASSERT_EQ(image.height, source.height);
  ASSERT_EQ(image.width, source.width);
  ASSERT_EQ(image.pixels.size(), static_cast<std::size_t>(source.height * source.width * 3));
  bool is_opaque = true;
  for (std::size_t at = 0; at < image.pixels.size() / 3; ++at) {
    const std::array<int, 4> expected = expected_pixel(source, at);
    is_opaque = is_opaque && expected[3] == 255;
    for (std::size_t c = 0; c < 3; ++c) {
      const double on_white = (expected[c] * expected[3] + 255.0 * (255 - expected[3])) / 255;
      ASSERT_EQ(image.pixels[at * 3 + c], std::floor(on_white + 0.5)) << "pixel " << at << ", channel " << c;
    }
  }
  EXPECT_EQ(image.notes.empty(), is_opaque);
}

TEST(PngTest, EveryKindIsDecodedExactly) {
  for (const PngKind& kind : kPngKinds) {
    for (const bool interlaced : {false, true}) {
      for (const bool transparent : {false, true}) {
        SCOPED_TRACE(fmt::format("type {}, {} bits, interlaced {}, transparent {}", kind.color_type, kind.bit_depth,
                                 interlaced, transparent));
        const PngSource source = random_png(kind, interlaced, transparent);
        ASSERT_NO_FATAL_FAILURE(expect_decoded(source));
      }
    }
  }
}

TEST(PngTest, BlackTextOnATransparentGroundStaysReadable) {
  PngSource source;
  source.height = 1;
  source.width = 2;
  source.color_type = PNG_COLOR_TYPE_RGB_ALPHA;
  source.samples = {0, 0, 0, 255, 0, 0, 0, 0};
  const Image image = decode_image(encode_png(source), "text.png");
  EXPECT_EQ(image.pixels, (std::vector<std::uint8_t>{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(image.notes, std::vector<std::string>{"its transparent pixels are laid on white"});
  source.samples[7] = 255;  // as most programs save screenshots
  EXPECT_TRUE(decode_image(encode_png(source), "opaque.png").notes.empty());
}

TEST(PngTest, ASinglePixelIsAImage) {
  PngSource source;
  source.height = source.width = 1;
  source.color_type = PNG_COLOR_TYPE_RGB;
  source.samples = {1, 2, 3};
  for (const bool interlaced : {false, true}) {
    source.interlaced = interlaced;
    EXPECT_EQ(decode_image(encode_png(source), "one.png").pixels, (std::vector<std::uint8_t>{1, 2, 3}));
  }
}

TEST(PngTest, EveryTruncationIsRefused) {
  for (const PngKind& kind : {kPngKinds[5], kPngKinds[8]}) {
    const std::string whole = encode_png(random_png(kind, true, true));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      ASSERT_NO_FATAL_FAILURE(expect_refused(whole.substr(0, size), "cut.png", ""));
    }
  }
}

TEST(PngTest, EveryFlippedBitOfTheDataIsSeen) {
  const std::string whole = encode_png(random_png(kPngKinds[5], false, false));
  // From the header's values to the end of the pixels' checksum; behind it stands IEND.
  for (std::size_t at = 16; at < whole.size() - 12; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    ASSERT_NO_FATAL_FAILURE(expect_refused(damaged, "bit.png", "")) << at;
  }
}

// A header that announces this size, over the data of a small image.
std::string with_size(std::string png, std::uint32_t width, std::uint32_t height) {
  for (std::size_t i = 0; i < 4; ++i) {
    png[16 + i] = static_cast<char>(width >> (24 - 8 * i));
    png[20 + i] = static_cast<char>(height >> (24 - 8 * i));
  }
  return png;
}

TEST(PngTest, HostileSizesAreRefusedBeforeMemoryIsTaken) {
  const std::string png = encode_png(random_png(kPngKinds[5], false, false));
  expect_refused(with_size(png, 0, 5), "zero.png", "says 0 x 5 pixels");
  expect_refused(with_size(png, 0xffffffff, 0xffffffff), "huge.png", "a side may have at most 1000000");
  expect_refused(with_size(png, 999'999, 999'999), "huge.png", "more than the allowed 134217728");
  expect_refused(with_size(png, 11'000, 11'000), "bomb.png", "cannot hold the pixels");
}

TEST(PngTest, AnEvenImageIsNotTakenForIncomplete) {
  PngSource source;
  source.height = source.width = 2400;
  source.color_type = PNG_COLOR_TYPE_GRAY;
  source.bit_depth = 1;
  source.samples.assign(2400 * 2400, 1);
  EXPECT_EQ(decode_image(encode_png(source), "white.png").pixels, std::vector<std::uint8_t>(2400 * 2400 * 3, 255));
}

TEST(PngTest, ThePixelLimitIsTheUsers) {
  const std::string png = encode_png(random_png(kPngKinds[5], false, false));
  DecodeOptions options;
  options.max_pixels = 19 * 23;
  EXPECT_EQ(decode_image(png, "fits.png", options).width, 23);
  options.max_pixels -= 1;
  expect_refused(png, "large.png", "more than the allowed 436", options);
}

TEST(PngTest, ImpossibleHeadersAreRefused) {
  std::string png = encode_png(random_png(kPngKinds[5], false, false));
  std::string depth = png;
  depth[24] = 7;
  expect_refused(depth, "depth.png", "damaged");
  std::string type = png;
  type[25] = 5;
  expect_refused(type, "type.png", "damaged");
  std::string first = png;
  first.replace(12, 4, "IDAT");
  expect_refused(first, "first.png", "it has no header");
}

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return bytes;
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string checked = name + data;
  const auto checksum = ::crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return number(static_cast<std::uint32_t>(data.size())) + checked + number(static_cast<std::uint32_t>(checksum));
}

TEST(PngTest, OfAnAnimationTheFirstFrameIsTakenAndTold) {
  const Image image = testing::synthetic_image(5, 7);
  const std::string plain = testing::png_of(image);
  constexpr std::size_t kAfterHeader = 33;
  const auto with = [&](const std::string& chunks) {
    return plain.substr(0, kAfterHeader) + chunks + plain.substr(kAfterHeader);
  };
  const std::string text = chunk("tEXt", std::string("acTL\0IDAT", 9));
  const Image animated = decode_image(with(text + chunk("acTL", number(2) + number(0))), "a.png");
  EXPECT_EQ(animated.pixels, image.pixels);
  EXPECT_EQ(animated.notes, std::vector<std::string>{"only the first frame of its animation is used"});
  EXPECT_TRUE(decode_image(with(text), "a.png").notes.empty()) << "a text that looks like it";
  EXPECT_TRUE(decode_image(with(chunk("acTL", number(1) + number(0))), "a.png").notes.empty()) << "one frame";
}

TEST(PngTest, OrientationOfItsExifDataIsFollowed) {
  const Image stored = testing::synthetic_image(5, 7);
  PngSource source;
  source.height = stored.height;
  source.width = stored.width;
  source.color_type = PNG_COLOR_TYPE_RGB;
  source.samples.assign(stored.pixels.begin(), stored.pixels.end());
  source.exif = testing::exif_with_orientation(6, true);
  const Image image = decode_image(encode_png(source), "turned.png");
  ASSERT_EQ(image.height, 7);
  ASSERT_EQ(image.width, 5);
  // A quarter turn clockwise: the lower left corner comes to the upper left.
  EXPECT_EQ(image.row(0)[0], stored.row(4)[0]);
  EXPECT_EQ(image.row(6)[0], stored.row(4)[6 * 3]);
}

}  // namespace
}  // namespace pascaline
