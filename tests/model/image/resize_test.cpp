#include "model/image/resize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "model/image/resize_weights.hpp"
#include "tests/model/image/image_encoder.hpp"

namespace pascaline {
namespace {

double keys_cubic(double x) {
  const double t = std::abs(x);
  if (t < 1) {
    return 1.5 * t * t * t - 2.5 * t * t + 1;
  }
  return t < 2 ? -0.5 * t * t * t + 2.5 * t * t - 4 * t + 2 : 0;
}

// One axis in double precision, by the filter's definition: every source pixel is asked for its weight.
std::vector<double> plain_axis(const std::vector<double>& source, std::size_t out) {
  const double scale = static_cast<double>(source.size()) / static_cast<double>(out);
  const double stretch = std::max(scale, 1.0);
  std::vector<double> result(out);
  for (std::size_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    double sum = 0;
    double weights = 0;
    for (std::size_t k = 0; k < source.size(); ++k) {
      const double w = keys_cubic((static_cast<double>(k) + 0.5 - center) / stretch);
      sum += w * source[k];
      weights += w;
    }
    result[i] = std::clamp(std::nearbyint(sum / weights), 0.0, 255.0);
  }
  return result;
}

Image plain_resize(const Image& image, std::int64_t height, std::int64_t width) {
  Image wide = black_image(image.height, width);
  Image out = black_image(height, width);
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t y = 0; y < image.height; ++y) {
      std::vector<double> row;
      for (std::int64_t x = 0; x < image.width; ++x) {
        row.push_back(image.row(y)[x * 3 + c]);
      }
      const std::vector<double> resized = plain_axis(row, static_cast<std::size_t>(width));
      for (std::size_t x = 0; x < resized.size(); ++x) {
        wide.row(y)[x * 3 + static_cast<std::size_t>(c)] = static_cast<std::uint8_t>(resized[x]);
      }
    }
    for (std::int64_t x = 0; x < width; ++x) {
      std::vector<double> column;
      for (std::int64_t y = 0; y < image.height; ++y) {
        column.push_back(wide.row(y)[x * 3 + c]);
      }
      const std::vector<double> resized = plain_axis(column, static_cast<std::size_t>(height));
      for (std::size_t y = 0; y < resized.size(); ++y) {
        out.row(static_cast<std::int64_t>(y))[x * 3 + c] = static_cast<std::uint8_t>(resized[y]);
      }
    }
  }
  return out;
}

Image noise(std::int64_t height, std::int64_t width) {
  std::mt19937 random(7);
  Image image = black_image(height, width);
  std::generate(image.pixels.begin(), image.pixels.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return image;
}

struct ResizeCase {
  std::int64_t in_height, in_width, height, width;
};

TEST(ResizeTest, AgreesWithDoublePrecisionToALevel) {
  constexpr std::array<ResizeCase, 10> kCases{{{40, 60, 64, 96},
                                               {40, 60, 32, 32},
                                               {200, 180, 32, 160},
                                               {17, 31, 64, 96},
                                               {1, 1, 32, 32},
                                               {1, 150, 32, 96},
                                               {3, 2, 32, 64},
                                               {64, 50, 64, 32},
                                               {50, 64, 32, 64},
                                               {20, 600, 1, 3}}};
  for (const ResizeCase& c : kCases) {
    const Image image = noise(c.in_height, c.in_width);
    const Image resized = resize_bicubic(image, c.height, c.width);
    const Image plain = plain_resize(image, c.height, c.width);
    ASSERT_EQ(resized.pixels.size(), plain.pixels.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < plain.pixels.size(); ++i) {
      ASSERT_NEAR(resized.pixels[i], plain.pixels[i], 1) << c.in_height << " x " << c.in_width << ", value " << i;
      different += resized.pixels[i] != plain.pixels[i] ? 1 : 0;
    }
    // Weights of 16 bits seldom tip a value over.
    EXPECT_LE(different * 50, plain.pixels.size()) << c.in_height << " x " << c.in_width;
  }
}

TEST(ResizeTest, AnEvenImageStaysEven) {
  for (const std::uint8_t level : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{128}, std::uint8_t{255}}) {
    Image image = black_image(97, 203);
    std::fill(image.pixels.begin(), image.pixels.end(), level);
    for (const std::int64_t size : {32, 96, 320}) {
      const Image resized = resize_bicubic(image, size, size);
      EXPECT_TRUE(
          std::all_of(resized.pixels.begin(), resized.pixels.end(), [&](std::uint8_t v) { return v == level; }));
    }
  }
}

