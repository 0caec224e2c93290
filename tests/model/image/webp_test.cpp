#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "model/image/decode.hpp"
#include "tests/model/image/expect_refused.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline {
namespace {

using testing::encode_webp;
using testing::expect_refused;
using testing::webp_of;
using testing::WebpSource;

TEST(WebpTest, LosslessImagesAreDecodedExactly) {
  const Image image = testing::synthetic_image(19, 23);
  const Image decoded = decode_image(encode_webp(webp_of(image)), "a.webp");
  EXPECT_EQ(decoded.height, 19);
  EXPECT_EQ(decoded.width, 23);
  EXPECT_EQ(decoded.pixels, image.pixels);
  EXPECT_EQ(decoded.notes, std::vector<std::string>());
}

TEST(WebpTest, LossyImagesAreCloseToTheirOriginal) {
  const Image image = testing::smooth_image(40, 56);
  WebpSource source = webp_of(image);
  source.lossy = true;
  const Image decoded = decode_image(encode_webp(source), "a.webp");
  ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
  int largest = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(image.pixels[i] - decoded.pixels[i]));
  }
  EXPECT_LT(largest, 24);
  EXPECT_GT(largest, 0);
}

TEST(WebpTest, TransparencyIsLaidOnWhite) {
  WebpSource source{1, 3, {0, 0, 0, 255, 0, 0, 0, 0, 100, 0, 0, 51}};
  const Image decoded = decode_image(encode_webp(source), "a.webp");
  EXPECT_EQ(decoded.pixels, (std::vector<std::uint8_t>{0, 0, 0, 255, 255, 255, 224, 204, 204}));
  EXPECT_EQ(decoded.notes, std::vector<std::string>{"its transparent pixels are laid on white"});
}

TEST(WebpTest, OfAnAnimationTheFirstFrameIsTaken) {
  const Image image = testing::synthetic_image(8, 6);
  WebpSource source = webp_of(image);
  source.animated = true;
  const Image decoded = decode_image(encode_webp(source), "a.webp");
  EXPECT_EQ(decoded.pixels, image.pixels);
  EXPECT_EQ(decoded.notes, std::vector<std::string>{"only the first frame of its animation is used"});
}

TEST(WebpTest, OrientationOfItsExifDataIsFollowed) {
  const Image image = testing::synthetic_image(5, 7);
  WebpSource source = webp_of(image);
  source.pixels[3] = 0;  // so that there is a note to keep
  for (const char* signature : {"", "Exif"}) {
    source.exif =
        std::string(signature) + std::string(*signature == 0 ? 0 : 2, '\0') + testing::exif_with_orientation(6, true);
    const Image decoded = decode_image(encode_webp(source), "a.webp");
    ASSERT_EQ(decoded.height, 7);
    ASSERT_EQ(decoded.width, 5);
    EXPECT_EQ(decoded.row(0)[0], image.row(4)[0]);
    EXPECT_EQ(decoded.notes.size(), 1U);
  }
}

TEST(WebpTest, EveryTruncationIsRefused) {
  for (const bool animated : {false, true}) {
    for (const bool lossy : {false, true}) {
      WebpSource source = webp_of(testing::synthetic_image(9, 11));
      source.animated = animated;
      source.lossy = lossy;
      const std::string whole = encode_webp(source);
      for (std::size_t size = 0; size < whole.size(); ++size) {
        ASSERT_NO_FATAL_FAILURE(expect_refused(whole.substr(0, size), "cut.webp", "")) << size;
      }
    }
  }
}

TEST(WebpTest, ThePixelLimitIsKeptBeforeMemoryIsTaken) {
  const std::string webp = encode_webp(webp_of(testing::synthetic_image(19, 23)));
  DecodeOptions options;
  options.max_pixels = 19 * 23;
  EXPECT_EQ(decode_image(webp, "fits.webp", options).width, 23);
  options.max_pixels -= 1;
  expect_refused(webp, "large.webp", "more than the allowed 436", options);
  std::string huge = webp;  // its extended header announces 2^24 x 2^24 pixels
  std::fill_n(huge.begin() + 24, 6, '\xff');
  expect_refused(huge, "huge.webp", "");
}

}  // namespace
}  // namespace pascaline
