#include "model/decoder/positions.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

namespace pascaline {
namespace {

constexpr std::int32_t kImage = 9;
using Axis = std::vector<std::int32_t>;

TEST(PositionsTest, TextCountsOnAllAxes) {
  const Axis tokens{1, 2, 3};
  const PromptPositions positions = mrope_positions(tokens, kImage, {});
  for (const Axis& axis : positions.axes) {
    EXPECT_EQ(axis, (Axis{0, 1, 2}));
  }
  EXPECT_EQ(positions.delta, 0);
  EXPECT_TRUE(positions.images.empty());
}

TEST(PositionsTest, ImageCountsRowsAndColumns) {
  const Axis tokens{1, 2, 9, 9, 9, 9, 9, 9, 3, 1, 1};
  const std::vector<ImageTokens> images{{2, 3}};
  const PromptPositions positions = mrope_positions(tokens, kImage, images);
  EXPECT_EQ(positions.axes[0], (Axis{0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 7}));
  EXPECT_EQ(positions.axes[1], (Axis{0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 7}));
  EXPECT_EQ(positions.axes[2], (Axis{0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(positions.delta, -3);
  ASSERT_EQ(positions.images.size(), 1);
  EXPECT_EQ(positions.images[0].first, 2);
  EXPECT_EQ(positions.images[0].count, 6);
}

TEST(PositionsTest, SquareImageInARealPrompt) {
  // One image of 256 x 256 pixels, 76 tokens in all.
  Axis tokens(4, 1);
  tokens.insert(tokens.end(), 64, kImage);
  tokens.insert(tokens.end(), 8, 2);
  EXPECT_EQ(mrope_positions(tokens, kImage, std::vector<ImageTokens>{{8, 8}}).delta, -56);
}

TEST(PositionsTest, TwoImagesOneBehindTheOtherAndALaterTurn) {
  const Axis tokens{9, 9, 9, 9, 1};
  const std::vector<ImageTokens> images{{1, 2}, {2, 1}};
  const PromptPositions positions = mrope_positions(tokens, kImage, images, 10, -4);
  EXPECT_EQ(positions.axes[0], (Axis{6, 6, 8, 8, 10}));
  EXPECT_EQ(positions.axes[1], (Axis{6, 6, 8, 9, 10}));
  EXPECT_EQ(positions.axes[2], (Axis{6, 7, 8, 8, 10}));
  EXPECT_EQ(positions.delta, -4);
  EXPECT_EQ(positions.images[1].first, 2);
}

TEST(PositionsTest, ImagesThatDoNotMatchTheirPlaces) {
  const Axis tokens{1, 9, 9, 1};
  EXPECT_THROW((void)mrope_positions(tokens, kImage, {}), Error);
  EXPECT_THROW((void)mrope_positions(tokens, kImage, std::vector<ImageTokens>{{1, 3}}), Error);
  EXPECT_THROW((void)mrope_positions(tokens, kImage, std::vector<ImageTokens>{{1, 1}}), Error);
  EXPECT_THROW((void)mrope_positions(tokens, kImage, std::vector<ImageTokens>{{0, 2}}), Error);
  EXPECT_THROW((void)mrope_positions(tokens, kImage, std::vector<ImageTokens>{{1, 2}, {1, 1}}), Error);
  EXPECT_THROW((void)mrope_positions(Axis{1}, kImage, {}, std::int64_t{1} << 31), Error);
}

TEST(PositionsTest, AnglesOfTheFirstAndLastSlot) {
  const RopeTables tables = rope_tables(100000, 64, 5e6);
  EXPECT_EQ(tables.cosine.size(), 6400000);
  EXPECT_FLOAT_EQ(tables.cosine[64 * 3], static_cast<float>(std::cos(3.0)));
  EXPECT_FLOAT_EQ(tables.sine[64 * 99999], static_cast<float>(std::sin(99999.0)));
  EXPECT_NEAR(tables.sine[64 * 1000 + 63], std::sin(1000 * std::pow(5e6, -63.0 / 64)), 1e-6);
  EXPECT_THROW((void)rope_tables(0, 4, 10), Error);
  EXPECT_THROW((void)rope_tables(4, 0, 10), Error);
  EXPECT_THROW((void)rope_tables(4, 4, std::nan("")), Error);
}

TEST(PositionsTest, PatchesComeInBlocks) {
  const auto position_axes = patch_positions(2, 4, 2);
  EXPECT_EQ(position_axes[0], (Axis{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(position_axes[1], (Axis{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_THROW((void)patch_positions(3, 4, 2), Error);
  EXPECT_THROW((void)patch_positions(0, 4, 2), Error);
}

}  // namespace
}  // namespace pascaline