TEST(ResizeTest, TheSameSizeChangesNothing) {
  const Image image = noise(31, 17);
  EXPECT_EQ(resize_bicubic(image, 31, 17).pixels, image.pixels);
}

TEST(ResizeTest, LargeImagesAreSharedOutAndEqualTheirParts) {
  // Rows are independent of each other in the first pass: any band of rows gives the same.
  const Image image = noise(700, 900);
  const Image whole = resize_bicubic(image, 700, 1024);
  const std::size_t stride = image.stride();
  Image band = black_image(5, 900);
  std::copy_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(690 * stride), 5 * stride, band.pixels.begin());
  const Image part = resize_bicubic(band, 5, 1024);
  EXPECT_TRUE(std::equal(part.pixels.begin(), part.pixels.end(), whole.row(690)));
}

TEST(ResizeTest, WrongSizesAreRefused) {
  const Image image = noise(4, 4);
  EXPECT_THROW((void)resize_bicubic(image, 0, 4), Error);
  EXPECT_THROW((void)resize_bicubic(image, 4, -1), Error);
  EXPECT_THROW((void)resize_bicubic(Image{}, 4, 4), Error);
  Image wrong = image;
  wrong.height = 5;
  EXPECT_THROW((void)resize_bicubic(wrong, 4, 4), Error);
  wrong.height = -4;
  wrong.width = -4;
  EXPECT_THROW((void)resize_bicubic(wrong, 4, 4), Error);
}

TEST(ResizeWeightsTest, TapsStayWithinTheAxisAndSumToOne) {
  for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 7}, {2, 3}, {31, 352}, {4032, 1000}, {5000, 1}, {3024, 3008}, {999, 1000}}) {
    const ResizeWeights axis = resize_weights(in, out);
    ASSERT_EQ(axis.taps % 8, 0U);
    ASSERT_EQ(axis.weights.size(), static_cast<std::size_t>(out) * axis.taps);
    for (std::size_t i = 0; i < static_cast<std::size_t>(out); ++i) {
      ASSERT_GE(axis.count[i], 1U);
      ASSERT_LE(axis.count[i], axis.taps);
      ASSERT_LE(axis.first[i] + axis.count[i], static_cast<std::size_t>(in));
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < axis.taps; ++k) {
        const std::int16_t weight = axis.weights[i * axis.taps + k];
        sum += weight;
        ASSERT_TRUE(k < axis.count[i] || weight == 0);
      }
      // Each weight is rounded to half a unit.
      ASSERT_LE(std::abs(sum - (std::int64_t{1} << axis.precision)) * 2, static_cast<std::int64_t>(axis.count[i]));
    }
  }
}

TEST(ResizeWeightsTest, PrecisionIsTheMostThatSixteenBitsHold) {
  // Doubling an axis, the largest weight is at its ends: K(1/4) / (K(1/4) + K(5/4)) = 0.8671875 / 0.796875, which is
  // 35659 of 2^15 and so too large for one bit more.
  const ResizeWeights doubled = resize_weights(100, 200);
  EXPECT_EQ(doubled.precision, 14);
  EXPECT_EQ(*std::max_element(doubled.weights.begin(), doubled.weights.end()), 17830);
  // Weights shrink with the axis, until the limit of 22 bits is met.
  EXPECT_EQ(resize_weights(100'000, 100).precision, 22);
}

}  // namespace
}  // namespace pascaline
